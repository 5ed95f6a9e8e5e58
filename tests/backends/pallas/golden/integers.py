"""integers: a kernel for TPU, in Pallas

    x: int32[M, N], w: int32[M, N], u: uint32[M, N] -> y: int32[M, N], z: uint32[M, N], f: bfloat16[M, N]

Tile sizes: BM a multiple of 8; each is cut down to its dimension.

Made by kdsl from integers.py, line 1.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def floor_divide(x, y):
    """x / y of integers, rounded down; 0 where y is 0."""
    return jnp.where(y == 0, 0, x // jnp.where(y == 0, 1, y))


def floor_mod(x, y):
    """x - y * floor(x / y) of integers; 0 where y is 0."""
    return jnp.where(y == 0, 0, x % jnp.where(y == 0, 1, y))


def shift_left(x, y):
    """x << y; 0 where y is no bit position."""
    inside = (y >= 0) & (y < jnp.iinfo(x.dtype).bits)
    return jnp.where(inside, x << jnp.where(inside, y, 0), 0)


def shift_right(x, y):
    """x >> y, with sign if x has one; past the width all sign bits."""
    bits = jnp.iinfo(x.dtype).bits
    inside = (y >= 0) & (y < bits)
    # Two shifts clear the whole width; one by the width itself is undefined.
    return jnp.where(inside, x >> jnp.where(inside, y, 0), (x >> (bits - 1)) >> 1)


def to_bfloat16(x):
    """32-bit integers rounded once. From 2**24 on, float32 holds them with their low byte reduced to "not zero"."""
    large = (x >= 2**24) | (x < -(2**24)) if x.dtype == jnp.int32 else x >= 2**24
    sticky = jnp.where(large & (x & 255 != 0), x - (x & 255) + 128, x)
    return sticky.astype(jnp.float32).astype(jnp.bfloat16)


def _integers_kernel(x_ref, w_ref, u_ref, y_ref, z_ref, f_ref):
    # line 2
    x = x_ref[...]
    w = w_ref[...]
    u = u_ref[...]
    # line 3
    a = floor_divide(x, w)
    b = floor_mod(x, w)
    c = shift_left(x, w)
    d = shift_right(x, w)
    e = a ^ b
    g = c + d
    h = e ^ g
    # line 4
    s = jnp.sum(h, axis=1, dtype=jnp.int32, keepdims=True)
    t = h - s
    y_ref[...] = t
    v = u & jnp.uint32(4000000000)
    k = jnp.where(v < u, v, u)
    # line 5
    z_ref[...] = k
    # line 6
    f = to_bfloat16(x)
    f_ref[...] = f


@functools.partial(jax.jit, static_argnames=("BM", "interpret"))
def integers(x, w, u, *, BM=8, interpret=False):
    """Return (y, z, f)."""
    if (
        x.ndim != 2
        or w.ndim != 2
        or u.ndim != 2
        or x.dtype != jnp.int32
        or w.dtype != jnp.int32
        or u.dtype != jnp.uint32
    ):
        raise ValueError(
            "expected x: int32[M, N], w: int32[M, N], u: uint32[M, N]; "
            f"got {x.dtype}{x.shape}, {w.dtype}{w.shape}, {u.dtype}{u.shape}"
        )
    M, N = x.shape
    if w.shape != (M, N) or u.shape != (M, N):
        raise ValueError(
            "expected x: int32[M, N], w: int32[M, N], u: uint32[M, N]; "
            f"got {x.dtype}{x.shape}, {w.dtype}{w.shape}, {u.dtype}{u.shape}"
        )
    if 0 in (M, N):
        return jnp.zeros((M, N), jnp.int32), jnp.zeros((M, N), jnp.uint32), jnp.zeros((M, N), jnp.bfloat16)
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BM = min(BM, M)
    if BM < 1 or (BM % 8 and BM < M):
        raise ValueError(f"tile sizes are multiples (BM of 8) or a whole dimension; got BM = {BM}")
    y, z, f = pl.pallas_call(
        _integers_kernel,
        out_shape=[
            jax.ShapeDtypeStruct((M, N), jnp.int32),
            jax.ShapeDtypeStruct((M, N), jnp.uint32),
            jax.ShapeDtypeStruct((M, N), jnp.bfloat16),
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
            pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
        name="integers",
    )(x, w, u)
    return y, z, f
