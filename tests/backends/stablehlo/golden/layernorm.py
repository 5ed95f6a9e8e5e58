"""layernorm for any XLA device: one loop over the programs, in bounded memory.

    layernorm(x: f32[M, N], weight: f32[N], bias: f32[N], eps: f32) -> y: f32[M, N]
    requires N > 0

From layernorm.py, line 9, written by kdsl. Sizes are read off shapes; tile sizes change speed and rounding only.
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
def layernorm(x, weight, bias, eps, *, BM=8):
    """Return y: f32[M, N]."""
    check("x", x, jnp.float32, 2)
    check("weight", weight, jnp.float32, 1)
    check("bias", bias, jnp.float32, 1)
    M, N = x.shape
    if weight.shape != (N,):
        raise ValueError(f"weight[N]: expected shape {(N,)}, got {weight.shape}")
    if bias.shape != (N,):
        raise ValueError(f"bias[N]: expected shape {(N,)}, got {bias.shape}")
    if BM < 1:
        raise ValueError("tile sizes are at least 1")
    if N <= 0:
        raise ValueError("layernorm requires N > 0")
    eps = jnp.asarray(eps, jnp.float32)
    m_blocks = cdiv(M, BM)
    y = jnp.zeros((M, N), jnp.float32)
    if m_blocks == 0:
        return y
    x = pad(x, (0, BM * m_blocks), (0, N))
    y = pad(y, (0, BM * m_blocks), (0, N))

    def program(m_block, y):
        # line 11
        x_tile = jax.lax.dynamic_slice(x, (BM * m_block, 0), (BM, N))
        # line 12
        count = jnp.int32(N).astype(jnp.float32)
        mean = divide(jnp.sum(x_tile, axis=1), count)
        # line 13
        centred = x_tile - mean[:, None]
        # line 14
        variance = divide(jnp.sum(centred * centred, axis=1), count)
        # line 15
        normal = centred * jax.lax.rsqrt(variance + eps)[:, None]
        # line 16
        y = jax.lax.dynamic_update_slice(y, normal * weight + bias, (BM * m_block, 0))
        return y

    y = jax.lax.fori_loop(0, m_blocks, program, y)
    return y[:M]
