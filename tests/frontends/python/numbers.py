"""Inputs and comparisons that the tests of kernels share."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    """Standard normal numbers, the same for the same shape."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def integers(low: int, high: int, *shape: int) -> Array:
    """i32 numbers from `low` up to `high`, the same for the same shape."""
    return np.random.default_rng(sum(shape)).integers(low, high, shape).astype(np.int32)


def close(got: Array, expected: Array, tolerance: float = 1e-5) -> None:
    """The oracle fills what means nothing with NaN, so a finite result took nothing from there."""
    np.testing.assert_allclose(np.asarray(got, np.float64), expected, rtol=tolerance, atol=tolerance)


def softmax(scores: Array) -> Array:
    """Along the last axis, in f64."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)
