"""Tiles and index variables: what expressions in a kernel's body are made of.

The methods exist for editors and type checkers. A kernel's body is never run: its syntax tree is read, so outside a
kernel every one of them raises OutsideKernelError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, Union

if TYPE_CHECKING:
    from kdsl.lang.dims import Dim, Integer
    from kdsl.lang.dtypes import DType


class OutsideKernelError(TypeError):
    """Something that means a thing only inside a kernel was run as plain Python."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} has a meaning only inside a function decorated with @kdsl.kernel or @kdsl.inline; "
            "call the kernel with arrays to compute with it"
        )


class TileValue:
    """Values over tile axes: what loads and operations give. Axes align by identity, never by position."""

    def __add__(self, other: Operand) -> TileValue:
        raise OutsideKernelError("arithmetic on tiles")

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = __add__
    __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __add__
    __pow__ = __rpow__ = __add__
    __lt__ = __le__ = __gt__ = __ge__ = __add__

    def __eq__(self, other: Operand) -> TileValue:  # type: ignore[override]  # a comparison of tiles is a tile
        raise OutsideKernelError("a comparison of tiles")

    def __ne__(self, other: Operand) -> TileValue:  # type: ignore[override]  # a comparison of tiles is a tile
        raise OutsideKernelError("a comparison of tiles")

    __hash__ = object.__hash__

    def __neg__(self) -> TileValue:
        raise OutsideKernelError("arithmetic on tiles")

    __pos__ = __invert__ = __neg__

    def to(self, dtype: type[DType]) -> TileValue:
        """The values cast: floats round to nearest even, floats to integers truncate and saturate, integers wrap."""
        raise OutsideKernelError("a cast")


class Index(TileValue):
    """An index variable: a tile of consecutive points of a dimension, or a single one."""

    @property
    def index(self) -> TileValue:
        """The points' places in the whole dimension: an i32 tile."""
        raise OutsideKernelError("an index variable")

    @property
    def start(self) -> Integer:
        """The place of the tile's first point."""
        raise OutsideKernelError("an index variable")

    @property
    def stop(self) -> Integer:
        """One past the place of the tile's last valid point."""
        raise OutsideKernelError("an index variable")

    @property
    def size(self) -> Integer:
        """The size of the whole dimension."""
        raise OutsideKernelError("an index variable")


# Unions of names that type checkers alone know have to be strings.
Operand: TypeAlias = Union[TileValue, float, "type[Dim]"]
Place: TypeAlias = TileValue | int | slice
AxisLike: TypeAlias = Union[Index, "type[Dim]"]
