"""Float types as grids of numbers: spacings, ranges, and when arithmetic on them rounds nothing."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from kdsl.ir.dtypes import DType
from kdsl.ir.meaning import Array

# What f64 itself rounds while it computes a bound is far below this share of it.
SLACK = 2.0**-40
# Grids on which sums of small integers and of their fractions lie, the coarsest first.
_STEPS = (1.0, 2.0**-10)


def lowest_exponent(dtype: DType) -> int:
    """The exponent of the smallest normal number of a float type."""
    return int(ml_dtypes.finfo(dtype.numpy).minexp)


def largest(dtype: DType) -> float:
    """The largest finite number of a float type."""
    return float(ml_dtypes.finfo(dtype.numpy).max)


def smallest_normal(dtype: DType) -> float:
    """The smallest number of a float type that has all its fraction bits; a target may flush what lies below."""
    return float(np.ldexp(1.0, lowest_exponent(dtype)))


def ulp(magnitude: Array, dtype: DType) -> Array:
    """The distance between neighbours of a float type at |magnitude| (f64), at least that of the denormals."""
    lowest = lowest_exponent(dtype)
    exponent = np.frexp(magnitude)[1] - 1
    return np.asarray(np.ldexp(1.0, np.where(magnitude == 0, lowest, np.maximum(exponent, lowest)) - dtype.mantissa))


def gamma(roundings: Array, unit: float) -> Array:
    """n u / (1 - n u): n roundings of relative error u each (Higham 2002, lemma 3.1); infinite where n u reaches 1."""
    total = roundings * unit
    return np.where(total < 1, total / np.where(total < 1, 1 - total, 1), np.inf)


# n independent roundings, spread evenly over [-u, u], add up to no more than this many sqrt(n) u but for one case in
# 10^4: 3.9 standard deviations, of u / sqrt(3) each.
LIKELY = 2.25


def likely_gamma(roundings: Array, unit: float) -> Array:
    """What n roundings of either sign add up to but for one case in 10^4: gamma with LIKELY sqrt(n) in place of n.

    Higham and Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019, theorem
    2.4, whose lambda is LIKELY.
    """
    return gamma(np.minimum(roundings, LIKELY * np.sqrt(roundings)), unit)


def grid(array: Array) -> float | None:
    """The step of the coarsest grid on which all finite elements lie, or None: then their sums may round."""
    finite = np.isfinite(array)
    for step in _STEPS:
        scaled = array / step
        if bool(np.all((scaled == np.rint(scaled)) | ~finite)):
            return step
    return None


def sums_exactly(total: Array, step: float | None, dtype: DType) -> Array:
    """Where terms on a grid whose absolute values add up to `total` have sums that are numbers of the type."""
    return np.asarray(total <= (0.0 if step is None else step) * 2.0 ** (dtype.mantissa + 1))


def is_exact_in_any_order(op: str, operands: list[Array], result: Array, dtype: DType) -> Array:
    """Where an op among others of a sum is seen to round nothing, however that is grouped: small whole numbers, with
    room for other partial results."""
    if op not in ("add", "sub", "mul"):
        return np.asarray(result == 0) & (op == "div")
    whole = [(array == np.rint(array)) & (np.abs(array) < 2.0 ** (dtype.mantissa - 9)) for array in (*operands, result)]
    return np.asarray(np.logical_and.reduce(np.broadcast_arrays(*whole)))


def is_exact(op: str, operands: list[Array], result: Array, dtype: DType) -> Array:
    """Where a correctly rounded op rounded nothing. Operands and result, numbers of the type, are given as f64."""
    if op in ("mul", "div", "sqrt") and dtype.mantissa > 25:  # the products below would round in f64 themselves
        whole = [np.abs(array) <= 2.0**26 for array in (*operands, result)]
        whole += [array == np.rint(array) for array in (*operands, result)]
        return np.asarray(np.logical_and.reduce(np.broadcast_arrays(*whole)) & _recovers(op, operands, result, dtype))
    return _recovers(op, operands, result, dtype)


def _recovers(op: str, operands: list[Array], result: Array, dtype: DType) -> Array:
    if op in ("add", "sub"):
        left, right = operands[0], operands[1] if op == "add" else -operands[1]
        # Knuth's two-sum: what the f64 addition left out is computed without error.
        total = left + right
        seen = total - left
        return np.asarray((total == result) & ((left - (total - seen)) + (right - seen) == 0))
    if op == "mul":
        return np.asarray(operands[0] * operands[1] == result)
    if op == "div":
        return np.asarray((result * operands[1] == operands[0]) & (operands[1] != 0))
    if op == "sqrt":
        return np.asarray(result * result == operands[0])
    if op in ("exp", "exp2"):
        # On every target: 1 at 0, and 0 where the result is below half the smallest denormal.
        lowest = lowest_exponent(dtype) - dtype.mantissa - 1
        return np.asarray((operands[0] == 0) | ((operands[0] < lowest) & (result == 0)))
    return np.zeros(np.shape(result), bool)
