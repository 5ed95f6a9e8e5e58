"""Element types: what a value's elements are, how NumPy stores them, and how two of them promote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["bool", "int", "uint", "float"]


@dataclass(frozen=True)
class DType:
    """An element type. `bits` is its width in memory; `mantissa` counts explicit fraction bits (floats only)."""

    name: str
    kind: Kind
    bits: int
    mantissa: int = 0

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype that stores it exactly (ml_dtypes supplies what NumPy lacks)."""
        import ml_dtypes
        import numpy as np

        if self.name in _ML_DTYPES:
            added: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[self.name]))
            return added
        plain: np.dtype[Any] = np.dtype("bool" if self.kind == "bool" else f"{self.kind}{self.bits}")
        return plain

    @property
    def is_storage(self) -> bool:
        """Whether it is for memory, casts and dots only: no target computes in it."""
        return self.bits == 4 or (self.kind == "float" and self.bits == 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    def __str__(self) -> str:
        return self.name


BOOL = DType("bool", "bool", 8)
I8, I16, I32, I64 = (DType(f"i{bits}", "int", bits) for bits in (8, 16, 32, 64))
U8, U16, U32, U64 = (DType(f"u{bits}", "uint", bits) for bits in (8, 16, 32, 64))
F16, BF16 = DType("f16", "float", 16, 10), DType("bf16", "float", 16, 7)
F32, F64 = DType("f32", "float", 32, 23), DType("f64", "float", 64, 52)

# 8-bit floats of the OCP 8-bit Floating Point Specification 1.0 (e4m3 has no infinity), and AMD's e4m3 with one zero.
F8E4M3, F8E5M2 = DType("f8e4m3", "float", 8, 3), DType("f8e5m2", "float", 8, 2)
F8E4M3FNUZ = DType("f8e4m3fnuz", "float", 8, 3)
# 4-bit types: integers, one in a byte in NumPy arrays, and the e2m1 float of the Microscaling formats.
I4, U4, F4E2M1 = DType("i4", "int", 4), DType("u4", "uint", 4), DType("f4e2m1", "float", 4, 1)

DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        *(BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64),
        *(F8E4M3, F8E5M2, F8E4M3FNUZ, I4, U4, F4E2M1),
    )
}

_ML_DTYPES = {
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f4e2m1": "float4_e2m1fn",
    "i4": "int4",
    "u4": "uint4",
}


def from_numpy(dtype: Any) -> DType | None:
    """The DType that a NumPy dtype stores, or None."""
    return next((candidate for candidate in DTYPES.values() if candidate.numpy == dtype), None)


def holds_number(dtype: DType, value: object) -> bool:
    """Whether a Python number may stand for an element: an integer in range, a bool, any number for a float."""
    if dtype.kind == "bool":
        return isinstance(value, bool)
    if dtype.is_float:
        return isinstance(value, int | float)
    lowest = -(1 << dtype.bits - 1) if dtype.kind == "int" else 0
    return isinstance(value, int) and lowest <= value < lowest + (1 << dtype.bits)


def promote(left: DType, right: DType) -> DType | None:
    """The common type of two tiles, as JAX promotes arrays; None where no type holds both (u64 with a signed integer).

    Python scalars do not come here: they are weak and take the tile's type.
    """
    if left == right:
        return left
    if left.kind == "bool":
        return right
    if right.kind == "bool":
        return left
    if left.is_float and right.is_float:
        # Neither 16-bit float holds the other's values.
        return (left if left.bits > right.bits else right) if left.bits != right.bits else F32
    if left.is_float or right.is_float:
        return left if left.is_float else right
    if left.kind == right.kind:
        return left if left.bits > right.bits else right
    signed, unsigned = (left, right) if left.kind == "int" else (right, left)
    if signed.bits > unsigned.bits:
        return signed
    return DTYPES[f"i{2 * unsigned.bits}"] if unsigned.bits < 64 else None
