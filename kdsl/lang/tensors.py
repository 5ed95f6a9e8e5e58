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

    def load(self, *index: Place, mask: TileValue | None = None, fill: float | None = None) -> TileValue:
        """The tile at an index that may leave the tensor.

        Lanes outside, and those that a bool `mask` leaves out, give `fill`; without one they are poison.
        """
        raise OutsideKernelError("a tensor access")


class Written(Generic[*Ts]):
    """What can be stored to."""

    def __setitem__(self, index: Place | tuple[Place, ...], value: Operand) -> None:
        """Store a tile, rounded to the tensor's dtype (nearest even)."""
        raise OutsideKernelError("a tensor access")

    def store(self, *index: Place, value: Operand, mask: TileValue | None = None) -> None:
        """Store a tile in the lanes of a bool mask. Lanes outside the tensor are an error, with or without a mask."""
        raise OutsideKernelError("a tensor access")


class Out(Written[*Ts]):
    """An output tensor, written and never read. A call allocates and returns it."""


class InOut(Tensor[*Ts], Written[*Ts]):
    """A tensor that is read and updated."""

    def atomic_add(self, *index: Place, value: Operand, mask: TileValue | None = None) -> TileValue:
        """Add to elements, one lane after the other whoever else does; gives what each held before.

        This and the other atomics take any index, also one that several lanes share. Where the result goes unused, a
        target may leave it out. Lanes that the mask leaves out do nothing.
        """
        raise OutsideKernelError("a tensor access")

    def atomic_max(self, *index: Place, value: Operand, mask: TileValue | None = None) -> TileValue:
        """Put the larger of the element and the value in its place; a NaN loses."""
        raise OutsideKernelError("a tensor access")

    def atomic_min(self, *index: Place, value: Operand, mask: TileValue | None = None) -> TileValue:
        """Put the smaller of the element and the value in its place; a NaN loses."""
        raise OutsideKernelError("a tensor access")

    def atomic_and(self, *index: Place, value: Operand, mask: TileValue | None = None) -> TileValue:
        """Bitwise and, of integers."""
        raise OutsideKernelError("a tensor access")

    def atomic_or(self, *index: Place, value: Operand, mask: TileValue | None = None) -> TileValue:
        """Bitwise or, of integers."""
        raise OutsideKernelError("a tensor access")

    def atomic_xor(self, *index: Place, value: Operand, mask: TileValue | None = None) -> TileValue:
        """Bitwise exclusive or, of integers."""
        raise OutsideKernelError("a tensor access")

    def atomic_exchange(self, *index: Place, value: Operand, mask: TileValue | None = None) -> TileValue:
        """Store the value."""
        raise OutsideKernelError("a tensor access")

    def atomic_cas(self, *index: Place, expected: Operand, value: Operand, mask: TileValue | None = None) -> TileValue:
        """Store the value where the element equals `expected`; gives what it held before."""
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
