"""matmul_bias: c = a @ b + bias for TPU, in Pallas.

    a[M, K], b[K, N], bias[N] -> c[M, N]

All of one floating dtype (bfloat16 or float32), any M, N, K >= 1. Sums are float32; the result is rounded once.
Tile sizes: BM a multiple of 8, BN and BK multiples of 128; each is cut down to its dimension where that is smaller.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _matmul_bias_kernel(a_ref, b_ref, bias_ref, c_ref, acc_ref, *, K, BK):
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _start():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    a = a_ref[...]
    b = b_ref[...]
    if K % BK != 0:
        # The last block reaches past K and holds garbage there, in both operands: 0 * NaN is NaN.
        a = jnp.where(k * BK + lax.broadcasted_iota(jnp.int32, a.shape, 1) < K, a, 0)
        b = jnp.where(k * BK + lax.broadcasted_iota(jnp.int32, b.shape, 0) < K, b, 0)
    acc_ref[...] += lax.dot_general(
        a,
        b,
        (((1,), (0,)), ((), ())),
        precision=lax.Precision.HIGHEST if a.dtype == jnp.float32 else lax.Precision.DEFAULT,
        preferred_element_type=jnp.float32,
    )

    @pl.when(k == pl.num_programs(2) - 1)
    def _finish():
        c_ref[...] = (acc_ref[...] + bias_ref[...].astype(jnp.float32)).astype(c_ref.dtype)


@functools.partial(jax.jit, static_argnames=("BM", "BN", "BK", "interpret"))
def matmul_bias(a, b, bias, *, BM=128, BN=128, BK=128, interpret=False):
    """Return c[M, N] = a[M, K] @ b[K, N] + bias[N], in a's dtype."""
    M, K = a.shape
    N = b.shape[1]
    if b.shape != (K, N) or bias.shape != (N,):
        raise ValueError(f"expected a[M, K], b[K, N], bias[N]; got {a.shape}, {b.shape}, {bias.shape}")
    if not a.dtype == b.dtype == bias.dtype:
        raise TypeError(f"expected one dtype; got {a.dtype}, {b.dtype}, {bias.dtype}")
    # A block taller than its array is not only waste: Mosaic cannot select on bfloat16 ones of 4 rows or fewer.
    BM, BN, BK = min(BM, M), min(BN, N), min(BK, K)
    return pl.pallas_call(
        functools.partial(_matmul_bias_kernel, K=K, BK=BK),
        out_shape=jax.ShapeDtypeStruct((M, N), a.dtype),
        grid=(pl.cdiv(M, BM), pl.cdiv(N, BN), pl.cdiv(K, BK)),
        in_specs=[
            pl.BlockSpec((BM, BK), lambda m, n, k: (m, k)),
            pl.BlockSpec((BK, BN), lambda m, n, k: (k, n)),
            pl.BlockSpec((1, BN), lambda m, n, k: (0, n)),
        ],
        out_specs=pl.BlockSpec((BM, BN), lambda m, n, k: (m, n)),
        scratch_shapes=[pltpu.VMEM((BM, BN), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
        interpret=interpret,
        name="matmul_bias",
    )(a, b, bias.reshape(1, N))
