"""accumulate for any XLA device: one loop over the programs, in bounded memory.

    accumulate(x: f32[M, N], total: f32[M]) -> (total: f32[M], count: i32[M])

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


@functools.partial(jax.jit, static_argnames=("BM", "BN"))
def accumulate(x, total, *, BM=4, BN=16):
    """Return total: f32[M], count: i32[M]."""
    check("x", x, jnp.float32, 2)
    check("total", total, jnp.float32, 1)
    M, N = x.shape
    if total.shape != (M,):
        raise ValueError(f"total[M]: expected shape {(M,)}, got {total.shape}")
    if min(BM, BN) < 1:
        raise ValueError("tile sizes are at least 1")
    m_blocks = cdiv(M, BM)
    n_blocks = cdiv(N, BN)
    count = jnp.zeros((M,), jnp.int32)
    if m_blocks == 0:
        return total, count
    x = pad(x, (0, BM * m_blocks), (0, BN * max(1, n_blocks)))
    total = pad(total, (0, BM * m_blocks))
    count = pad(count, (0, BM * m_blocks))

    def program(m_block, carried):
        total, count = carried

        def step(n_block, total):
            x_tile = jax.lax.dynamic_slice(x, (BM * m_block, BN * n_block), (BM, BN))
            s = jnp.sum(x_tile, axis=1)
            old = jax.lax.dynamic_slice(total, (BM * m_block,), (BM,))
            new = old + s
            total = jax.lax.dynamic_update_slice(total, new, (BM * m_block,))
            return total

        total = jax.lax.fori_loop(0, n_blocks, step, total)
        start = jnp.full((BM,), 1, jnp.int32)

        def step_1(t, p):
            q = p + p
            return q

        power = jax.lax.fori_loop(0, 3, step_1, start)
        count = jax.lax.dynamic_update_slice(count, power, (BM * m_block,))
        return total, count

    total, count = jax.lax.fori_loop(0, m_blocks, program, (total, count))
    return total[:M], count[:M]
