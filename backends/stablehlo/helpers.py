"""Functions that emitted modules of this target define where they use them: what works on whole lanes, and memory."""

from __future__ import annotations

from kdsl.codegen import jnp_helpers

HELPERS = {
    **jnp_helpers.HELPERS,
    "fused": '''\
def fused(x, y, z, wide, bits):
    """x * y + z, rounded once: the product is exact in the wider type, and its sum there is rounded to odd."""
    product, addend = x.astype(wide) * y.astype(wide), z.astype(wide)
    total = product + addend
    shifted = total - product
    rest = (product - (total - shifted)) + (addend - shifted)
    word = jax.lax.bitcast_convert_type(total, bits)
    outwards = jnp.where((rest > 0) == (total > 0), 1, -1).astype(bits)
    even = (rest != 0) & jnp.isfinite(rest) & (word & 1 == 0)
    return jax.lax.bitcast_convert_type(jnp.where(even, word + outwards, word), wide).astype(x.dtype)
''',
    "sort_lanes": '''\
def sort_lanes(lanes, axis, descending=False):
    """Arrays sorted along an axis by the first of them, equal lanes in their old order; NaN is the largest."""
    lanes = [jnp.flip(x, axis) for x in lanes] if descending else lanes
    lanes = jax.lax.sort(tuple(lanes), dimension=axis, num_keys=1, is_stable=True)
    return tuple(jnp.flip(x, axis) for x in lanes) if descending else lanes
''',
    "top_lanes": '''\
def top_lanes(x, axis, count):
    """The largest lanes along an axis and their numbers, the lower lane first among equals."""
    lane = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    places = jnp.minimum(jnp.arange(count), x.shape[axis] - 1)
    return tuple(jnp.take(y, places, axis) for y in sort_lanes((x, lane), axis, descending=True))
''',
    "count_lanes": '''\
def count_lanes(x, axis, bins):
    """How many lanes along an axis hold each of the numbers below `bins`, which become the last axis."""
    return jnp.sum(x[..., None] == jnp.arange(bins, dtype=jnp.int32), axis=axis, dtype=jnp.int32)
''',
    "reduce_lanes": '''\
def reduce_lanes(combine, lanes, axis):
    """Arrays combined along an axis, neighbours pairwise and in order; zeros where it has no lane."""
    while (size := lanes[0].shape[axis]) > 1:
        even, odd = ([jax.lax.slice_in_dim(x, i, size - size % 2, 2, axis) for x in lanes] for i in (0, 1))
        rest = [jax.lax.slice_in_dim(x, size - size % 2, size, 1, axis) for x in lanes]
        lanes = [jnp.concatenate(pair, axis) for pair in zip(combine(even, odd), rest)]
    if size:
        return tuple(jnp.squeeze(x, axis) for x in lanes)
    return tuple(jnp.zeros(x.shape[:axis] + x.shape[axis + 1 :], x.dtype) for x in lanes)
''',
    "lanes_of": '''\
def lanes_of(buffer, places, values, mask):
    """Row-major element numbers of the places, one past the last where the mask does not hold, and the values: flat."""
    number = jnp.int32(0)
    for place, size in zip(places, buffer.shape):
        number = number * size + place
    number = jnp.where(mask, number, buffer.size)
    return [x.reshape(-1) for x in jnp.broadcast_arrays(number, *values)]
''',
    "store_lanes": '''\
def store_lanes(buffer, places, value, mask=True):
    """The buffer with a value at each place; of two lanes that share an element, the later wins."""
    number, value = lanes_of(buffer, places, (value,), mask)
    order = jnp.argsort(number, stable=True)
    number, value = number[order], value[order]
    is_last = jnp.append(number[1:] != number[:-1], True)[: number.size]
    number = jnp.where(is_last, number, buffer.size)
    return buffer.reshape(-1).at[number].set(value, mode="drop").reshape(buffer.shape)
''',
    "change_lanes": '''\
def change_lanes(change, buffer, places, values, mask=True):
    """The buffer after element = change(element, *values) lane after lane, and what each lane found there."""
    shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in (*places, *values, mask)))
    number, *values = lanes_of(buffer, places, values, mask)

    def lane(i, carried):
        memory, found = carried
        old = memory.at[number[i]].get(mode="clip")
        new = change(old, *(x[i] for x in values)).astype(memory.dtype)
        return memory.at[number[i]].set(new, mode="drop"), found.at[i].set(old)

    start = buffer.reshape(-1), jnp.zeros(number.size, buffer.dtype)
    memory, found = jax.lax.fori_loop(0, number.size, lane, start)
    return memory.reshape(buffer.shape), found.reshape(shape)
''',
}
"""Source of each helper function."""
