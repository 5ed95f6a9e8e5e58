"""Error rules: how rounding error in the operands reaches the result of an op.

A rule takes operands and result as f64 arrays and the operands' absolute error bounds, all broadcastable, and gives a
bound on what the operands' errors do to the result. What the op itself rounds is added by the caller, from a target's
accuracy table. The formulas are first-order perturbation bounds made rigorous where that is cheap (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., chapters 2 and 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
ErrorRule = Callable[[Sequence[Array], Sequence[Array], Array], Array]


def exact(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """Integer and boolean ops: no error comes in (the caller marks what depends on an undecided comparison)."""
    return np.zeros(np.shape(result))


def _scaled(factor: Array, error: Array) -> Array:
    """|factor| * error; no error times infinity is none, and an unknown error times zero is unknown."""
    return np.where(error == 0, 0.0, np.where(np.isinf(error), np.inf, np.abs(factor) * error))


def total(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """add, sub, max, min, abs, neg, floor-free selection: at most the sum of the operands' errors."""
    bound = errors[0]
    for error in errors[1:]:
        bound = bound + error
    return bound


def largest(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """max and min move by no more than the operand that moves most, less its distance from the one that is taken."""
    bound = np.zeros(np.shape(result))
    for value, error in zip(values, errors, strict=True):
        distance = np.where((value == result) | np.isinf(error), 0.0, np.abs(value - result))
        bound = np.maximum(bound, np.where(error == 0, 0.0, error - distance))
    return bound


def product(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """mul: |a| eb + |b| ea + ea eb."""
    (left, right), (left_error, right_error) = values, errors
    return _scaled(left, right_error) + _scaled(right, left_error) + _scaled(left_error, right_error)


def quotient(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """div: (ea + |a/b| eb) / (|b| - eb), unbounded where the divisor may be zero."""
    (_, right), (left_error, right_error) = values, errors
    room = np.where(np.isinf(right_error), 0.0, np.abs(right) - right_error)
    bound = _scaled(1 / np.where(room > 0, room, 1), left_error + _scaled(result, right_error))
    return np.where((left_error == 0) & (right_error == 0), 0.0, np.where(room > 0, bound, np.inf))


def lipschitz(constant: float) -> ErrorRule:
    """A function whose slope never exceeds a constant: sin and cos (1)."""

    def rule(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
        return constant * errors[0]

    return rule


def exponential(base: float) -> ErrorRule:
    """base**x: |result| (base**e - 1)."""
    scale = float(np.log(base))

    def rule(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
        # Where the result is too small for f64 it still counts, or a large error would be multiplied away.
        size = np.maximum(np.abs(result), np.where(np.isneginf(values[0]), 0.0, np.finfo(np.float64).tiny))
        return _scaled(size, np.expm1(scale * errors[0]))

    return rule


def logarithm(base: float) -> ErrorRule:
    """log x: -log(1 - e/x), unbounded where x may be zero."""
    scale = float(np.log(base))

    def rule(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
        clear = np.abs(values[0]) > errors[0]
        share = np.where(clear, errors[0] / np.where(clear, np.abs(values[0]), 1), 0)
        return np.where(errors[0] == 0, 0.0, np.where(clear, -np.log1p(-share) / scale, np.inf))

    return rule


def power(exponent: float) -> ErrorRule:
    """sqrt (1/2) and rsqrt (-1/2): the derivative at the near end of the interval, unbounded across zero."""

    def rule(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
        near = np.abs(values[0]) - errors[0]
        slope = abs(exponent) * np.where(near > 0, near, 1.0) ** (exponent - 1)
        # |sqrt a - sqrt b| <= sqrt |a - b|.
        across = np.sqrt(errors[0]) if exponent > 0 else np.inf
        return np.where(errors[0] == 0, 0.0, np.where(near > 0, slope * errors[0], across))

    return rule


def stepwise(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """floor, ceil, round, integer division of floats: a full step wherever the operand is not exact."""
    return np.where(errors[0] == 0, 0.0, errors[0] + 1)


def chosen(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """select: the error of the arm that is taken (the caller widens it where the condition is undecided)."""
    return np.where(values[0].astype(bool), errors[1], errors[2])


def fused(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """fma: the product's rule and the addend's error."""
    return product(values[:2], errors[:2], result) + errors[2]


def monotone(function: Callable[[Array], Array], low: float = -np.inf, high: float = np.inf) -> ErrorRule:
    """A function that only grows or only falls between two ends: how far it is at the ends of the operand's interval;
    unbounded where that reaches past the function's ends."""

    def rule(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
        (value,), (error,) = values, errors
        here, ends = function(value), (function(value - error), function(value + error))
        moved = np.maximum(np.abs(ends[0] - here), np.abs(ends[1] - here)) + 8 * np.spacing(np.abs(here))
        inside = (value - error >= low) & (value + error <= high) & np.isfinite(moved)
        return np.where(error == 0, 0.0, np.where(inside, moved, np.inf))

    return rule


def tangent(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """tan grows between its poles."""
    low, high = (np.floor((end) / np.pi + 0.5) for end in (values[0] - errors[0], values[0] + errors[0]))
    return np.where((errors[0] == 0) | (low == high), monotone(np.tan)(values, errors, result), np.inf)


def hyperbolic_cosine(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """cosh grows with |x|."""
    return monotone(lambda size: np.cosh(np.maximum(size, 0)))([np.abs(values[0])], errors, result)


def remainder(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """fmod: it steps, but neither result is larger than its divisor or than its dividend."""
    (left, right), (left_error, right_error) = values, errors
    moved = np.minimum(np.abs(left) + left_error, np.abs(right) + right_error)
    return np.where((left_error == 0) & (right_error == 0), 0.0, np.abs(result) + moved)


def signed(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """copysign: the size's error, and twice the size where the sign is not certain."""
    (size, sign), (size_error, sign_error) = values, errors
    certain = (sign_error == 0) | (np.abs(sign) > sign_error)
    return size_error + np.where(certain, 0.0, 2 * np.abs(size))


def powers(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """x**y = exp(y log x), so |result| (exp(d) - 1) with d the error of y log x; unbounded where x may be 0 or less."""
    (base, exponent), (base_error, exponent_error) = values, errors
    clear = (base > base_error) & np.isfinite(base)
    safe = np.where(clear, base, 1.0)
    shift = -np.log1p(-np.where(clear, base_error, 0.0) / safe)
    moved = _scaled(exponent, shift) + _scaled(np.log(safe), exponent_error) + _scaled(shift, exponent_error)
    size = np.maximum(np.abs(result), np.finfo(np.float64).tiny)
    bound = np.where(clear, _scaled(size, np.expm1(moved)), np.inf)
    return np.where((base_error == 0) & (exponent_error == 0), 0.0, bound)


def angle(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """atan2: a point that moves by r at distance d turns by at most asin(r/d) <= pi r / 2 d; by a whole turn where it
    may pass through the origin or the cut, the negative half of the x axis."""
    (y, x), (y_error, x_error) = values, errors
    moved, distance = np.hypot(y_error, x_error), np.hypot(y, x)
    off_cut = (np.abs(y) > y_error) | (x > x_error)
    clear = (moved < distance) & np.isfinite(distance) & off_cut
    turned = np.pi / 2 * np.where(clear, moved, 0.0) / np.where(clear, distance, 1.0)
    return np.where(moved == 0, 0.0, np.where(clear, turned, 2 * np.pi))


def anything(values: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """No bound is stated: any error in an operand may change the result to anything."""
    return np.where(total(values, errors, result) == 0, 0.0, np.inf)
