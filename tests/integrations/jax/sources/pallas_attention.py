"""attention: causal flash attention, forward, for TPU, in Pallas.

    q[B, H, L, D], k[B, H, S, D], v[B, H, S, D] -> out[B, H, L, D]

All of one floating dtype (bfloat16 or float32); sums and the softmax are float32. Row l attends to columns s <= l.
Tile sizes: multiples of 8 (BS of 128 for speed); each is cut down to its dimension where that is smaller.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _attention_kernel(q_ref, k_ref, v_ref, out_ref, row_max_ref, row_sum_ref, acc_ref, *, S, BL, BS, scale):
    m = pl.program_id(2)
    n = pl.program_id(3)

    @pl.when(n == 0)
    def _start():
        row_max_ref[...] = jnp.full_like(row_max_ref, -jnp.inf)
        row_sum_ref[...] = jnp.zeros_like(row_sum_ref)
        acc_ref[...] = jnp.zeros_like(acc_ref)

    # Blocks past the diagonal hold no column that any row of this block attends to.
    @pl.when(n * BS < (m + 1) * BL)
    def _step():
        precision = lax.Precision.HIGHEST if q_ref.dtype == jnp.float32 else lax.Precision.DEFAULT
        s = scale * lax.dot_general(
            q_ref[...],
            k_ref[...],
            (((1,), (1,)), ((), ())),
            precision=precision,
            preferred_element_type=jnp.float32,
        )
        row = m * BL + lax.broadcasted_iota(jnp.int32, (BL, BS), 0)
        column = n * BS + lax.broadcasted_iota(jnp.int32, (BL, BS), 1)
        # A select, so NaN from garbage rows of k beyond S goes too.
        s = jnp.where((column <= row) & (column < S), s, -jnp.inf)

        row_max = row_max_ref[...]
        new_max = jnp.maximum(row_max, jnp.max(s, axis=1, keepdims=True))
        p = jnp.exp(s - new_max)
        alpha = jnp.exp(row_max - new_max)
        row_sum_ref[...] = row_sum_ref[...] * alpha + jnp.sum(p, axis=1, keepdims=True)
        row_max_ref[...] = new_max

        v = v_ref[...]
        if S % BS != 0:
            # p is 0 in the columns beyond S, but 0 * NaN is NaN: zero those rows of v as well.
            v = jnp.where(n * BS + lax.broadcasted_iota(jnp.int32, v.shape, 0) < S, v, 0)
        acc_ref[...] = acc_ref[...] * alpha + lax.dot_general(
            p.astype(v.dtype),
            v,
            (((1,), (0,)), ((), ())),
            precision=precision,
            preferred_element_type=jnp.float32,
        )

    @pl.when(n == pl.num_programs(3) - 1)
    def _finish():
        out_ref[...] = (acc_ref[...] / row_sum_ref[...]).astype(out_ref.dtype)


@functools.partial(jax.jit, static_argnames=("scale", "BL", "BS", "interpret"))
def attention(q, k, v, *, scale, BL=128, BS=128, interpret=False):
    """Return out[B, H, L, D] = softmax over s <= l of (scale * q . k) @ v, in q's dtype."""
    B, H, L, D = q.shape
    S = k.shape[2]
    if k.shape != (B, H, S, D) or v.shape != (B, H, S, D):
        raise ValueError(f"expected q[B, H, L, D], k and v[B, H, S, D]; got {q.shape}, {k.shape}, {v.shape}")
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"expected one dtype; got {q.dtype}, {k.dtype}, {v.dtype}")
    # A block taller than its array is not only waste: Mosaic cannot select on bfloat16 ones of 4 rows or fewer.
    BL, BS = min(BL, L), min(BS, S)
    return pl.pallas_call(
        functools.partial(_attention_kernel, S=S, BL=BL, BS=BS, scale=scale),
        out_shape=jax.ShapeDtypeStruct((B, H, L, D), q.dtype),
        grid=(B, H, pl.cdiv(L, BL), pl.cdiv(S, BS)),
        in_specs=[
            pl.BlockSpec((None, None, BL, D), lambda b, h, m, n: (b, h, m, 0)),
            pl.BlockSpec((None, None, BS, D), lambda b, h, m, n: (b, h, n, 0)),
            pl.BlockSpec((None, None, BS, D), lambda b, h, m, n: (b, h, n, 0)),
        ],
        out_specs=pl.BlockSpec((None, None, BL, D), lambda b, h, m, n: (b, h, m, 0)),
        scratch_shapes=[
            pltpu.VMEM((BL, 1), jnp.float32),
            pltpu.VMEM((BL, 1), jnp.float32),
            pltpu.VMEM((BL, D), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "parallel", "arbitrary"),
        ),
        interpret=interpret,
        name="attention",
    )(q, k, v)
