"""attention: a kernel for TPU, in Pallas

    q: bfloat16[B, H, L, D], k: bfloat16[B, H, S, D], v: bfloat16[B, H, S, D] -> out: bfloat16[B, H, L, D]

Tile sizes: BL a multiple of 8, BS a multiple of 8; each is cut down to its dimension.

Made by kdsl from attention.py, line 3.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _attention_kernel(q_ref, k_ref, v_ref, out_ref, row_max_ref, row_sum_ref, acc_ref, *, L, S, D, BL, BS):
    l_block = pl.program_id(2)
    n_block = pl.program_id(3)

    @pl.when(n_block == 0)
    def _start():
        # line 6
        row_max_ref[...] = jnp.full((BL, 1), -jnp.inf, jnp.float32)
        row_sum_ref[...] = jnp.zeros((BL, 1), jnp.float32)
        # line 7
        acc_ref[...] = jnp.zeros((BL, D), jnp.float32)

    @pl.when(n_block < pl.cdiv(jnp.minimum(BL * l_block + BL, jnp.minimum(L, S)), BS))
    def _step():
        row_max = row_max_ref[...]
        # line 9
        dot = jax.lax.dot_general(q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
        s = dot * 0.125
        # line 10
        n_index = BS * n_block + jax.lax.broadcasted_iota(jnp.int32, (BL, BS), 1)
        l_index = BL * l_block + jax.lax.broadcasted_iota(jnp.int32, (BL, BS), 0)
        s_2 = jnp.where(n_index <= l_index, s, -jnp.inf)
        # line 11
        inside = n_index < jnp.minimum(BL * l_block + BL, jnp.minimum(L, S))
        s_3 = jnp.where(inside, s_2, -jnp.inf)
        new_max = jnp.maximum(row_max, jnp.max(s_3, axis=1, keepdims=True))
        # line 12
        p = jnp.exp(s_2 - new_max)
        alpha = jnp.exp(row_max - new_max)
        # line 13
        p_2 = jnp.where(inside, p, 0.0)
        psum = jnp.sum(p_2, axis=1, keepdims=True)
        # line 14
        n_index_2 = BS * n_block + jax.lax.broadcasted_iota(jnp.int32, (BS, D), 0)
        inside_2 = n_index_2 < jnp.minimum(BL * l_block + BL, jnp.minimum(L, S))
        cast = jnp.where(inside, p.astype(jnp.bfloat16), 0.0)
        dot_2 = jax.lax.dot_general(
            cast,
            jnp.where(inside_2, v_ref[...], 0.0),
            (((1,), (0,)), ((), ())),
            preferred_element_type=jnp.float32,
        )
        # line 11
        row_max_ref[...] = new_max
        # line 13
        row_sum_ref[...] = row_sum_ref[...] * alpha + psum
        # line 14
        acc_ref[...] = acc_ref[...] * alpha + dot_2

    @pl.when(n_block == pl.num_programs(3) - 1)
    def _finish():
        # line 15
        out_ref[...] = (acc_ref[...] / row_sum_ref[...]).astype(jnp.bfloat16)


@functools.partial(jax.jit, static_argnames=("BL", "BS", "interpret"))
def attention(q, k, v, *, BL=128, BS=64, interpret=False):
    """Return out."""
    if (
        q.ndim != 4
        or k.ndim != 4
        or v.ndim != 4
        or q.dtype != jnp.bfloat16
        or k.dtype != jnp.bfloat16
        or v.dtype != jnp.bfloat16
    ):
        raise ValueError(
            "expected q: bfloat16[B, H, L, D], k: bfloat16[B, H, S, D], v: bfloat16[B, H, S, D]; "
            f"got {q.dtype}{q.shape}, {k.dtype}{k.shape}, {v.dtype}{v.shape}"
        )
    B, H, L, D = q.shape
    S = k.shape[2]
    if k.shape != (B, H, S, D) or v.shape != (B, H, S, D):
        raise ValueError(
            "expected q: bfloat16[B, H, L, D], k: bfloat16[B, H, S, D], v: bfloat16[B, H, S, D]; "
            f"got {q.dtype}{q.shape}, {k.dtype}{k.shape}, {v.dtype}{v.shape}"
        )
    if 0 in (B, H, L, D):
        return jnp.zeros((B, H, L, D), jnp.bfloat16)
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BL, BS = min(BL, L), min(BS, max(S, 1))
    if min(BL, BS) < 1 or (BL % 8 and BL < L) or (BS % 8 and BS < S):
        raise ValueError(f"tile sizes are multiples (BL of 8, BS of 8) or a whole dimension; got BL = {BL}, BS = {BS}")
    if S == 0:  # no step, but still a block to fetch
        k = jnp.zeros((B, H, 1, D), k.dtype)
        v = jnp.zeros((B, H, 1, D), v.dtype)
    return pl.pallas_call(
        functools.partial(_attention_kernel, L=L, S=S, D=D, BL=BL, BS=BS),
        out_shape=jax.ShapeDtypeStruct((B, H, L, D), jnp.bfloat16),
        grid=(B, H, pl.cdiv(L, BL), max(pl.cdiv(min(L, S), BS), 1)),
        in_specs=[
            pl.BlockSpec((None, None, BL, D), lambda b, h, l_block, n_block: (b, h, l_block, 0)),
            pl.BlockSpec((None, None, BS, D), lambda b, h, l_block, n_block: (b, h, n_block, 0)),
            pl.BlockSpec((None, None, BS, D), lambda b, h, l_block, n_block: (b, h, n_block, 0)),
        ],
        out_specs=pl.BlockSpec((None, None, BL, D), lambda b, h, l_block, n_block: (b, h, l_block, 0)),
        scratch_shapes=[
            pltpu.VMEM((BL, 1), jnp.float32),
            pltpu.VMEM((BL, 1), jnp.float32),
            pltpu.VMEM((BL, D), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "parallel", "arbitrary")),
        interpret=interpret,
        name="attention",
    )(q, k, v)
