"""What the dtypes are called: as Triton types, in pointer signatures, in torch. What is missing, the target lacks."""

from __future__ import annotations

from kdsl.ir.dtypes import DType

TYPES: dict[str, str] = {
    "bool": "tl.int1", "i8": "tl.int8", "i16": "tl.int16", "i32": "tl.int32", "i64": "tl.int64",
    "u8": "tl.uint8", "u16": "tl.uint16", "u32": "tl.uint32", "u64": "tl.uint64",
    "f16": "tl.float16", "bf16": "tl.bfloat16", "f32": "tl.float32", "f64": "tl.float64",
    "f8e4m3": "tl.float8e4nv", "f8e5m2": "tl.float8e5", "f8e4m3fnuz": "tl.float8e4b8",
}  # fmt: skip
POINTERS: dict[str, str] = {
    "bool": "*i1", "f16": "*fp16", "bf16": "*bf16", "f32": "*fp32", "f64": "*fp64",
    "f8e4m3": "*fp8e4nv", "f8e5m2": "*fp8e5", "f8e4m3fnuz": "*fp8e4b8",
}  # fmt: skip
TORCH: dict[str, str] = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz",
}  # fmt: skip
# What tl.dot_scaled calls its operands' formats.
SCALED_FORMATS = {"f8e4m3": "e4m3", "f8e5m2": "e5m2", "bf16": "bf16"}


def is_narrow(dtype: DType) -> bool:
    """A float of 16 bits: Triton's mathematical functions do not take it."""
    return dtype.is_float and dtype.bits == 16


def is_f8(dtype: DType) -> bool:
    """A float of 8 bits: for memory, casts and dots only."""
    return dtype.is_float and dtype.bits == 8
