"""matmul_bias and softmax for any XLA device: one loop over the programs, in bounded memory.

    matmul_bias: a[M, K], b[K, N], bias[N] -> c[M, N]
    softmax:     x[M, N] -> y[M, N], along rows

Any sizes >= 1, any tile sizes >= 1. Sums are float32; the result is rounded once.
Inputs are padded to whole tiles first: XLA moves a slice that would leave the array, so none may.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax


def _cdiv(size, tile):
    return -(-size // tile)


def _pad(x, *shape):
    """Zeros after x up to shape."""
    return jnp.pad(x, [(0, new - old) for new, old in zip(shape, x.shape, strict=True)])


@functools.partial(jax.jit, static_argnames=("BM", "BN", "BK"))
def matmul_bias(a, b, bias, *, BM=128, BN=128, BK=64):
    """Return c[M, N] = a[M, K] @ b[K, N] + bias[N], in a's dtype."""
    M, K = a.shape
    N = b.shape[1]
    if b.shape != (K, N) or bias.shape != (N,):
        raise ValueError(f"expected a[M, K], b[K, N], bias[N]; got {a.shape}, {b.shape}, {bias.shape}")
    tiles_m, tiles_n, tiles_k = _cdiv(M, BM), _cdiv(N, BN), _cdiv(K, BK)
    a = _pad(a, tiles_m * BM, tiles_k * BK)
    b = _pad(b, tiles_k * BK, tiles_n * BN)
    bias = _pad(bias, tiles_n * BN)

    def program(p, c):
        m = p // tiles_n * BM
        n = p % tiles_n * BN

        def step(k, acc):
            a_tile = lax.dynamic_slice(a, (m, k * BK), (BM, BK))
            b_tile = lax.dynamic_slice(b, (k * BK, n), (BK, BN))
            # The padding of K is zero in both operands and adds nothing.
            return acc + lax.dot_general(
                a_tile,
                b_tile,
                (((1,), (0,)), ((), ())),
                precision=lax.Precision.HIGHEST,
                preferred_element_type=jnp.float32,
            )

        acc = lax.fori_loop(0, tiles_k, step, jnp.zeros((BM, BN), jnp.float32))
        bias_tile = lax.dynamic_slice(bias, (n,), (BN,)).astype(jnp.float32)
        return lax.dynamic_update_slice(c, (acc + bias_tile[None, :]).astype(c.dtype), (m, n))

    c = jnp.zeros((tiles_m * BM, tiles_n * BN), a.dtype)
    return lax.fori_loop(0, tiles_m * tiles_n, program, c)[:M, :N]


@functools.partial(jax.jit, static_argnames=("BM",))
def softmax(x, *, BM=8):
    """Return y[M, N] = exp(x - max(x)) / sum(exp(x - max(x))) along rows, in x's dtype."""
    M, N = x.shape
    tiles_m = _cdiv(M, BM)
    x = _pad(x, tiles_m * BM, N)

    def program(p, y):
        row = lax.dynamic_slice(x, (p * BM, 0), (BM, N)).astype(jnp.float32)
        e = jnp.exp(row - jnp.max(row, axis=1, keepdims=True))
        return lax.dynamic_update_slice(y, (e / jnp.sum(e, axis=1, keepdims=True)).astype(y.dtype), (p * BM, 0))

    return lax.fori_loop(0, tiles_m, program, jnp.zeros_like(x))[:M]
