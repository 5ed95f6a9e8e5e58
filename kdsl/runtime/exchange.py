"""How a request or a reply passes between a worker and its owner: a JSON document and raw arrays, in a private folder.

Nothing is pickled. Types that NumPy lacks (bf16, fp8, int4) are stored as their bits, with the name beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Arrays = dict[str, "np.ndarray[Any, np.dtype[Any]]"]


def put(folder: Path, name: str, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write a message. Raises TypeError for values that are not JSON or an array whose type has no portable bits."""
    described = []
    for index, (key, array) in enumerate(arrays.items()):
        array = np.asarray(array)
        np.save(_array_file(folder, name, index), _as_bits(key, array), allow_pickle=False)
        described.append([key, array.dtype.name])
    _json_file(folder, name).write_text(json.dumps({"values": values, "arrays": described}), encoding="utf-8")


def take(folder: Path, name: str) -> tuple[dict[str, Any], Arrays]:
    """Read a message and delete it."""
    document = json.loads(_json_file(folder, name).read_text(encoding="utf-8"))
    _json_file(folder, name).unlink()
    arrays: Arrays = {}
    for index, (key, dtype) in enumerate(document["arrays"]):
        file = _array_file(folder, name, index)
        arrays[key] = np.load(file, allow_pickle=False).view(_dtype(dtype))
        file.unlink()
    return document["values"], arrays


def _json_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _array_file(folder: Path, name: str, index: int) -> Path:
    return folder / f"{name}-{index}.npy"


def _as_bits(key: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # isbuiltin: 1 for NumPy's own types, 2 for registered ones such as bfloat16, 0 for records, text, swapped bytes.
    if array.dtype.hasobject or array.dtype.isbuiltin == 0:
        raise TypeError(f"array {key!r} of dtype {array.dtype} cannot be sent to or from a worker")
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.dtype.itemsize}")


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))
