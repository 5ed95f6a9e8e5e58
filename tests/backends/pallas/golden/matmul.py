"""matmul: a kernel for TPU, in Pallas

    a: bfloat16[M, K], b: bfloat16[K, N], bias: bfloat16[N] -> c: bfloat16[M, N]

Tile sizes: BM a multiple of 8, BN a multiple of 128, BK a multiple of 128; each is cut down to its dimension.

Made by kdsl from matmul.py, line 3.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _matmul_kernel(a_ref, b_ref, bias_ref, c_ref, acc_ref, *, K, BM, BN, BK):
    k_block = pl.program_id(2)

    @pl.when(k_block == 0)
    def _start():
        # line 6
        acc_ref[...] = jnp.zeros((BM, BN), jnp.float32)

    @pl.when(k_block < pl.cdiv(K, BK))  # none if there is nothing to loop over
    def _step():
        # line 8
        k_index = BK * k_block + jax.lax.broadcasted_iota(jnp.int32, (BM, BK), 1)
        k_index_2 = BK * k_block + jax.lax.broadcasted_iota(jnp.int32, (BK, BN), 0)
        dot = jax.lax.dot_general(
            jnp.where(k_index < K, a_ref[...], 0.0),
            jnp.where(k_index_2 < K, b_ref[...], 0.0),
            (((1,), (0,)), ((), ())),
            preferred_element_type=jnp.float32,
        )
        acc_ref[...] += dot

    @pl.when(k_block == pl.num_programs(2) - 1)
    def _finish():
        # line 9
        y = acc_ref[...] + bias_ref[...].astype(jnp.float32)
        # line 10
        relu = jnp.maximum(y, 0.0)
        c_ref[...] = relu.astype(jnp.bfloat16)


@functools.partial(jax.jit, static_argnames=("BM", "BN", "BK", "interpret"))
def matmul(a, b, bias, *, BM=128, BN=128, BK=128, interpret=False):
    """Return c."""
    if (
        a.ndim != 2
        or b.ndim != 2
        or bias.ndim != 1
        or a.dtype != jnp.bfloat16
        or b.dtype != jnp.bfloat16
        or bias.dtype != jnp.bfloat16
    ):
        raise ValueError(
            "expected a: bfloat16[M, K], b: bfloat16[K, N], bias: bfloat16[N]; "
            f"got {a.dtype}{a.shape}, {b.dtype}{b.shape}, {bias.dtype}{bias.shape}"
        )
    M, K = a.shape
    N = b.shape[1]
    if b.shape != (K, N) or bias.shape != (N,):
        raise ValueError(
            "expected a: bfloat16[M, K], b: bfloat16[K, N], bias: bfloat16[N]; "
            f"got {a.dtype}{a.shape}, {b.dtype}{b.shape}, {bias.dtype}{bias.shape}"
        )
    if 0 in (M, N):
        return jnp.zeros((M, N), jnp.bfloat16)
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BM, BN, BK = min(BM, M), min(BN, N), min(BK, max(K, 1))
    if min(BM, BN, BK) < 1 or (BM % 8 and BM < M) or (BN % 128 and BN < N) or (BK % 128 and BK < K):
        raise ValueError(
            "tile sizes are multiples (BM of 8, BN of 128, BK of 128) or a whole dimension; "
            f"got BM = {BM}, BN = {BN}, BK = {BK}"
        )
    if K == 0:  # no step, but still a block to fetch
        a = jnp.zeros((M, 1), a.dtype)
        b = jnp.zeros((1, N), b.dtype)
    return pl.pallas_call(
        functools.partial(_matmul_kernel, K=K, BM=BM, BN=BN, BK=BK),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.bfloat16),
        grid=(pl.cdiv(M, BM), pl.cdiv(N, BN), max(pl.cdiv(K, BK), 1)),
        in_specs=[
            pl.BlockSpec((BM, BK), lambda m_block, n_block, k_block: (m_block, k_block)),
            pl.BlockSpec((BK, BN), lambda m_block, n_block, k_block: (k_block, n_block)),
            pl.BlockSpec((1, BN), lambda m_block, n_block, k_block: (0, n_block)),
        ],
        out_specs=pl.BlockSpec((BM, BN), lambda m_block, n_block, k_block: (m_block, n_block)),
        scratch_shapes=[
            pltpu.VMEM((BM, BN), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
        interpret=interpret,
        name="matmul",
    )(a, b, bias.reshape(1, N))
