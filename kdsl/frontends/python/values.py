"""What names may mean while a kernel is traced, besides plain Python objects and IR values.

Expr            a size, or an index form: integers known only when the kernel runs
IndexVariable   the target of a grid or a loop
TensorRef       a tensor argument
TileSize        a Tile parameter, which may only go into `tiles(...)`
TilesOf, RangeOf, GridOf
                what `Dim.tiles(...)`, `kdsl.range(...)` and `kdsl.grid(...)` give
Gone            a name that has lost its meaning, kept for a better message
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kdsl.ir.expr import Expr, symbol, wrap
from kdsl.ir.kernel import Buffer, Scalar, Value
from kdsl.lang.dims import Dim, Integer
from kdsl.lang.dtypes import DType


@dataclass(frozen=True)
class IndexVariable:
    """A run of points of a dimension: `form` is their place in it, `tile` the tile axis, None for a single point.

    `block` counts the tiles (or points): the program or iteration.
    """

    name: str
    form: Expr
    dim: type[Dim] | None
    tile: str | None
    start: Expr
    stop: Expr
    size: Expr
    block: Expr


@dataclass(frozen=True)
class TensorRef:
    """A tensor argument: its buffer, and its dimensions (None for one of constant size)."""

    buffer: Buffer
    dims: tuple[type[Dim] | None, ...]


@dataclass(frozen=True)
class TileSize:
    """A Tile parameter."""

    name: str


@dataclass(frozen=True)
class TilesOf:
    """Tiles of a dimension between two limits."""

    dim: type[Dim]
    tile: Expr
    start: Expr
    stop: Expr


@dataclass(frozen=True)
class RangeOf:
    """Integers between two limits."""

    start: Expr
    stop: Expr
    step: Expr


@dataclass(frozen=True)
class GridOf:
    """The arguments of `kdsl.grid`."""

    axes: tuple[Any, ...]


@dataclass(frozen=True)
class Gone:
    """A name that had a meaning only inside a loop, or only outside it."""

    reason: str


def is_dim(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Dim) and thing is not Dim


def is_traced(thing: Any) -> bool:
    """Whether it is known only when the kernel runs, so that plain Python cannot compute with it."""
    traced = Value | Expr | Integer | IndexVariable | TensorRef | TileSize | TilesOf | RangeOf | GridOf | Scalar
    return isinstance(thing, traced) or is_dim(thing)


def holds_traced(thing: Any) -> bool:
    """Whether it, or something in it, is known only when the kernel runs."""
    if isinstance(thing, dict):
        return any(map(holds_traced, thing.values()))
    return any(map(holds_traced, thing)) if isinstance(thing, tuple | list | set) else is_traced(thing)


def form_of(thing: Any) -> Expr | None:
    """The integer expression that a thing is, if it is one."""
    if isinstance(thing, IndexVariable | Integer):
        return thing.form
    if is_dim(thing):
        return symbol(thing.__name__)
    if isinstance(thing, int) and not isinstance(thing, bool):
        return wrap(thing)
    return thing if isinstance(thing, Expr) else None


def describe(thing: Any) -> str:
    """What a thing is, in the language's words: never the name of an IR value, which the author did not write."""
    if isinstance(thing, Value):
        return f"{_article(thing.dtype.name)} {'tile' if thing.axes else 'value'}"
    for kind, words in _WORDS.items():
        if isinstance(thing, kind):
            return words.format(name=getattr(thing, "name", ""))
    if isinstance(thing, TensorRef):
        return f"the tensor {thing.buffer.name}"
    if is_dim(thing):
        return f"the dimension {thing.__name__}"
    if isinstance(thing, type) and issubclass(thing, DType):
        return f"the dtype {thing.__name__}"
    if callable(thing):
        return f"the function {getattr(thing, '__name__', '')}".rstrip()
    if isinstance(thing, tuple | list | dict | set):
        return f"a {type(thing).__name__} of {len(thing)}"
    return thing if isinstance(thing, str) and not thing else repr(thing)[:60]


_WORDS: dict[Any, str] = {
    IndexVariable: "the index variable {name}",
    TileSize: "the tile size {name}",
    Scalar: "the scalar {name}",
    TilesOf: "a series of tiles",
    RangeOf: "a range of integers",
    GridOf: "a grid",
    Expr | Integer: "an integer of sizes or indices",
    Gone: "nothing any more",
}


def _article(word: str) -> str:
    return f"an {word}" if word[0] in "aefi" else f"a {word}"
