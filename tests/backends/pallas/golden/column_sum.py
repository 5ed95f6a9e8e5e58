"""column_sum: a kernel for TPU, in Pallas

    x: float32[M, N] -> y: float32[N]

Tile sizes: BM a multiple of 8, BN a multiple of 128; each is cut down to its dimension.

Made by kdsl from column_sum.py, line 1.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _column_sum_kernel(x_ref, y_ref, acc_ref, *, M, BM, BN):
    m_block = pl.program_id(1)

    @pl.when(m_block == 0)
    def _start():
        # line 2
        acc_ref[...] = jnp.zeros((1, BN), jnp.float32)

    @pl.when(m_block < pl.cdiv(M, BM))  # none if there is nothing to loop over
    def _step():
        # line 4
        m_index = BM * m_block + jax.lax.broadcasted_iota(jnp.int32, (BM, BN), 0)
        s = jnp.sum(jnp.where(m_index < M, x_ref[...], 0.0), axis=0, keepdims=True)
        acc_ref[...] += s

    @pl.when(m_block == pl.num_programs(1) - 1)
    def _finish():
        # line 5
        y_ref[...] = acc_ref[...]


@functools.partial(jax.jit, static_argnames=("BM", "BN", "interpret"))
def column_sum(x, *, BM=8, BN=128, interpret=False):
    """Return y."""
    if x.ndim != 2 or x.dtype != jnp.float32:
        raise ValueError(f"expected x: float32[M, N]; got {x.dtype}{x.shape}")
    M, N = x.shape
    if N == 0:
        return jnp.zeros((N,), jnp.float32)
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BM, BN = min(BM, max(M, 1)), min(BN, N)
    if min(BM, BN) < 1 or (BM % 8 and BM < M) or (BN % 128 and BN < N):
        raise ValueError(
            f"tile sizes are multiples (BM of 8, BN of 128) or a whole dimension; got BM = {BM}, BN = {BN}"
        )
    if M == 0:  # no step, but still a block to fetch
        x = jnp.zeros((1, N), x.dtype)
    y = pl.pallas_call(
        functools.partial(_column_sum_kernel, M=M, BM=BM, BN=BN),
        out_shape=jax.ShapeDtypeStruct((1, N), jnp.float32),
        grid=(pl.cdiv(N, BN), max(pl.cdiv(M, BM), 1)),
        in_specs=[
            pl.BlockSpec((BM, BN), lambda n_block, m_block: (m_block, n_block)),
        ],
        out_specs=pl.BlockSpec((1, BN), lambda n_block, m_block: (0, n_block)),
        scratch_shapes=[
            pltpu.VMEM((1, BN), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
        interpret=interpret,
        name="column_sum",
    )(x)
    return y.reshape((N,))
