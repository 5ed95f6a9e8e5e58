"""NumPy stand-ins for what the interpreter cannot do or does wrong: dots, and the device library's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kdsl.ir.ops import OPS

from .expressions import EXPRESSIONS, LIBRARY

Array = np.ndarray[Any, Any]


def dot(left: Array, right: Array, accumulator: Array, tf32: bool) -> Array:
    """left @ right + accumulator in the accumulator's dtype; f32 operands rounded to tf32 if asked for."""
    dtype = accumulator.dtype
    factors = [_tf32(array) if tf32 and array.dtype == np.float32 else array.astype(dtype) for array in (left, right)]
    return np.asarray(np.matmul(*factors, dtype=dtype) + accumulator)


def _tf32(array: Array) -> Array:
    """To 10 fraction bits, to nearest even."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    half = np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    return np.where(np.isfinite(array), ((bits + half) & np.uint32(0xFFFFE000)).view(np.float32), array)


def dot_scaled(left: Array, left_scale: Array, right: Array, right_scale: Array, accumulator: Array) -> Array:
    """left [M, K] and right [K, N] times powers of two: scales [M, K/32] and [N, K/32] hold exponents, 127 for 1."""
    first = left.astype(np.float64) * _powers(left_scale, left.shape[1])
    second = right.astype(np.float64) * _powers(right_scale, right.shape[0]).T
    return np.asarray((first @ second).astype(np.float32) + accumulator)


def _powers(scale: Array, lanes: int) -> Array:
    exponent = np.repeat(scale.astype(np.float64), lanes // scale.shape[1], axis=1)
    return np.where(exponent == 255, np.nan, np.exp2(exponent - 127))


def library() -> dict[str, Callable[[Sequence[Array]], Array]]:
    """Functions on arrays by their libdevice names: what the op that is printed as one means."""
    found: dict[str, Callable[[Sequence[Array]], Array]] = {}
    for op in sorted(LIBRARY):
        template, function = EXPRESSIONS[op], OPS[op].pointwise
        assert isinstance(template, str) and function is not None
        name = template.removeprefix("libdevice.").partition("(")[0]
        found[name] = _of_arrays(function)
    return found


def _of_arrays(function: Callable[..., Any]) -> Callable[[Sequence[Array]], Array]:
    return lambda arrays: np.asarray(function(*arrays)).astype(arrays[0].dtype)
