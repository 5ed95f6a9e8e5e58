"""argmax_rows for any XLA device: one loop over the programs, in bounded memory.

    argmax_rows(x: f32[M, N]) -> (y: i32[M], z: i32[M])

From IR text, written by kdsl. Sizes are read off shapes; tile sizes change speed and rounding only.
"""

import functools

import jax
import jax.numpy as jnp


def cdiv(a, b):
    return -(-a // b)


def check(name, array, dtype, rank):
    """Raise ValueError unless the array has this dtype and number of dimensions."""
    if array.dtype != dtype or array.ndim != rank:
        expected = f"{rank} dimensions of {jnp.dtype(dtype).name}"
        raise ValueError(f"{name}: expected {expected}, got {array.dtype.name}{list(array.shape)}")


def pad(array, *ranges):
    """Zeros around the array, so that each dimension has at least the indices low <= index < high."""
    sides = [(-low, max(0, high - size)) for (low, high), size in zip(ranges, array.shape, strict=True)]
    return jnp.pad(array, sides)


def place_of(extreme, x, axis):
    """extreme (jnp.argmax or jnp.argmin) of x along an axis; 0 where the axis has no lane."""
    if not x.shape[axis]:
        return jnp.sum(x, axis=axis, dtype=jnp.int32)
    return extreme(x, axis=axis).astype(jnp.int32)


@functools.partial(jax.jit, static_argnames=("BM",))
def argmax_rows(x, *, BM=8):
    """Return y: i32[M], z: i32[M]."""
    check("x", x, jnp.float32, 2)
    M, N = x.shape
    if BM < 1:
        raise ValueError("tile sizes are at least 1")
    m_blocks = cdiv(M, BM)
    y = jnp.zeros((M,), jnp.int32)
    z = jnp.zeros((M,), jnp.int32)
    if m_blocks == 0:
        return y, z
    x = pad(x, (0, BM * m_blocks), (0, N))
    y = pad(y, (0, BM * m_blocks))
    z = pad(z, (0, BM * m_blocks))

    def program(m_block, carried):
        y, z = carried
        x_tile = jax.lax.dynamic_slice(x, (BM * m_block, 0), (BM, N))
        high = place_of(jnp.argmax, x_tile, 1)
        low = place_of(jnp.argmin, x_tile, 1)
        y = jax.lax.dynamic_update_slice(y, high, (BM * m_block,))
        z = jax.lax.dynamic_update_slice(z, low, (BM * m_block,))
        return y, z

    y, z = jax.lax.fori_loop(0, m_blocks, program, (y, z))
    return y[:M], z[:M]
