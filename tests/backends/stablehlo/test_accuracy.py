"""The accuracy table holds what is measured: each function over a million values, against NumPy's long double."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kdsl.backends.stablehlo import TARGET
from kdsl.backends.stablehlo.accuracy import ULP
from kdsl.ir.dtypes import DTYPES
from tests.backends.stablehlo import kernels

pytest.importorskip("jax", reason="an extra; tests/test_extras.py fails without it")

Array = np.ndarray[Any, Any]
EXACT: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": lambda x: np.frompyfunc(math.erf, 1, 1)(x.astype(np.float64)).astype(np.longdouble),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    **{name: getattr(np, name) for name in ("log10", "log1p", "expm1", "cbrt", "tan", "sinh", "cosh")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "pow": np.power,
    "atan2": np.arctan2,
}
RANGES = {"exp": 85, "exp2": 120, "sin": 100, "cos": 100, "tanh": 10, "erf": 6, "sigmoid": 80}
RANGES |= {"expm1": 85, "cbrt": 1e6, "tan": 100, "asin": 1, "acos": 1, "atan": 1e3, "sinh": 80, "cosh": 80}
RANGES |= {"asinh": 1e6, "atanh": 0.999, "atan2": 1e3}


def operands(op: str, dtype: str, count: int) -> Array:
    """Over the whole range, densely around 0 or 1, and small ones."""
    rng = np.random.default_rng(0)
    if op in RANGES:
        spread = rng.uniform(-RANGES[op], RANGES[op], count // 2)
        near = rng.standard_normal(count // 2) * 2.0 ** rng.uniform(-12, 1, count // 2)
    else:
        top = 15 if dtype == "f16" else 126
        spread, near = 2.0 ** rng.uniform(-top + 1, top, count // 2), rng.uniform(0.5, 2, count // 2)
    x = np.concatenate([spread, near])
    if op in ("asin", "acos", "atanh"):
        x = np.clip(x, -RANGES[op], RANGES[op])
    if op in ("acosh", "log1p"):
        x = x + 1 if op == "acosh" else np.concatenate([spread, near - 1.2])
    return x.astype(kernels.NUMPY[dtype])


def second_operand(op: str, dtype: str, x: Array) -> Array:
    """For pow, an exponent that keeps the result in range; for atan2, the same numbers in another order."""
    rng = np.random.default_rng(1)
    if op != "pow":
        return rng.permutation(x)
    return rng.uniform(-1, 1, len(x)).astype(kernels.NUMPY[dtype])


def largest_error(op: str, dtype: str, got: Array, *operands: Array) -> float:
    """In units in the last place of the result, beyond the absolute error that the table allows."""
    smallest_exponent = {"f16": -14, "f32": -126, "bf16": -126, "f64": -1022}[dtype]
    with np.errstate(all="ignore"):
        want = EXACT[op](*(each.astype(np.longdouble) for each in operands))
        exponent = np.floor(np.log2(np.abs(want))).astype(np.float64)
    # A result that overflows is infinite, which no bound speaks of.
    normal = (exponent < -smallest_exponent) & (np.abs(operands[0].astype(np.longdouble)) >= 2.0**smallest_exponent)
    unit = np.ldexp(np.longdouble(1), (np.maximum(exponent, smallest_exponent) - DTYPES[dtype].mantissa).astype(int))
    error = np.abs(got.astype(np.longdouble) - want) - TARGET.accuracy[op, dtype].absolute
    return float((error / unit)[normal].max())


SLOW = [pytest.param(dtype, 1 << 20, marks=pytest.mark.slow) for dtype in ("f32", "f64", "bf16", "f16")]


@pytest.mark.parametrize(("dtype", "count"), [("f32", 1 << 12), *SLOW])
def test_no_function_is_further_off_than_the_table_says(dtype: str, count: int) -> None:
    measured = {}
    for op in ULP:
        x = operands(op, dtype, count)
        kernel = kernels.each_op(dtype, [(op, dtype)], lanes=1024)
        source = TARGET.emit(kernel, {}, {"N": count})
        y = second_operand(op, dtype, x)
        (got,) = TARGET.run(source, {"N": count}, {"x": x, "y": y}).values()
        given = (x, y) if op in ("pow", "atan2") else (x,)
        measured[op] = round(largest_error(op, dtype, got, *given), 3)
    assert {op: error for op, error in measured.items() if error > TARGET.accuracy[op, dtype].ulp} == {}, measured
