"""softmax for any XLA device: one loop over the programs, in bounded memory.

    softmax(x: bf16[M, N]) -> y: bf16[M, N]

From softmax.py, line 7, written by kdsl. Sizes are read off shapes; tile sizes change speed and rounding only.
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


def divide(x, y):
    """x / y, rounded once: XLA would multiply by the reciprocal of a y that it broadcasts or knows."""
    x, y = jnp.broadcast_arrays(x, jnp.asarray(y, x.dtype))
    return x / jax.lax.optimization_barrier(y)


@functools.partial(jax.jit, static_argnames=("BM",))
def softmax(x, *, BM=8):
    """Return y: bf16[M, N]."""
    check("x", x, jnp.bfloat16, 2)
    M, N = x.shape
    if BM < 1:
        raise ValueError("tile sizes are at least 1")
    m_blocks = cdiv(M, BM)
    y = jnp.zeros((M, N), jnp.bfloat16)
    if m_blocks == 0:
        return y
    x = pad(x, (0, BM * m_blocks), (0, N))
    y = pad(y, (0, BM * m_blocks), (0, N))

    def program(m_block, y):
        # line 9
        x_tile = jax.lax.dynamic_slice(x, (BM * m_block, 0), (BM, N))
        row = x_tile.astype(jnp.float32)
        # line 10
        largest = jnp.max(row, axis=1, initial=-jnp.inf)
        e = jnp.exp(row - largest[:, None])
        # line 11
        y = jax.lax.dynamic_update_slice(
            y, divide(e, jnp.sum(e, axis=1)[:, None]).astype(jnp.bfloat16), (BM * m_block, 0)
        )
        return y

    y = jax.lax.fori_loop(0, m_blocks, program, y)
    return y[:M]
