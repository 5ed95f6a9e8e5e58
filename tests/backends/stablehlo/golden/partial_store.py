"""partial_store for any XLA device: one loop over the programs, in bounded memory.

    partial_store(x: f32[M, N], y: f32[M, N], S: i32) -> y: f32[M, N]

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


@functools.partial(jax.jit, static_argnames=("K", "BM", "BN"))
def partial_store(x, y, S, *, K, BM=4, BN=8):
    """Return y: f32[M, N]."""
    check("x", x, jnp.float32, 2)
    check("y", y, jnp.float32, 2)
    M, N = x.shape
    if y.shape != (M, N):
        raise ValueError(f"y[M, N]: expected shape {(M, N)}, got {y.shape}")
    if min(BM, BN) < 1:
        raise ValueError("tile sizes are at least 1")
    S = jnp.asarray(S, jnp.int32)
    m_blocks = cdiv(M, BM)
    n_blocks = cdiv(N, BN)
    if m_blocks * n_blocks == 0:
        return y
    x = pad(x, (0, BM * m_blocks), (0, BN * n_blocks))
    y = pad(y, (0, BM * m_blocks), (0, BN * n_blocks))
    m = jnp.arange(BM)
    n = jnp.arange(BN)

    def program(program_id, y):
        m_block, n_block = jnp.unravel_index(program_id, (m_blocks, n_blocks))
        x_tile = jax.lax.dynamic_slice(x, (BM * m_block, BN * n_block), (BM, BN))
        f = S.astype(jnp.float32)
        v = x_tile * f
        start = (BM * m_block, BN * n_block)
        old_y = jax.lax.dynamic_slice(y, start, (BM, BN))
        inside = BN * n_block + n < BM * m_block + K + m[:, None]
        inside &= BM * m_block + m[:, None] < M
        inside &= BN * n_block + n < N
        new_y = jnp.where(inside, v, old_y)
        y = jax.lax.dynamic_update_slice(y, new_y, start)
        return y

    y = jax.lax.fori_loop(0, m_blocks * n_blocks, program, y)
    return y[:M, :N]
