"""What a manifest says of an emitted file: the fields of `docs/schema/manifest.json` but for the files themselves."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kdsl.equivalence.verdict import Verdict
from kdsl.frontends.python import signature
from kdsl.ir.kernel import Buffer, Scalar
from kdsl.lang import dtypes
from kdsl.lang.kernel import Kernel
from kdsl.runtime.examples import Binding
from kdsl.runtime.manifest import sha256
from kdsl.runtime.target import Report, Source
from kdsl.runtime.versions import versions


def describe(
    kernel: Kernel,
    example: Binding,
    source: Source,
    rows: Sequence[Verdict],
    reports: Sequence[Report],
    folder: Path,
    checked: bool,
) -> dict[str, Any]:
    """An entry's fields: where it comes from, how it is called, what was chosen and found. Paths are from `folder`."""
    figures = {report.arch: report.figures for report in reports}
    return {
        "source": _origin(kernel, folder),
        "function": source.function,
        "form": source.form,
        "signature": _signature(kernel, example),
        "constraints": [str(constraint) for constraint in example.kernel.constraints],
        "tiles": dict(source.tiles),
        "example": plain({**example.bindings, **example.sizes, **example.tiles, **example.scalars}),
        "notes": list(source.notes),
        "versions": versions([source.target] if checked else []),
        "results": [
            {
                "arch": row.arch,
                "verdict": row.verdict.value,
                "code": row.code,
                "message": row.message,
                "checks": list(row.checks),
                "figures": plain(figures.get(row.arch or "", {})),
            }
            for row in rows
        ],
    }


def in_words(example: Binding) -> str:
    """The example's values in one line."""
    return ", ".join(f"{name}={value}" for name, value in plain({**example.bindings, **example.sizes}).items())


def _origin(kernel: Kernel, folder: Path) -> dict[str, Any]:
    code = kernel.function.__code__
    content = Path(code.co_filename).read_bytes()
    path = os.path.relpath(code.co_filename, folder)
    return {"path": path, "line": code.co_firstlineno, "sha256": sha256(content)}


def _signature(kernel: Kernel, example: Binding) -> dict[str, Any]:
    read = signature(kernel, example.bindings)
    return {
        "parameters": [_parameter(parameter) for parameter in example.kernel.parameters],
        "sizes": {size.name: None if size.value is None else str(size.value) for size in example.kernel.sizes},
        "dtypes": {name: plain(example.bindings[name]) for name in read.variables},
        "constants": plain(read.constants),
    }


def _parameter(parameter: Buffer | Scalar) -> dict[str, Any]:
    if isinstance(parameter, Scalar):
        return {"name": parameter.name, "role": "scalar", "dtype": parameter.dtype.name, "shape": None}
    shape = [str(extent) for extent in parameter.shape]
    return {"name": parameter.name, "role": parameter.role, "dtype": parameter.dtype.name, "shape": shape}


def plain(value: Any) -> Any:
    """A value as JSON has it: dtypes by name, numbers that JSON lacks and all other objects as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, type) and value in dtypes.NAMES:
        return dtypes.NAMES[value]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
