"""softmax: a kernel for TPU, in Pallas

    x: float32[M, N] -> y: float32[M, N]

Tile sizes: BM a multiple of 8; each is cut down to its dimension.

Made by kdsl from softmax.py, line 3.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _softmax_kernel(x_ref, y_ref):
    # line 5
    x = x_ref[...]
    # line 6
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    # line 7
    s = jnp.sum(e, axis=1, keepdims=True)
    # line 8
    y_ref[...] = e / s


@functools.partial(jax.jit, static_argnames=("BM", "interpret"))
def softmax(x, *, BM=32, interpret=False):
    """Return y."""
    if x.ndim != 2 or x.dtype != jnp.float32:
        raise ValueError(f"expected x: float32[M, N]; got {x.dtype}{x.shape}")
    M, N = x.shape
    if 0 in (M, N):
        return jnp.zeros((M, N), jnp.float32)
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BM = min(BM, M)
    if BM < 1 or (BM % 8 and BM < M):
        raise ValueError(f"tile sizes are multiples (BM of 8) or a whole dimension; got BM = {BM}")
    return pl.pallas_call(
        _softmax_kernel,
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
        grid=(pl.cdiv(M, BM),),
        in_specs=[
            pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
        ],
        out_specs=pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
        name="softmax",
    )(x)
