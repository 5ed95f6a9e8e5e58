"""Kernels from text: written to a file and imported, with «...» marking the place that a diagnostic must name."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from kdsl import Kernel

HEADER = """\
from __future__ import annotations
from math import inf
from typing import Literal
import kdsl
from kdsl import Const, InOut, Out, Scalar, Tensor, Tile, bf16, bool_, f16, f32, i8, i32, i64, u8, u64
class M(kdsl.Dim): ...
class N(kdsl.Dim): ...
class K(kdsl.Dim): ...
class T(kdsl.DType): ...
"""

# Indented as a body is; what each kernel of the tests may use.
SIGNATURE = """\
@kdsl.kernel
def kernel(
    a: Tensor[M, K, T],
    b: Tensor[K, N, T],
    v: Tensor[N, T],
    words: Tensor[N, u64],
    c: Out[M, N, T],
    s: Scalar[f32],
    *,
    causal: Const[bool] = False,
    BM: Tile = 8,
    BN: Tile = 8,
    BK: Tile = 8,
) -> None:
"""

_numbers = itertools.count()


@dataclass(frozen=True)
class Place:
    """Where the marks were: a line, the column of the first character, and one past the last if that is one line."""

    line: int
    column: int
    end: int | None
    text: str


def unmark(text: str) -> tuple[str, Place | None]:
    """The text without its marks, and the place between them."""
    start, end = text.find("«"), text.find("»")
    if start < 0:
        return text, None
    before, inside = text[:start], text[start + 1 : end]
    clean = before + inside + text[end + 1 :]
    line, column = before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1
    whole = clean.split("\n")[line - 1]
    return clean, Place(line, column, None if "\n" in inside else column + len(inside), whole)


def load(folder: Path, text: str) -> ModuleType:
    """Import a module of this text from a file in the folder."""
    name = f"kdsl_test_source_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    linecache.checkcache(str(path))
    return module


def kernel_of(folder: Path, body: str) -> tuple[Kernel, Place | None]:
    """The kernel with the body (or, if it has its own `def`, as it is), and the marked place."""
    text = body if "@kdsl.kernel" in body else SIGNATURE + body
    clean, place = unmark(HEADER + text)
    found: Any = load(folder, clean).kernel
    assert isinstance(found, Kernel)
    return found, place
