"""Functions that Mosaic lacks, from those it has; and what emitted modules define to work along an axis.

atan2, exp, log, log1p, sqrt and tan are Mosaic's own. Formulas keep relative accuracy near 0: expm1 as W. Kahan gives
it (x * (u - 1) / log(u) with u = exp(x)), the inverse hyperbolic functions by log1p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kdsl.codegen import jnp, jnp_helpers
from kdsl.codegen.jnp import Code
from kdsl.ir.dtypes import BOOL, F32
from kdsl.ir.kernel import Op

HELPERS = {
    **jnp_helpers.HELPERS,
    "expm1": '''\
def expm1(x):
    """exp(x) - 1."""
    power = jnp.exp(x)
    near = (power != 1) & (jnp.abs(x) < 1)
    return jnp.where(near, x * ((power - 1) / jnp.log(jnp.where(near, power, 2))), jnp.where(power == 1, x, power - 1))
''',
    "sinh": '''\
def sinh(x):
    """Hyperbolic sine: e**x - 1 is t, so that e**-x - 1 is -t / (1 + t)."""
    t = expm1(jnp.minimum(jnp.abs(x), 88))
    y = 0.5 * (t + t / (1 + t)) * jnp.exp(jnp.maximum(jnp.abs(x) - 88, 0))
    return jnp.where(x < 0, -y, y)
''',
    "cosh": '''\
def cosh(x):
    """Hyperbolic cosine."""
    half = jnp.exp(0.5 * jnp.abs(x))  # its square overflows no sooner than the result
    return 0.5 * half * half + 0.5 / half / half
''',
    "asinh": '''\
def asinh(x):
    """Inverse hyperbolic sine."""
    size = jnp.abs(x)
    small = jnp.minimum(size, 1e9)
    y = jnp.log1p(small + small * small / (1 + jnp.sqrt(small * small + 1)))
    y = jnp.where(size > 1e9, jnp.log(size) + 0.6931472, y)
    return jnp.where(x < 0, -y, y)
''',
    "acosh": '''\
def acosh(x):
    """Inverse hyperbolic cosine."""
    t = jnp.minimum(x, 1e9) - 1
    return jnp.where(x > 1e9, jnp.log(x) + 0.6931472, jnp.log1p(t + jnp.sqrt(t * (t + 2))))
''',
    "atanh": '''\
def atanh(x):
    """Inverse hyperbolic tangent."""
    y = 0.5 * jnp.log1p(2 * jnp.abs(x) / (1 - jnp.abs(x)))
    return jnp.where(x < 0, -y, y)
''',
    "asin": '''\
def asin(x):
    """Inverse sine."""
    return jnp.arctan2(x, jnp.sqrt((1 - x) * (1 + x)))
''',
    "acos": '''\
def acos(x):
    """Inverse cosine."""
    return jnp.arctan2(jnp.sqrt((1 - x) * (1 + x)), x)
''',
    "atan": '''\
def atan(x):
    """Inverse tangent."""
    return jnp.arctan2(x, jnp.ones_like(x))
''',
    "cbrt": '''\
def cbrt(x):
    """Cube root: a first guess by logarithm, and one step of Newton's method."""
    size = jnp.abs(x)
    inside = (size > 0) & (size < jnp.inf)
    safe = jnp.where(inside, size, 1)
    y = jnp.exp(jnp.log(safe) * (1 / 3))
    y = y - (y - safe / (y * y)) * (1 / 3)
    return jnp.where(inside, jnp.where(x < 0, -y, y), x)
''',
    "to_tf32": '''\
def to_tf32(x):
    """float32 rounded to 10 explicit fraction bits, to nearest even; what is not finite stays as it is."""
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    odd = (bits >> 13) & 1
    bits = ((bits + 0xFFF + odd) >> 13) << 13
    return jnp.where(jnp.abs(x) < jnp.inf, jax.lax.bitcast_convert_type(bits, jnp.float32), x)
''',
    "flip_lanes": '''\
def flip_lanes(x, axis):
    """The lanes along an axis in reverse: padded to a power of two, each bit of a lane's number flips by a roll."""
    size = x.shape[axis]
    whole = pl.next_power_of_2(size)
    x = x if whole == size else jnp.concatenate([x, jax.lax.slice_in_dim(x, 0, whole - size, 1, axis)], axis)
    lane = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    bit = 1
    while bit < whole:
        x = jnp.where(lane & bit != 0, jnp.roll(x, bit, axis), jnp.roll(x, -bit, axis))
        bit *= 2
    return jax.lax.slice_in_dim(x, whole - size, whole, 1, axis)
''',
    "sort_lanes": '''\
