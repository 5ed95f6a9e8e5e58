"""matmul for any XLA device: one loop over the programs, in bounded memory.

    matmul(a: bf16[M, K], b: bf16[K, N], bias: bf16[N]) -> c: bf16[M, N]

From matmul.py, line 9, written by kdsl. Sizes are read off shapes; tile sizes change speed and rounding only.
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


@functools.partial(jax.jit, static_argnames=("BM", "BN", "BK"))
def matmul(a, b, bias, *, BM=64, BN=64, BK=32):
    """Return c: bf16[M, N]."""
    check("a", a, jnp.bfloat16, 2)
    check("b", b, jnp.bfloat16, 2)
    check("bias", bias, jnp.bfloat16, 1)
    M, K = a.shape
    N = b.shape[1]
    if b.shape != (K, N):
        raise ValueError(f"b[K, N]: expected shape {(K, N)}, got {b.shape}")
    if bias.shape != (N,):
        raise ValueError(f"bias[N]: expected shape {(N,)}, got {bias.shape}")
    if min(BM, BN, BK) < 1:
        raise ValueError("tile sizes are at least 1")
    m_blocks = cdiv(M, BM)
    n_blocks = cdiv(N, BN)
    k_blocks = cdiv(K, BK)
    c = jnp.zeros((M, N), jnp.bfloat16)
    if m_blocks * n_blocks == 0:
        return c
    a = pad(a, (0, BM * m_blocks), (0, BK * max(1, k_blocks)))
    b = pad(b, (0, BK * max(1, k_blocks)), (0, BN * n_blocks))
    bias = pad(bias, (0, BN * n_blocks))
    c = pad(c, (0, BM * m_blocks), (0, BN * n_blocks))

    def program(program_id, c):
        m_block, n_block = jnp.unravel_index(program_id, (m_blocks, n_blocks))
        # line 12
        acc = jnp.zeros((BM, BN), jnp.float32)

        # line 13
        def step(k_block, acc):
            # line 14
            a_tile = jax.lax.dynamic_slice(a, (BM * m_block, BK * k_block), (BM, BK))
            b_tile = jax.lax.dynamic_slice(b, (BK * k_block, BN * n_block), (BK, BN))
            dot = jax.lax.dot_general(a_tile, b_tile, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)
            acc = acc + dot
            return acc

        acc = jax.lax.fori_loop(0, k_blocks, step, acc)
        # line 15
        bias_tile = jax.lax.dynamic_slice(bias, (BN * n_block,), (BN,))
        h = acc + bias_tile.astype(jnp.float32)
        # line 16
        c = jax.lax.dynamic_update_slice(c, jnp.maximum(h, 0.0).astype(jnp.bfloat16), (BM * m_block, BN * n_block))
        return c

    c = jax.lax.fori_loop(0, m_blocks * n_blocks, program, c)
    return c[:M, :N]
