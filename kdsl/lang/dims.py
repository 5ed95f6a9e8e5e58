"""Dimensions, the index variables that run over them, and the tensors that have them.

    class M(kdsl.Dim): ...                       its size is read off the arguments
    class LO(kdsl.Dim, size=(L - W) // S + 1): ...   its size is computed

A `Dim` is a class so that it may stand in annotations; in expressions it is its size, a symbolic integer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, TypeVarTuple, Union, overload

from kdsl.ir.expr import Expr, symbol
from kdsl.lang.dtypes import DType

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class OutsideKernelError(TypeError):
    """Something that means a thing only inside a kernel was run as plain Python."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} has a meaning only inside a function decorated with @kdsl.kernel or @kdsl.inline")


class DimMeta(type):
    """Makes a Dim class usable as the integer that its size is."""

    size: Expr | None

    def __add__(cls, other: Size) -> Expr:
        return as_expr(cls) + as_expr(other)

    def __radd__(cls, other: int) -> Expr:
        return as_expr(cls) + other

    def __sub__(cls, other: Size) -> Expr:
        return as_expr(cls) - as_expr(other)

    def __rsub__(cls, other: int) -> Expr:
        return as_expr(other) - as_expr(cls)

    def __mul__(cls, other: Size) -> Expr:
        return as_expr(cls) * as_expr(other)

    def __rmul__(cls, other: int) -> Expr:
        return as_expr(cls) * other

    def __floordiv__(cls, other: Size) -> Expr:
        return as_expr(cls) // as_expr(other)

    def __mod__(cls, other: Size) -> Expr:
        return as_expr(cls) % as_expr(other)

    def __iter__(cls) -> Iterator[Index]:
        """The dimension's points, one by one, in order."""
        raise OutsideKernelError(f"a loop over {cls.__name__}")


class Dim(metaclass=DimMeta):
    """A dimension. `size=` gives a computed one; otherwise it is read off shapes, or passed as an integer."""

    size: Expr | None = None

    def __init_subclass__(cls, *, size: Expr | type[Dim] | int | None = None) -> None:
        cls.size = None if size is None else as_expr(size)

    @classmethod
    def tiles(cls, tile: int, *, start: Limit | None = None, stop: Limit | None = None) -> Tiles:
        """Tiles of `tile` points from `start` (0) up to `stop` (the dimension's end), the last one possibly ragged."""
        raise OutsideKernelError(f"{cls.__name__}.tiles")


Size: TypeAlias = int | Expr | type[Dim]


def as_expr(size: Any) -> Expr:
    """The symbolic integer that a size is. Raises TypeError for anything else."""
    if isinstance(size, Expr):
        return size
    if isinstance(size, type) and issubclass(size, Dim):
        return symbol(size.__name__)
    if isinstance(size, int) and not isinstance(size, bool):
        return Expr((((), size),)) if size else Expr(())
    raise TypeError(f"{size!r} is no size: expected a Dim, an integer or an expression of them")


class TileValue:
    """Values over tile axes: what loads and operations give. Axes align by identity, never by position."""

    def __add__(self, other: Operand) -> TileValue:
        raise OutsideKernelError("tile arithmetic")

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = __add__
    __xor__ = __rxor__ = __lshift__ = __rshift__ = __lt__ = __le__ = __gt__ = __ge__ = __add__

    def __eq__(self, other: Operand) -> TileValue:  # type: ignore[override]  # a comparison of tiles is a tile
        raise OutsideKernelError("tile arithmetic")

    def __ne__(self, other: Operand) -> TileValue:  # type: ignore[override]  # a comparison of tiles is a tile
        raise OutsideKernelError("tile arithmetic")

    __hash__ = object.__hash__

    def __neg__(self) -> TileValue:
        raise OutsideKernelError("tile arithmetic")

    def __invert__(self) -> TileValue:
        raise OutsideKernelError("tile arithmetic")

    def to(self, dtype: type[DType]) -> TileValue:
        """The values cast: floats round to nearest even, floats to integers truncate and saturate."""
        raise OutsideKernelError("a cast")


class Index(TileValue):
    """An index variable: a tile of consecutive points of a dimension, or a single one."""

    @property
    def index(self) -> TileValue:
        """The points' places in the whole dimension: an i32 tile."""
        raise OutsideKernelError("an index variable")

    @property
    def start(self) -> Expr:
        """The place of the tile's first point."""
        raise OutsideKernelError("an index variable")

    @property
    def stop(self) -> Expr:
        """One past the place of the tile's last valid point."""
        raise OutsideKernelError("an index variable")

    @property
    def size(self) -> Expr:
        """The size of the whole dimension."""
        raise OutsideKernelError("an index variable")


class Tiles:
    """What `Dim.tiles` gives: a loop over it runs tile by tile, in order; `grid` runs its tiles as programs."""

    def __iter__(self) -> Iterator[Index]:
        raise OutsideKernelError("a loop over tiles")


Operand: TypeAlias = TileValue | float | Expr | type[Dim]
Limit: TypeAlias = int | Expr | TileValue | type[Dim]
Place: TypeAlias = Index | TileValue | Expr | int | slice
AxisLike: TypeAlias = Index | type[Dim]


class Tensor(Generic[*Ts]):
    """An input tensor: dimensions, then a dtype or dtype variable last, as in `Tensor[M, K, T]`."""

    def __getitem__(self, index: Place | tuple[Place, ...]) -> TileValue:
        """The tile at an index: one entry a dimension, each an index variable, `:`, an integer or a form of them."""
        raise OutsideKernelError("a tensor access")

    def load(self, *index: Place, fill: float | None = None) -> TileValue:
        """The tile at an index that may leave the tensor: lanes outside give `fill`; without one they are poison."""
        raise OutsideKernelError("a tensor access")


class Out(Generic[*Ts]):
    """An output tensor, written and never read. A call allocates and returns it."""

    def __setitem__(self, index: Place | tuple[Place, ...], value: Operand) -> None:
        """Store a tile, rounded to the tensor's dtype (nearest even)."""
        raise OutsideKernelError("a tensor access")


class InOut(Tensor[*Ts]):
    """A tensor that is read and updated in place."""

    def __setitem__(self, index: Place | tuple[Place, ...], value: Operand) -> None:
        """Store a tile, rounded to the tensor's dtype (nearest even)."""
        raise OutsideKernelError("a tensor access")


class Scalar(TileValue, Generic[T]):
    """A number passed by value: `Scalar[f32]`."""


class Marker:
    """Tells parameters that are all plain integers to a type checker apart."""

    def __init__(self, name: str) -> None:
        self.name = name


# A tile size: schedule only, never part of a result.
Tile: TypeAlias = Annotated[int, Marker("tile")]
# A compile-time value: the kernel is elaborated anew for each.
Const: TypeAlias = Annotated[T, Marker("const")]

Axes = Union[type[Dim], Tiles]


@overload
def grid(first: Axes, /) -> Iterator[Index]: ...
@overload
def grid(first: Axes, second: Axes, /) -> Iterator[tuple[Index, Index]]: ...
@overload
def grid(first: Axes, second: Axes, third: Axes, /) -> Iterator[tuple[Index, Index, Index]]: ...
@overload
def grid(first: Axes, second: Axes, third: Axes, fourth: Axes, /) -> Iterator[tuple[Index, Index, Index, Index]]: ...
def grid(*axes: Axes) -> Iterator[Any]:
    """The kernel's programs, one for each combination of tiles or points, in any order. One grid a kernel."""
    raise OutsideKernelError("grid")
