"""Dimensions, and the integers that arithmetic on them gives.

    class M(kdsl.Dim): ...                           its size is read off the arguments
    class LO(kdsl.Dim, size=(L - W) // S + 1): ...   its size is computed

A `Dim` is a class so that it may stand in annotations; in expressions it is its size, a symbolic integer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, overload

from kdsl.ir.expr import Expr, symbol, wrap
from kdsl.lang.tiles import Index, Operand, OutsideKernelError, TileValue


class SizeOperator(Protocol):
    """An operator of a size: with an integer it gives an integer, with anything else a tile."""

    @overload
    def __call__(self, other: Size, /) -> Integer: ...
    @overload
    def __call__(self, other: Operand, /) -> TileValue: ...


def _operator(function: Callable[[Expr, Expr], Expr], reflected: bool = False) -> SizeOperator:
    def apply(this: Any, other: Any) -> Integer:
        try:
            left, right = as_expr(this), as_expr(other)
        except TypeError:
            raise OutsideKernelError(f"arithmetic on a size and {other!r}") from None
        return Integer(function(right, left) if reflected else function(left, right))

    return cast(SizeOperator, apply)


def _inside(what: str) -> Callable[[Any, Operand], TileValue]:
    def apply(this: Any, other: Operand) -> TileValue:
        raise OutsideKernelError(what)

    return apply


class DimMeta(type):
    """Makes a Dim class usable as the integer that its size is."""

    __add__, __radd__ = _operator(operator.add), _operator(operator.add, reflected=True)
    __sub__, __rsub__ = _operator(operator.sub), _operator(operator.sub, reflected=True)
    __mul__, __rmul__ = _operator(operator.mul), _operator(operator.mul, reflected=True)
    __floordiv__, __rfloordiv__ = _operator(operator.floordiv), _operator(operator.floordiv, reflected=True)
    __mod__, __rmod__ = _operator(operator.mod), _operator(operator.mod, reflected=True)
    __truediv__ = __rtruediv__ = _inside("a division of sizes that is not `//`")
    __lt__ = __le__ = __gt__ = __ge__ = _inside("a comparison of sizes")

    if TYPE_CHECKING:  # classes compare by identity; this tells a checker that `require(K == 8)` makes sense
        __eq__: Callable[[object], bool]  # type: ignore[assignment]  # object says otherwise

    def __neg__(cls) -> Integer:
        return Integer(-as_expr(cls))

    def __iter__(cls) -> Iterator[Index]:
        """The dimension's points, one by one, in order."""
        raise OutsideKernelError(f"a loop over {cls.__name__}")


class Dim(metaclass=DimMeta):
    """A dimension. `size=` gives a computed one; otherwise it is read off shapes, or passed as an integer."""

    computed: Expr | None = None

    def __init_subclass__(cls, *, size: Size | None = None) -> None:
        cls.computed = None if size is None else as_expr(size)

    @classmethod
    def tiles(cls, tile: int, *, start: Limit | None = None, stop: Limit | None = None) -> Tiles:
        """Tiles of `tile` points from `start` (0) up to `stop` (the dimension's end), the last one possibly ragged."""
        raise OutsideKernelError(f"{cls.__name__}.tiles")


class Integer(TileValue):
    """An integer known when a kernel is called: a size, the start of a tile, or arithmetic on them."""

    def __init__(self, form: Expr) -> None:
        self.form = form

    __add__, __radd__ = _operator(operator.add), _operator(operator.add, reflected=True)
    __sub__, __rsub__ = _operator(operator.sub), _operator(operator.sub, reflected=True)
    __mul__, __rmul__ = _operator(operator.mul), _operator(operator.mul, reflected=True)
    __floordiv__, __rfloordiv__ = _operator(operator.floordiv), _operator(operator.floordiv, reflected=True)
    __mod__, __rmod__ = _operator(operator.mod), _operator(operator.mod, reflected=True)

    def __neg__(self) -> Integer:
        return Integer(-self.form)

    def __repr__(self) -> str:
        return str(self.form)


class Tiles:
    """What `Dim.tiles` gives: a loop over it runs tile by tile, in order; `grid` runs its tiles as programs."""

    def __iter__(self) -> Iterator[Index]:
        raise OutsideKernelError("a loop over tiles")


Size: TypeAlias = int | Integer | type[Dim]
Limit: TypeAlias = TileValue | int | type[Dim]
Axes: TypeAlias = type[Dim] | Tiles


def as_expr(size: Any) -> Expr:
    """The symbolic integer that a size is; a computed dimension is what it is computed from.

    Raises TypeError for anything else.
    """
    if isinstance(size, Integer):
        return size.form
    if isinstance(size, type) and issubclass(size, Dim):
        return size.computed if size.computed is not None else symbol(size.__name__)
    if isinstance(size, int) and not isinstance(size, bool):
        return wrap(size)
    raise TypeError(f"{size!r} is no size: expected a Dim, an integer or an expression of them")


@overload
def grid(first: Axes, /) -> Iterator[Index]: ...
@overload
def grid(first: Axes, second: Axes, /) -> Iterator[tuple[Index, Index]]: ...
@overload
def grid(first: Axes, second: Axes, third: Axes, /) -> Iterator[tuple[Index, Index, Index]]: ...
@overload
def grid(first: Axes, second: Axes, third: Axes, fourth: Axes, /) -> Iterator[tuple[Index, Index, Index, Index]]: ...
@overload
def grid(
    first: Axes, second: Axes, third: Axes, fourth: Axes, fifth: Axes, /
) -> Iterator[tuple[Index, Index, Index, Index, Index]]: ...
def grid(*axes: Axes) -> Iterator[Any]:
    """The kernel's programs, one for each combination of tiles or points, in any order. One grid a kernel."""
    raise OutsideKernelError("kdsl.grid")


def range(start: Limit, stop: Limit, step: Size = 1) -> Iterator[Integer]:
    """The integers from `start` up to `stop`, in order, as for a persistent loop over work that programs share.

    `start` and `stop` may be known only when the kernel runs; `step` is positive. An access at such an integer promises
    to stay inside the tensor.
    """
    raise OutsideKernelError("kdsl.range")
