"""How far XLA on x86 is from the exact result, op by op.

The figures are maxima measured with jaxlib 0.10.2 over a million values an op, against NumPy's long double (erf:
`math.erf`), rounded up; `tests/backends/stablehlo/test_accuracy.py` measures them again. Domain: normal operands; sin,
cos and tan up to 100 in magnitude, sinh and cosh up to 80, pow with exponents in [-1, 1]; exp2 of 32 and 64 bits loses
with the size of its argument, as XLA takes exp(x log 2).

XLA flushes results and operands below the smallest normal number to zero in f32, f64 and bf16 (f16 is computed in f32):
an absolute error of that number on every op that rounds.
"""

from __future__ import annotations

from kdsl.runtime.target import Accuracy, AccuracyTable

SMALLEST = {"f32": 2.0**-126, "f64": 2.0**-1022, "bf16": 2.0**-126, "f16": 0.0}
"""The smallest normal number where smaller ones are flushed; 0 where they are kept."""

ULP: dict[str, dict[str, float]] = {
    "exp": {"f32": 1.0, "f64": 1.7, "bf16": 0.51, "f16": 0.51},
    "exp2": {"f32": 72.0, "f64": 96.0, "bf16": 0.51, "f16": 0.51},
    "log": {"f32": 1.2, "f64": 0.6, "bf16": 0.51, "f16": 0.51},
    "log2": {"f32": 2.4, "f64": 1.5, "bf16": 0.51, "f16": 0.51},
    "rsqrt": {"f32": 1.1, "f64": 1.3, "bf16": 0.51, "f16": 0.51},
    "sin": {"f32": 0.6, "f64": 0.6, "bf16": 0.51, "f16": 0.51},
    "cos": {"f32": 0.6, "f64": 0.6, "bf16": 0.51, "f16": 0.51},
    "tanh": {"f32": 5.5, "f64": 6.5, "bf16": 0.51, "f16": 0.51},
    "erf": {"f32": 6.0, "f64": 1.0, "bf16": 0.51, "f16": 0.51},
    "sigmoid": {"f32": 2.6, "f64": 2.6, "bf16": 0.51, "f16": 0.51},
    "log10": {"f32": 3.0, "f64": 2.0, "bf16": 0.51, "f16": 0.51},
    "log1p": {"f32": 3.0, "f64": 140.0, "bf16": 0.51, "f16": 0.51},
    "expm1": {"f32": 6.0, "f64": 4.5, "bf16": 0.51, "f16": 0.51},
    "cbrt": {"f32": 1.2, "f64": 3.5, "bf16": 0.51, "f16": 0.51},
    "tan": {"f32": 1.3, "f64": 0.6, "bf16": 0.51, "f16": 0.51},
    "asin": {"f32": 2.5, "f64": 1.8, "bf16": 0.51, "f16": 0.51},
    "acos": {"f32": 2.0, "f64": 1.5, "bf16": 0.51, "f16": 0.51},
    "atan": {"f32": 1.0, "f64": 0.6, "bf16": 0.51, "f16": 0.51},
    "sinh": {"f32": 28.0, "f64": 20.0, "bf16": 0.51, "f16": 0.51},
    "cosh": {"f32": 28.0, "f64": 20.0, "bf16": 0.51, "f16": 0.51},
    "asinh": {"f32": 3.0, "f64": 2.8, "bf16": 0.51, "f16": 0.51},
    "acosh": {"f32": 3.5, "f64": 3.8, "bf16": 0.51, "f16": 0.51},
    "atanh": {"f32": 3.2, "f64": 140.0, "bf16": 0.51, "f16": 0.51},
    "pow": {"f32": 1.0, "f64": 1.0, "bf16": 0.51, "f16": 0.51},
    "atan2": {"f32": 1.7, "f64": 0.6, "bf16": 0.51, "f16": 0.51},
}
"""The largest error of a function in units in the last place of its result."""

# IEEE operations, rounded once; a division whose divisor XLA would replace by a reciprocal is pinned (`divide`).
# fma is rounded once, by arithmetic in the next wider type; split operands (tf32x3, bf16x3) are multiplied in full.
_ROUNDED = (
    *("add", "sub", "mul", "div", "sqrt", "cast", "reduce", "dot"),
    *("precise_div", "precise_sqrt", "fma", "fmod", "scan", "dot_scaled", "atomic"),
)

ACCURACY: AccuracyTable = {
    (op, dtype): Accuracy(ulp, SMALLEST[dtype], "measured, jaxlib 0.10.2 on x86: see backends/stablehlo/accuracy.py")
    for op, ulps in {**ULP, **{op: dict.fromkeys(SMALLEST, 0.5) for op in _ROUNDED}}.items()
    for dtype, ulp in ulps.items()
}
