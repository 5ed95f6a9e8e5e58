"""row_sum: a kernel for TPU, in Pallas

    x: float32[M, N] -> y: float32[M, N], s: float32[M]

Made by kdsl from row_sum.py, line 1.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _row_sum_kernel(x_ref, y_ref, s_ref):
    # line 2
    x = x_ref[...]
    # line 5
    s = jnp.sum(x, axis=1, keepdims=True)
    d = x / s
    y_ref[...] = d
    s_ref[...] = s


@functools.partial(jax.jit, static_argnames=("interpret",))
def row_sum(x, *, interpret=False):
    """Return (y, s)."""
    if x.ndim != 2 or x.dtype != jnp.float32:
        raise ValueError(f"expected x: float32[M, N]; got {x.dtype}{x.shape}")
    M, N = x.shape
    if M == 0:
        return jnp.zeros((M, N), jnp.float32), jnp.zeros((M,), jnp.float32)
    if N < 1:
        raise ValueError(f"N must be at least 1; got N = {N}")
    y, s = pl.pallas_call(
        _row_sum_kernel,
        out_shape=[
            jax.ShapeDtypeStruct((M, 1, N), jnp.float32),
            jax.ShapeDtypeStruct((M, 1, 1), jnp.float32),
        ],
        grid=(M,),
        in_specs=[
            pl.BlockSpec((None, 1, N), lambda m: (m, 0, 0)),
        ],
        out_specs=[
            pl.BlockSpec((None, 1, N), lambda m: (m, 0, 0)),
            pl.BlockSpec((None, 1, 1), lambda m: (m, 0, 0)),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
        name="row_sum",
    )(x.reshape(M, 1, N))
    return y.reshape((M, N)), s.reshape((M,))
