"""Functions that emitted jnp source defines where it uses them: the op table's rule where XLA leaves it open."""

from __future__ import annotations

import re
from collections.abc import Mapping

HELPERS = {
    "divide": '''\
def divide(x, y):
    """x / y, rounded once: XLA would multiply by the reciprocal of a y that it broadcasts or knows."""
    x, y = jnp.broadcast_arrays(x, jnp.asarray(y, x.dtype))
    return x / jax.lax.optimization_barrier(y)
''',
    "floor_divide": '''\
def floor_divide(x, y):
    """x / y of integers, rounded down; 0 where y is 0."""
    return jnp.where(y == 0, 0, x // jnp.where(y == 0, 1, y))
''',
    "floor_mod": '''\
def floor_mod(x, y):
    """x - y * floor(x / y) of integers; 0 where y is 0."""
    return jnp.where(y == 0, 0, x % jnp.where(y == 0, 1, y))
''',
    "shift_left": '''\
def shift_left(x, y):
    """x << y; 0 where y is no bit position."""
    inside = (y >= 0) & (y < jnp.iinfo(x.dtype).bits)
    return jnp.where(inside, x << jnp.where(inside, y, 0), 0)
''',
    "shift_right": '''\
def shift_right(x, y):
    """x >> y, with sign if x has one; past the width all sign bits."""
    bits = jnp.iinfo(x.dtype).bits
    inside = (y >= 0) & (y < bits)
    # Two shifts clear the whole width; one by the width itself is undefined.
    return jnp.where(inside, x >> jnp.where(inside, y, 0), (x >> (bits - 1)) >> 1)
''',
    "to_integer": '''\
def to_integer(x, dtype):
    """Floats rounded toward zero and saturated; NaN gives 0."""
    limits = jnp.iinfo(dtype)
    high, low = x >= float(limits.max), x <= float(limits.min)
    whole = jnp.where(high | low | (x != x), 0, x).astype(dtype)
    return jnp.where(high, jnp.full_like(whole, limits.max), jnp.where(low, jnp.full_like(whole, limits.min), whole))
''',
    "to_bfloat16": '''\
def to_bfloat16(x):
    """32-bit integers rounded once. From 2**24 on, float32 holds them with their low byte reduced to "not zero"."""
    large = (x >= 2**24) | (x < -(2**24)) if x.dtype == jnp.int32 else x >= 2**24
    sticky = jnp.where(large & (x & 255 != 0), x - (x & 255) + 128, x)
    return sticky.astype(jnp.float32).astype(jnp.bfloat16)
''',
    "trunc_divide": '''\
def trunc_divide(x, y):
    """x / y of integers, rounded to zero; 0 where y is 0."""
    return jnp.where(y == 0, 0, jax.lax.div(*jnp.broadcast_arrays(x, jnp.where(y == 0, 1, y))))
''',
    "trunc_mod": '''\
def trunc_mod(x, y):
    """What trunc_divide leaves over, with x's sign; 0 where y is 0."""
    return jnp.where(y == 0, 0, jax.lax.rem(*jnp.broadcast_arrays(x, jnp.where(y == 0, 1, y))))
''',
    "multiply_high": '''\
def multiply_high(x, y):
    """The upper half of the double-width product of integers, from half words (Warren, Hacker's Delight)."""
    x, y = jnp.broadcast_arrays(x, y)
    half = jnp.iinfo(x.dtype).bits // 2
    mask = 2**half - 1
    x_low, x_high, y_low, y_high = x & mask, x >> half, y & mask, y >> half
    carry = jax.lax.shift_right_logical(x_low * y_low, jnp.full_like(x, half))
    middle = x_high * y_low + carry
    return x_high * y_high + (middle >> half) + ((x_low * y_high + (middle & mask)) >> half)
''',
    "philox": '''\
def philox(c0, c1, c2, c3, k0, k1, rounds):
    """Philox4x32: four random words from a counter and a key (Salmon et al., SC 2011)."""
    c0, c1, c2, c3, k0, k1 = jnp.broadcast_arrays(c0, c1, c2, c3, k0, k1)
    first, second = jnp.full_like(c0, 0xD2511F53), jnp.full_like(c0, 0xCD9E8D57)
    for _ in range(rounds):
        high, other = multiply_high(first, c0), multiply_high(second, c2)
        c0, c1, c2, c3 = other ^ c1 ^ k0, second * c2, high ^ c3 ^ k1, first * c0
        k0, k1 = k0 + jnp.full_like(k0, 0x9E3779B9), k1 + jnp.full_like(k1, 0xBB67AE85)
    return c0, c1, c2, c3
''',
    "scaled": '''\
def scaled(x, scale, axis):
    """x * 2**(scale - 127), each scale for a run of lanes along an axis; NaN where the scale is 255."""
    factor = jax.lax.bitcast_convert_type(scale.astype(jnp.int32) << 23, jnp.float32)
    factor = jnp.where(scale == 255, jnp.nan, factor)
    return x.astype(jnp.float32) * jnp.repeat(factor, x.shape[axis] // scale.shape[axis], axis=axis)
''',
    "first_extreme": '''\
def first_extreme(x, extreme, axis):
    """The lowest lane along an axis that holds the extreme, or NaN; the axis is kept with size 1."""
    lane = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return jnp.min(jnp.where((x == extreme) | (x != x), lane, x.shape[axis]), axis=axis, keepdims=True)
''',
    "place_of": '''\
def place_of(extreme, x, axis):
    """extreme (jnp.argmax or jnp.argmin) of x along an axis; 0 where the axis has no lane."""
    if not x.shape[axis]:
        return jnp.sum(x, axis=axis, dtype=jnp.int32)
    return extreme(x, axis=axis).astype(jnp.int32)
''',
}
"""Source of each helper function."""


def helpers_in(text: str, helpers: Mapping[str, str] = HELPERS) -> tuple[str, ...]:
    """Names of the helpers that a text calls, and those that these call, in the order of `helpers`."""
    found: set[str] = set()
    left = [text]
    while left:
        held = left.pop()
        new = {name for name in helpers.keys() - found if re.search(rf"(?<![\w.]){name}\(", held)}
        found |= new
        left += [helpers[name].split(":", 1)[1] for name in new]
    return tuple(name for name in helpers if name in found)
