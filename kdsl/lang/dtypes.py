"""Element types as authors write them. They are classes, so that they may stand in annotations.

class T(kdsl.DType): ...      a dtype variable: every tensor that says T has the same dtype, chosen at the call
"""

from __future__ import annotations


class DType:
    """An element type; a subclass of a user's own is a dtype variable."""


class bool_(DType):
    """True or False, one byte in memory."""


class i8(DType):
    """8-bit signed integer."""


class i16(DType):
    """16-bit signed integer."""


class i32(DType):
    """32-bit signed integer."""


class i64(DType):
    """64-bit signed integer."""


class u8(DType):
    """8-bit unsigned integer."""


class u16(DType):
    """16-bit unsigned integer."""


class u32(DType):
    """32-bit unsigned integer."""


class u64(DType):
    """64-bit unsigned integer."""


class f16(DType):
    """IEEE half precision: 5 exponent bits, 10 fraction bits."""


class bf16(DType):
    """bfloat16: 8 exponent bits, 7 fraction bits."""


class f32(DType):
    """IEEE single precision."""


class f64(DType):
    """IEEE double precision."""


class f8e4m3(DType):
    """8-bit float for storage, casts and dots: 4 exponent bits, 3 fraction bits, no infinity (OCP)."""


class f8e5m2(DType):
    """8-bit float for storage, casts and dots: 5 exponent bits, 2 fraction bits (OCP)."""


class f8e4m3fnuz(DType):
    """8-bit float for storage, casts and dots: as f8e4m3 with another bias, one zero and one NaN (AMD)."""


class f4e2m1(DType):
    """4-bit float for storage, casts and dots: 2 exponent bits, 1 fraction bit, neither infinity nor NaN (OCP)."""


class i4(DType):
    """4-bit signed integer for storage and casts."""


class u4(DType):
    """4-bit unsigned integer for storage and casts."""


NAMES: dict[type[DType], str] = {dtype: dtype.__name__.rstrip("_") for dtype in DType.__subclasses__()}
