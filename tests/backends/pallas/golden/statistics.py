"""statistics: a kernel for TPU, in Pallas

    x: float32[M, N], r: float32[M] -> y: float32[M, N], mean: float32[M], top: int32[M]

Tile sizes: BM a multiple of 128; each is cut down to its dimension.

Made by kdsl from statistics.py, line 1.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def first_extreme(x, extreme, axis):
    """The lowest lane along an axis that holds the extreme, or NaN; the axis is kept with size 1."""
    lane = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return jnp.min(jnp.where((x == extreme) | (x != x), lane, x.shape[axis]), axis=axis, keepdims=True)


def _statistics_kernel(x_ref, r_ref, y_ref, mean_ref, top_ref):
    # line 4
    t = x_ref[...] * r_ref[...].T
    y_ref[...] = t
    # line 5
    s = jnp.sum(t, axis=1, keepdims=True)
    mean_ref[...] = s.T
    # line 6
    a = first_extreme(t, jnp.max(t, axis=1, keepdims=True), 1)
    top_ref[...] = a.T


@functools.partial(jax.jit, static_argnames=("BM", "interpret"))
def statistics(x, r, *, BM=128, interpret=False):
    """Return (y, mean, top)."""
    if x.ndim != 2 or r.ndim != 1 or x.dtype != jnp.float32 or r.dtype != jnp.float32:
        raise ValueError(f"expected x: float32[M, N], r: float32[M]; got {x.dtype}{x.shape}, {r.dtype}{r.shape}")
    M, N = x.shape
    if r.shape != (M,):
        raise ValueError(f"expected x: float32[M, N], r: float32[M]; got {x.dtype}{x.shape}, {r.dtype}{r.shape}")
    if M == 0:
        return jnp.zeros((M, N), jnp.float32), jnp.zeros((M,), jnp.float32), jnp.zeros((M,), jnp.int32)
    if N < 1:
        raise ValueError(f"N must be at least 1; got N = {N}")
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BM = min(BM, M)
    if BM < 1 or (BM % 128 and BM < M):
        raise ValueError(f"tile sizes are multiples (BM of 128) or a whole dimension; got BM = {BM}")
    y, mean, top = pl.pallas_call(
        _statistics_kernel,
        out_shape=[
            jax.ShapeDtypeStruct((M, N), jnp.float32),
            jax.ShapeDtypeStruct((1, M), jnp.float32),
            jax.ShapeDtypeStruct((1, M), jnp.int32),
        ],
        grid=(pl.cdiv(M, BM),),
        in_specs=[
            pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
            pl.BlockSpec((1, BM), lambda m_block: (0, m_block)),
        ],
        out_specs=[
            pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
            pl.BlockSpec((1, BM), lambda m_block: (0, m_block)),
            pl.BlockSpec((1, BM), lambda m_block: (0, m_block)),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
        name="statistics",
    )(x, r.reshape(1, M))
    return y, mean.reshape((M,)), top.reshape((M,))
