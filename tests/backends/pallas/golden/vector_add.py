"""vector_add: a kernel for TPU, in Pallas

    x: float32[N], y: float32[N] -> z: float32[N]

Tile sizes: BN a multiple of 1024; each is cut down to its dimension.

Made by kdsl from add.py, line 3.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _vector_add_kernel(x_ref, y_ref, z_ref):
    # line 5
    z_ref[...] = x_ref[...] + y_ref[...]


@functools.partial(jax.jit, static_argnames=("BN", "interpret"))
def vector_add(x, y, *, BN=1024, interpret=False):
    """Return z."""
    if x.ndim != 1 or y.ndim != 1 or x.dtype != jnp.float32 or y.dtype != jnp.float32:
        raise ValueError(f"expected x: float32[N], y: float32[N]; got {x.dtype}{x.shape}, {y.dtype}{y.shape}")
    (N,) = x.shape
    if y.shape != (N,):
        raise ValueError(f"expected x: float32[N], y: float32[N]; got {x.dtype}{x.shape}, {y.dtype}{y.shape}")
    if N == 0:
        return jnp.zeros((N,), jnp.float32)
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BN = min(BN, N)
    if BN < 1 or (BN % 1024 and BN < N):
        raise ValueError(f"tile sizes are multiples (BN of 1024) or a whole dimension; got BN = {BN}")
    return pl.pallas_call(
        _vector_add_kernel,
        out_shape=jax.ShapeDtypeStruct((N,), jnp.float32),
        grid=(pl.cdiv(N, BN),),
        in_specs=[
            pl.BlockSpec((BN,), lambda n_block: (n_block,)),
            pl.BlockSpec((BN,), lambda n_block: (n_block,)),
        ],
        out_specs=pl.BlockSpec((BN,), lambda n_block: (n_block,)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
        name="vector_add",
    )(x, y)
