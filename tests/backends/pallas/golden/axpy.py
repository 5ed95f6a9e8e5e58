"""axpy: a kernel for TPU, in Pallas

    x: float32[M, N], alpha: f32, y: float32[M, N] -> y: float32[M, N]
    sizes: S

Tile sizes: BM a multiple of 8, BN a multiple of 128; each is cut down to its dimension.

Made by kdsl from axpy.py, line 1.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _axpy_kernel(alpha_ref, x_ref, y_ref, y_out_ref, *, S, BM, BN):
    n_block = pl.program_id(1)
    # line 2
    p = x_ref[...] * alpha_ref[0, 0]
    q = p + y_ref[...]
    n_index = BN * n_block + jax.lax.broadcasted_iota(jnp.int32, (BM, BN), 1)
    y_out_ref[...] = jnp.where(n_index < S, q, y_ref[...])


@functools.partial(jax.jit, static_argnames=("S", "BM", "BN", "interpret"))
def axpy(x, alpha, y, *, S, BM=8, BN=128, interpret=False):
    """Return y."""
    if x.ndim != 2 or y.ndim != 2 or x.dtype != jnp.float32 or y.dtype != jnp.float32:
        raise ValueError(f"expected x: float32[M, N], y: float32[M, N]; got {x.dtype}{x.shape}, {y.dtype}{y.shape}")
    M, N = x.shape
    if y.shape != (M, N):
        raise ValueError(f"expected x: float32[M, N], y: float32[M, N]; got {x.dtype}{x.shape}, {y.dtype}{y.shape}")
    if 0 in (M, N):
        return y
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BM, BN = min(BM, M), min(BN, N)
    if min(BM, BN) < 1 or (BM % 8 and BM < M) or (BN % 128 and BN < N):
        raise ValueError(
            f"tile sizes are multiples (BM of 8, BN of 128) or a whole dimension; got BM = {BM}, BN = {BN}"
        )
    return pl.pallas_call(
        functools.partial(_axpy_kernel, S=S, BM=BM, BN=BN),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
        grid=(pl.cdiv(M, BM), pl.cdiv(N, BN)),
        in_specs=[
            pl.BlockSpec(memory_space=pltpu.SMEM),
            pl.BlockSpec((BM, BN), lambda m_block, n_block: (m_block, n_block)),
            pl.BlockSpec((BM, BN), lambda m_block, n_block: (m_block, n_block)),
        ],
        out_specs=pl.BlockSpec((BM, BN), lambda m_block, n_block: (m_block, n_block)),
        input_output_aliases={2: 0},
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
        interpret=interpret,
        name="axpy",
    )(jnp.full((1, 1), alpha, jnp.float32), x, y)
