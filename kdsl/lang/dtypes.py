"""Element types as authors write them. They are classes, so that they may stand in annotations.

    class T(kdsl.DType): ...      a dtype variable: every tensor that says T has the same dtype, chosen at the call
"""

from __future__ import annotations


class DType:
    """An element type; a subclass of a user's own is a dtype variable."""


class bool_(DType):  # noqa: N801 - dtypes are written in lower case everywhere
    """True or False, one byte in memory."""


class i8(DType):  # noqa: N801
    """8-bit signed integer."""


class i16(DType):  # noqa: N801
    """16-bit signed integer."""


class i32(DType):  # noqa: N801
    """32-bit signed integer."""


class i64(DType):  # noqa: N801
    """64-bit signed integer."""


class u8(DType):  # noqa: N801
    """8-bit unsigned integer."""


class u16(DType):  # noqa: N801
    """16-bit unsigned integer."""


class u32(DType):  # noqa: N801
    """32-bit unsigned integer."""


class u64(DType):  # noqa: N801
    """64-bit unsigned integer."""


class f16(DType):  # noqa: N801
    """IEEE half precision: 5 exponent bits, 10 fraction bits."""


class bf16(DType):  # noqa: N801
    """bfloat16: 8 exponent bits, 7 fraction bits."""


class f32(DType):  # noqa: N801
    """IEEE single precision."""


class f64(DType):  # noqa: N801
    """IEEE double precision."""


NAMES: dict[type[DType], str] = {
    dtype: dtype.__name__.rstrip("_") for dtype in (bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64)
}
