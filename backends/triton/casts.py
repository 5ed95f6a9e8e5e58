"""Casts: what Triton's own conversions do not do as the op table says is done by helpers."""

from __future__ import annotations

import numpy as np

from kdsl.ir.dtypes import BOOL
from kdsl.ir.kernel import Op

from .dtypes import TYPES, is_f8, is_narrow

# For round_to: explicit fraction bits, the smallest normal and the largest number, and what is beyond that one. All
# finite bf16 numbers have the exponents of f32, subnormal ones too.
FORMATS = {
    "f8e4m3": (3, 2.0**-6, 448.0, 'float("nan")'),
    "f8e5m2": (2, 2.0**-14, 57344.0, 'float("inf")'),
    "f8e4m3fnuz": (3, 2.0**-7, 240.0, 'float("nan")'),
    "f16": (10, 2.0**-14, 65504.0, 'float("inf")'),
    "bf16": (7, 0.0, 3.3895313892515355e38, 'float("inf")'),
}


def cast(op: Op, untyped: bool) -> str:
    """The template of a cast. `untyped`: whether the operand may be a plain number."""
    source, target = op.operands[0].dtype, op.result.dtype
    typed = TYPES[target.name]
    if target == BOOL:
        return "({0}.to(tl.float32) != 0)" if is_f8(source) else "{0} != 0"
    if source.is_float and target.is_integer:
        limits = np.iinfo(target.numpy)
        wide = "{0}.to(tl.float32)" if is_narrow(source) or is_f8(source) else "{0}"
        return f"saturating_cast({wide}, {limits.min}, {limits.max}, {typed})"
    special = bool(op.attributes.get("saturate")) or op.attributes.get("rounding") == "zero"
    if (is_f8(target) and source != target) or (special and target.name in FORMATS):
        return _rounded(op, untyped)
    if untyped:
        return f"tl.cast({{0}}, {typed})"
    # f32 cannot hold every 32-bit integer: on the way to 16 bits the value would be rounded twice.
    if source.is_integer and source.bits >= 32 and is_narrow(target):
        return f"{{0}}.to(tl.float64).to({typed})"
    via_f32 = is_f8(source) and target.name not in (source.name, "f32")
    return f"{{0}}.to(tl.float32).to({typed})" if via_f32 else f"{{0}}.to({typed})"


def _rounded(op: Op, untyped: bool) -> str:
    """By way of an f32 that the narrow format holds: Triton's own conversions to 8 bits saturate on some GPUs, and
    round twice on others."""
    source, target = op.operands[0].dtype, op.result.dtype
    wide = "tl.cast({0}, tl.float32)" if untyped else "{0}" if source.name == "f32" else "{0}.to(tl.float32)"
    mantissa, smallest, largest, beyond = FORMATS[target.name]
    to_zero, saturate = op.attributes.get("rounding") == "zero", bool(op.attributes.get("saturate"))
    infinite = str(largest) if saturate else beyond
    finite = str(largest) if saturate or to_zero else beyond  # where a finite number is too large
    rounded = f"round_to({wide}, {mantissa}, {smallest}, {largest}, {finite}, {infinite}, {to_zero})"
    return f"f8e5m2_bits({rounded})" if target.name == "f8e5m2" else f"{rounded}.to({TYPES[target.name]})"
