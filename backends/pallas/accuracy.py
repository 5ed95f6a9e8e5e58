"""How far emitted code may be from the exact result, op by op: on the host stand-in (XLA on x86) and on a TPU.

An entry covers both. Ops that are not here are rounded correctly. ulps are of the result's dtype; `absolute` is for
results that a function loses relative accuracy on.
"""

from __future__ import annotations

from kdsl.runtime.target import Accuracy, AccuracyTable

# XLA on x86 and the TPU's vector unit both flush denormal results to zero.
TINY = 2.0**-126

# Assumed: that a TPU's functions are as XLA's on x86, for no vendor document states figures, and that its matrix unit
# adds products up in f32, rounded to nearest.
# The figures: the largest error met on 2**20 random arguments in each of the ranges that matter, against float64
# (jaxlib 0.10.2, x86), rounded up. No vendor document states any for TPUs: there they are an assumption.
MEASURED = "measured with XLA on x86, jaxlib 0.10.2; assumed for TPUs, for which no figures are published"
FLUSHED = "rounded correctly (IEEE 754), but denormals are flushed to zero"

_FUNCTIONS = {
    "exp": 2.0,  # met: 0.99
    "exp2": 128.0,  # met: 68; computed as exp(x * log 2), whose error grows with x
    "log": 2.0,  # met: 1.15
    "log2": 4.0,  # met: 2.3
    "rsqrt": 2.0,  # met: 1.0
    "sqrt": 2.0,  # met: 0.5; x * rsqrt(x) on TPUs
    "sin": 2.0,  # met: 0.56, up to |x| = 2**30
    "cos": 2.0,  # met: 0.56, up to |x| = 2**30
    "tanh": 8.0,  # met: 4.6
    "erf": 8.0,  # met: 6.7
    "sigmoid": 4.0,  # met: 2.4
    "log10": 4.0,  # met: 2.6
    "log1p": 4.0,  # met: 2.5
    "tan": 2.0,  # met: 0.91, up to |x| = 100
    "pow": 2.0,  # met: 0.51, exponents in [-1, 1]
    "atan2": 2.0,  # met: 1.4
    # By formulas of this target's own (functions.py); sinh and cosh up to |x| = 80.
    "expm1": 4.0,  # met: 2.7
    "cbrt": 2.0,  # met: 1.3
    "asin": 4.0,  # met: 2.2
    "acos": 4.0,  # met: 1.9
    "atan": 2.0,  # met: 0.82
    "sinh": 5.0,  # met: 3.2
    "cosh": 4.0,  # met: 2.7
    "asinh": 4.0,  # met: 2.9
    "acosh": 4.0,  # met: 3.0
    "atanh": 5.0,  # met: 3.3
}

ACCURACY: AccuracyTable = {
    **{(op, "*"): Accuracy(0.5, TINY, FLUSHED) for op in ("add", "sub", "mul", "cast", "floor", "ceil", "scan")},
    # A divisor that is broadcast is inverted once, and its reciprocal rounded: met 1.47.
    ("div", "*"): Accuracy(2.0, TINY, MEASURED),
    **{(op, "*"): Accuracy(ulp, TINY, MEASURED) for op, ulp in _FUNCTIONS.items()},
    # bf16 functions are float32's, rounded once more.
    **{(op, "bf16"): Accuracy(1.0, TINY, MEASURED) for op in (*_FUNCTIONS, "div")},
    # Of each product, before the sum: six bfloat16 passes on a TPU leave out terms of 2**-23 (three 8-bit parts of an
    # operand each; the two products of second and third parts are the largest not computed).
    **{
        (op, "f32"): Accuracy(2.5, TINY, "jax.lax.Precision.HIGHEST: exact on x86, six bfloat16 passes on TPUs")
        for op in ("dot", "dot_scaled")
    },
}