def sort_lanes(lanes, axis, descending=False):
    """Arrays sorted along an axis by the first of them, stable, NaN as the largest: Batcher's bitonic network.

    Lanes are told apart by their numbers, so that equal ones keep their order; the padding comes last.
    """
    size = lanes[0].shape[axis]
    whole = pl.next_power_of_2(size)
    if whole > size:
        lanes = [jnp.concatenate([x, jax.lax.slice_in_dim(x, 0, whole - size, 1, axis)], axis) for x in lanes]
    lane = number = jax.lax.broadcasted_iota(jnp.int32, lanes[0].shape, axis)
    count = len(lanes)

    def comes_first(x, i, y, j):
        above, below = (x > y, x < y) if descending else (x < y, x > y)
        above = above | ((x != x) & (y == y)) if descending else above | ((x == x) & (y != y))
        below = below | ((x == x) & (y != y)) if descending else below | ((x != x) & (y == y))
        return ((i < size) & (j >= size)) | (((i < size) == (j < size)) & (above | (~below & (i < j))))

    run = 2
    while run <= whole:
        bit = run // 2
        while bit:
            state = [*lanes, number]
            upper = lane & bit != 0
            other = [jnp.where(upper, jnp.roll(x, bit, axis), jnp.roll(x, -bit, axis)) for x in state]
            first = comes_first(state[0], number, other[0], other[count])
            keep = first == (upper == (lane & run != 0))
            *lanes, number = [jnp.where(keep, x, y) for x, y in zip(state, other)]
            bit //= 2
        run *= 2
    return [jax.lax.slice_in_dim(x, 0, size, 1, axis) for x in lanes]
''',
    "running": '''\
def running(combine, lanes, axis, reverse=False):
    """Arrays combined along an axis up to each lane, in order, by doubling the distance that a lane looks back."""
    size = lanes[0].shape[axis]
    lane = jax.lax.broadcasted_iota(jnp.int32, lanes[0].shape, axis)
    distance = 1
    while distance < size:
        before = [jnp.roll(x, -distance if reverse else distance, axis) for x in lanes]
        inside = lane < size - distance if reverse else lane >= distance
        lanes = [jnp.where(inside, new, old) for new, old in zip(combine(before, lanes), lanes)]
        distance *= 2
    return tuple(lanes)
''',
    "top_lanes": '''\
def top_lanes(x, axis, count):
    """The largest lanes along an axis and their numbers, the lower lane first among equals, one after the other."""
    lane = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    lowest = -jnp.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    left, values, places = lane >= 0, [], []
    for _ in range(count):
        values.append(jnp.max(jnp.where(left, x, lowest), axis=axis, keepdims=True))
        found = left & ((x == values[-1]) | (x != x))
        places.append(jnp.min(jnp.where(found, lane, x.shape[axis]), axis=axis, keepdims=True))
        left = left & (lane != places[-1])
    return jnp.concatenate(values, axis), jnp.concatenate(places, axis)
''',
    "last_lane": '''\
def last_lane(x, axis):
    """The last lane along an axis, which is kept with size 1."""
    return jax.lax.slice_in_dim(x, x.shape[axis] - 1, x.shape[axis], 1, axis)
''',
    "gather_lanes": '''\
def gather_lanes(x, index, axis):
    """x[index] along an axis, one lane of x after the other; 0 where there is no lane of that number."""

    def lane(i, taken):
        return jnp.where(index == i, pick_lane(x, i, axis), taken)

    return jax.lax.fori_loop(0, x.shape[axis], lane, jnp.zeros(index.shape, x.dtype))
''',
    "pick_lane": '''\
def pick_lane(x, lane, axis):
    """One lane along an axis, which is kept with size 1; 0 where there is no lane of that number."""
    lanes = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return jnp.sum(jnp.where(lanes == lane, x, jnp.zeros_like(x)), axis=axis, keepdims=True)
''',
}
"""Source of each helper function."""


def _helper(name: str) -> jnp.Printer:
    return lambda x: Code(f"{name}({x.text})")


WRITTEN: dict[str, jnp.Printer] = {
    name: _helper(name) for name in ("expm1", "sinh", "cosh", "asinh", "acosh", "atanh", "cbrt", "asin", "acos", "atan")
}
"""How each function is written that Mosaic lacks."""


# Of booleans, of which Mosaic knows no order.
EXTREMES = {"maximum": "or", "minimum": "and"}

# Computed in float32 for bfloat16: Mosaic has no atan2, log2 or NaN test of it, and the rest would round at each step.
WIDENED = {*WRITTEN, "atan2", "pow", "log2", "log10", "log1p", "tan", "is_nan", "is_inf", "is_finite"}


def pointwise(op: Op, operands: Sequence[Code]) -> Code:
    """A pointwise op in what Mosaic has."""
    if op.operands[0].dtype == BOOL and op.name in EXTREMES:
        return jnp.pointwise(replace(op, name=EXTREMES[op.name]), operands)
    if op.name not in WIDENED:
        return jnp.pointwise(op, operands)
    given = [
        jnp.cast(jnp.typed(code, value.dtype), value.dtype, F32)
        for code, value in zip(operands, op.operands, strict=True)
    ]
    wide = WRITTEN[op.name](*given) if op.name in WRITTEN else jnp.pointwise(op, given)
    return jnp.cast(wide, F32, op.result.dtype) if op.result.dtype.is_float else wide
