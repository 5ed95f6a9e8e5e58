"""NumPy meanings of pointwise functions that NumPy lacks or defines otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kdsl.ir.meaning import Array, narrow


def sigmoid(x: Array) -> Array:
    # The two halves keep exp's argument negative, so that it cannot overflow.
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=np.float64)


def truncdiv(x: Array, y: Array) -> Array:
    """x / y of integers, rounded to zero; 0 where y is 0."""
    safe = np.where(y == 0, np.ones_like(y), y)
    quotient = np.floor_divide(x, safe)
    # Floor and truncation differ by one where the signs differ and something is left over.
    inexact = (np.remainder(x, safe) != 0) & ((x < 0) != (safe < 0))
    return np.where(y == 0, np.zeros_like(x), quotient + inexact.astype(x.dtype))


def truncmod(x: Array, y: Array) -> Array:
    """x - y * truncdiv(x, y): the sign of x; 0 where y is 0."""
    return np.where(y == 0, np.zeros_like(x), np.fmod(x, np.where(y == 0, np.ones_like(y), y)))


def mulhi(x: Array, y: Array) -> Array:
    """The upper half of the double-width product of integers."""
    bits = x.dtype.itemsize * 8
    if bits < 64:
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        return ((x.astype(wide) * y.astype(wide)) >> bits).astype(x.dtype)
    product = np.frompyfunc(lambda a, b: (int(a) * int(b)) >> 64, 2, 1)(x, y)
    return np.asarray(product, dtype=x.dtype)


def fma(x: Array, y: Array, z: Array) -> Array:
    """x * y + z, rounded once."""
    if x.dtype.itemsize < 8:
        # The product of two f32 is exact in f64; the sum, rounded to f64 first, is settled by rounding to odd.
        product, addend = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
        total = product + addend
        shifted = total - product
        rest = (product - (total - shifted)) + (addend - shifted)
        bits = total.view(np.int64) if total.ndim else np.asarray(total).reshape(1).view(np.int64).reshape(())
        towards = np.where(rest > 0, np.inf, -np.inf)
        odd = np.where((rest != 0) & np.isfinite(total) & (bits & 1 == 0), np.nextafter(total, towards), total)
        return narrow(odd, x.dtype)
    exact = np.frompyfunc(_fma_exact, 3, 1)(x, y, z)
    return np.asarray(exact, dtype=x.dtype)


def _fma_exact(x: float, y: float, z: float) -> float:
    from fractions import Fraction

    x, y, z = float(x), float(y), float(z)
    if not all(map(math.isfinite, (x, y, z))):
        return x * y + z
    total = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(total) if total else x * y + z
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def clamp(x: Array, low: Array, high: Array) -> Array:
    """min(max(x, low), high), so `high` where the limits cross; NaN if any of the three is."""
    return np.minimum(np.maximum(x, low), high)


def power(x: Array, y: Array) -> Array:
    """x ** y, computed in f64 and rounded once for narrower types."""
    return narrow(np.power(x.astype(np.float64), y.astype(np.float64)), x.dtype)


def wide2(function: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    """A function of two floats computed in f64 and rounded once."""
    return lambda x, y: narrow(np.asarray(function(x.astype(np.float64), y.astype(np.float64))), x.dtype)


def round_even(x: Array) -> Array:
    """The nearest integer, ties to even."""
    return np.rint(x)
