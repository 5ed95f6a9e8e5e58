"""How far the oracle itself is from the exact result. An op without an entry is rounded correctly."""

from __future__ import annotations

from kdsl.runtime.target import Accuracy, AccuracyTable

_DOUBLE = Accuracy(1.0, source="NumPy's SIMD loops for f64 aim at 1 ulp: github.com/numpy/numpy/pull/29699")
_SINGLE = Accuracy(4.0, source="NumPy's SIMD loops for f32 aim at 4 ulp: github.com/numpy/numpy/pull/29699")
_HALF = Accuracy(0.51, source="computed in f32 (4 ulp of it), then rounded")
_WIDE = Accuracy(0.51, source="computed in f64 (a few ulp of it), then rounded: kdsl.ir.meaning.wide")
_NUMPY = ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tanh")
_THROUGH_F64 = (
    *("rsqrt", "erf", "sigmoid", "pow", "atan2", "log1p", "expm1", "cbrt", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "asinh", "acosh", "atanh"),
)

ACCURACY: AccuracyTable = {
    **{(op, "f64"): _DOUBLE for op in _NUMPY},
    **{(op, "f32"): _SINGLE for op in _NUMPY},
    **{(op, dtype): _HALF for op in _NUMPY for dtype in ("f16", "bf16")},
    **{(op, "*"): _WIDE for op in _THROUGH_F64},
    **{(op, "f64"): Accuracy(4.0, source="a few f64 operations, each of 1 ulp") for op in _THROUGH_F64},
}
