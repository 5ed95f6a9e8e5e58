"""What names may mean while a kernel is traced, besides plain Python objects and IR values.

Expr            a size, or an index form: integers known only when the kernel runs
IndexVariable   the target of a grid or a loop
TensorRef       a tensor argument
TileSize        a Tile parameter, which may only go into `tiles(...)`
TilesOf, GridOf what `Dim.tiles(...)` and `kdsl.grid(...)` give
Gone            a name whose loop has ended, kept for a better message
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kdsl.diagnostics import Location
from kdsl.ir.expr import Expr, symbol
from kdsl.ir.kernel import Buffer, Value
from kdsl.lang.dims import Dim


@dataclass(frozen=True)
class IndexVariable:
    """A run of points of a dimension: `form` is their place in it, `tile` the tile axis, None for a single point."""

    name: str
    form: Expr
    dim: type[Dim] | None
    tile: str | None
    start: Expr
    stop: Expr
    size: Expr


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
class GridOf:
    """The arguments of `kdsl.grid`."""

    axes: tuple[Any, ...]
    location: Location


@dataclass(frozen=True)
class Gone:
    """A name that had a meaning only inside a loop."""

    reason: str


def is_dim(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Dim)


def is_traced(thing: Any) -> bool:
    """Whether it is known only when the kernel runs, so that plain Python cannot compute with it."""
    return isinstance(thing, Value | Expr | IndexVariable | TensorRef | TileSize | TilesOf) or is_dim(thing)


def form_of(thing: Any) -> Expr | None:
    """The integer expression that a thing is, if it is one."""
    if isinstance(thing, IndexVariable):
        return thing.form
    if is_dim(thing):
        return symbol(thing.__name__)
    if isinstance(thing, bool):
        return None
    if isinstance(thing, int):
        return Expr((((), thing),)) if thing else Expr(())
    return thing if isinstance(thing, Expr) else None
