"""What annotations of a kernel's parameters are made of: tensors, scalars, tile sizes and constants."""

from __future__ import annotations

from typing import Annotated, Generic, TypeAlias, TypeVar, TypeVarTuple

from kdsl.lang.tiles import Operand, OutsideKernelError, Place, TileValue

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


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
    """A tensor that is read and updated."""

    def __setitem__(self, index: Place | tuple[Place, ...], value: Operand) -> None:
        """Store a tile, rounded to the tensor's dtype (nearest even)."""
        raise OutsideKernelError("a tensor access")


class Scalar(TileValue, Generic[T]):
    """A number passed by value: `Scalar[f32]`."""


class Marker:
    """Tells parameters that are all plain values to a type checker apart."""

    def __init__(self, name: str) -> None:
        self.name = name


# A tile size: schedule only, never part of a result.
Tile: TypeAlias = Annotated[int, Marker("tile")]
# A compile-time value: the kernel is elaborated anew for each.
Const: TypeAlias = Annotated[T, Marker("const")]
