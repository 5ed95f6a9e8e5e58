"""bools: a kernel for TPU, in Pallas

    x: float32[M, N], b: bool[M, N], i: int8[M, N] -> y: bool[M, N], z: int8[M, N], any: bool[M]

Tile sizes: BM a multiple of 128; each is cut down to its dimension.

Made by kdsl from bools.py, line 1.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def to_integer(x, dtype):
    """Floats rounded toward zero and saturated; NaN gives 0."""
    limits = jnp.iinfo(dtype)
    high, low = x >= float(limits.max), x <= float(limits.min)
    whole = jnp.where(high | low | (x != x), 0, x).astype(dtype)
    return jnp.where(high, jnp.full_like(whole, limits.max), jnp.where(low, jnp.full_like(whole, limits.min), whole))


def _bools_kernel(x_ref, b_ref, i_ref, y_ref, z_ref, any_ref):
    # line 2
    j = i_ref[...].astype(jnp.int32)
    g = j > 3
    h = (b_ref[...] != 0) & g
    y_ref[...] = h.astype(jnp.int32)
    k = to_integer(x_ref[...], jnp.int8)
    z_ref[...] = k.astype(jnp.int32)
    any = jnp.max(h.astype(jnp.int32), axis=1, keepdims=True) != 0
    any_ref[...] = (any.astype(jnp.int32).T != 0).astype(jnp.int32)


@functools.partial(jax.jit, static_argnames=("BM", "interpret"))
def bools(x, b, i, *, BM=128, interpret=False):
    """Return (y, z, any)."""
    if (
        x.ndim != 2
        or b.ndim != 2
        or i.ndim != 2
        or x.dtype != jnp.float32
        or b.dtype != jnp.bool_
        or i.dtype != jnp.int8
    ):
        raise ValueError(
            "expected x: float32[M, N], b: bool[M, N], i: int8[M, N]; "
            f"got {x.dtype}{x.shape}, {b.dtype}{b.shape}, {i.dtype}{i.shape}"
        )
    M, N = x.shape
    if b.shape != (M, N) or i.shape != (M, N):
        raise ValueError(
            "expected x: float32[M, N], b: bool[M, N], i: int8[M, N]; "
            f"got {x.dtype}{x.shape}, {b.dtype}{b.shape}, {i.dtype}{i.shape}"
        )
    if M == 0:
        return jnp.zeros((M, N), jnp.bool_), jnp.zeros((M, N), jnp.int8), jnp.zeros((M,), jnp.bool_)
    if N < 1:
        raise ValueError(f"N must be at least 1; got N = {N}")
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BM = min(BM, M)
    if BM < 1 or (BM % 128 and BM < M):
        raise ValueError(f"tile sizes are multiples (BM of 128) or a whole dimension; got BM = {BM}")
    y, z, any = pl.pallas_call(
        _bools_kernel,
        out_shape=[
            jax.ShapeDtypeStruct((M, N), jnp.int32),
            jax.ShapeDtypeStruct((M, N), jnp.int32),
            jax.ShapeDtypeStruct((1, M), jnp.int32),
        ],
        grid=(pl.cdiv(M, BM),),
        in_specs=[
            pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
            pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
            pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
        ],
        out_specs=[
            pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
            pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
            pl.BlockSpec((1, BM), lambda m_block: (0, m_block)),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
        name="bools",
    )(x, b.astype(jnp.int32), i)
    return y.astype(jnp.bool_), z.astype(jnp.int8), any.reshape((M,)).astype(jnp.bool_)
