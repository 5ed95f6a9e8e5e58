"""transpose: a kernel for TPU, in Pallas

    x: float32[M, N] -> y: float32[N, M], s: float32[M, N]

Tile sizes: BM a multiple of 128, BN a multiple of 128; each is cut down to its dimension.

Made by kdsl from transpose.py, line 1.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _transpose_kernel(x_ref, y_ref, s_ref, *, BM, BN):
    m_block = pl.program_id(0)
    n_block = pl.program_id(1)
    # line 2
    x = x_ref[...]
    y_ref[...] = x.T
    n_index = BN * n_block + jax.lax.broadcasted_iota(jnp.int32, (BM, BN), 1)
    m_index = BM * m_block + jax.lax.broadcasted_iota(jnp.int32, (BM, BN), 0)
    t = jnp.where(n_index <= m_index, (m_index * n_index).astype(jnp.float32), x)
    s_ref[...] = t


@functools.partial(jax.jit, static_argnames=("BM", "BN", "interpret"))
def transpose(x, *, BM=128, BN=128, interpret=False):
    """Return (y, s)."""
    if x.ndim != 2 or x.dtype != jnp.float32:
        raise ValueError(f"expected x: float32[M, N]; got {x.dtype}{x.shape}")
    M, N = x.shape
    if 0 in (N, M):
        return jnp.zeros((N, M), jnp.float32), jnp.zeros((M, N), jnp.float32)
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BM, BN = min(BM, M), min(BN, N)
    if min(BM, BN) < 1 or (BM % 128 and BM < M) or (BN % 128 and BN < N):
        raise ValueError(
            f"tile sizes are multiples (BM of 128, BN of 128) or a whole dimension; got BM = {BM}, BN = {BN}"
        )
    y, s = pl.pallas_call(
        functools.partial(_transpose_kernel, BM=BM, BN=BN),
        out_shape=[
            jax.ShapeDtypeStruct((N, M), jnp.float32),
            jax.ShapeDtypeStruct((M, N), jnp.float32),
        ],
        grid=(pl.cdiv(M, BM), pl.cdiv(N, BN)),
        in_specs=[
            pl.BlockSpec((BM, BN), lambda m_block, n_block: (m_block, n_block)),
        ],
        out_specs=[
            pl.BlockSpec((BN, BM), lambda m_block, n_block: (n_block, m_block)),
            pl.BlockSpec((BM, BN), lambda m_block, n_block: (m_block, n_block)),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
        interpret=interpret,
        name="transpose",
    )(x)
    return y, s
