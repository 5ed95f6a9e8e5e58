"""Rows of the op table: more pointwise functions, most of them met in Triton kernels or its libdevice."""

from __future__ import annotations

import numpy as np

from kdsl.ir import errors, functions, meaning, type_rules
from kdsl.ir.dtypes import BOOL
from kdsl.ir.kernel import Kernel, Op
from kdsl.ir.spec import OpSpec, define, define_pointwise, define_unary
from kdsl.ir.type_rules import OpTypeError, Type

_FLOAT, _INTEGER, _NUMBER = type_rules.same("float"), type_rules.same("int uint"), type_rules.same("int uint float")

define_pointwise("truncdiv", "x / y of integers, rounded to zero; 0 where y is 0", _INTEGER, functions.truncdiv)
define_pointwise("truncmod", "x - y * truncdiv(x, y), with x's sign; 0 where y is 0", _INTEGER, functions.truncmod)
define_pointwise("mulhi", "the upper half of the double-width product", _INTEGER, functions.mulhi)
define_pointwise("maxnum", "the larger; the other one if one is NaN", _FLOAT, np.fmax, errors.largest)
define_pointwise("minnum", "the smaller; the other one if one is NaN", _FLOAT, np.fmin, errors.largest)
define_pointwise("precise_div", "x / y, correctly rounded on every target", _FLOAT, np.divide, errors.quotient)
define_unary("precise_sqrt", "square root, correctly rounded on every target", np.sqrt, errors.power(0.5))
define_pointwise("fma", "x * y + z, rounded once", _FLOAT, functions.fma, errors.fused, "x y z")
define_pointwise("clamp", "min(max(x, y), z); NaN if any is NaN", _NUMBER, functions.clamp, errors.largest, "x y z")
define_pointwise("fmod", "x - y * trunc(x / y), exact, with x's sign", _FLOAT, np.fmod, errors.remainder)
define_pointwise("pow", "x ** y", _FLOAT, functions.power, errors.powers)
define_pointwise("atan2", "the angle of the point (y, x)", _FLOAT, functions.wide2(np.arctan2), errors.angle)
define_pointwise("copysign", "|x| with y's sign", _FLOAT, np.copysign, errors.signed)

define_unary("trunc", "the integer next to x towards zero", np.trunc, errors.stepwise)
define_unary("round", "the nearest integer, ties to even", functions.round_even, errors.stepwise)
define_unary("log10", "logarithm to base 10", np.log10, errors.logarithm(10.0))
define_unary("log1p", "log(1 + x)", meaning.wide(np.log1p), errors.monotone(np.log1p, low=-1.0))
define_unary("expm1", "exp(x) - 1", meaning.wide(np.expm1), errors.monotone(np.expm1))
define_unary("cbrt", "cube root", meaning.wide(np.cbrt), errors.monotone(np.cbrt))
define_unary("tan", "tangent, x in radians", meaning.wide(np.tan), errors.tangent)
define_unary("asin", "inverse sine", meaning.wide(np.arcsin), errors.monotone(np.arcsin, -1.0, 1.0))
define_unary("acos", "inverse cosine", meaning.wide(np.arccos), errors.monotone(np.arccos, -1.0, 1.0))
define_unary("atan", "inverse tangent", meaning.wide(np.arctan), errors.monotone(np.arctan))
define_unary("sinh", "hyperbolic sine", meaning.wide(np.sinh), errors.monotone(np.sinh))
define_unary("cosh", "hyperbolic cosine", meaning.wide(np.cosh), errors.hyperbolic_cosine)
define_unary("asinh", "inverse hyperbolic sine", meaning.wide(np.arcsinh), errors.monotone(np.arcsinh))
define_unary("acosh", "inverse hyperbolic cosine", meaning.wide(np.arccosh), errors.monotone(np.arccosh, low=1.0))
define_unary("atanh", "inverse hyperbolic tangent", meaning.wide(np.arctanh), errors.monotone(np.arctanh, -1.0, 1.0))

for _name, _doc, _test in (
    ("is_nan", "whether x is NaN", np.isnan),
    ("is_inf", "whether x is infinite", np.isinf),
    ("is_finite", "whether x is neither", np.isfinite),
):
    define_pointwise(_name, _doc, type_rules.same("float", BOOL), _test, operands="x")


def _bitcast(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (value,) = op.operands
    if value.dtype.bits != op.result.dtype.bits or BOOL in (value.dtype, op.result.dtype):
        raise OpTypeError(f"{value.dtype} and {op.result.dtype} differ in width")
    return (Type(op.result.dtype, value.axes),)


define(
    OpSpec(
        "bitcast",
        "the same bits, read as the result's dtype",
        ("x",),
        _bitcast,
        evaluate=lambda frame, op, operands: [np.ascontiguousarray(operands[0]).view(op.result.dtype.numpy)],
        error=errors.anything,
    )
)
