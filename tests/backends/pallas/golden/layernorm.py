"""layernorm: a kernel for TPU, in Pallas

    x: bfloat16[M, N], weight: bfloat16[N], bias: bfloat16[N], eps: f32 -> y: bfloat16[M, N]

Tile sizes: BM a multiple of 8; each is cut down to its dimension.

Made by kdsl from layernorm.py, line 3.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _layernorm_kernel(eps_ref, x_ref, weight_ref, bias_ref, y_ref, *, N):
    # line 5
    x = x_ref[...].astype(jnp.float32)
    # line 6
    mean = jnp.sum(x, axis=1, keepdims=True) / N
    # line 7
    d = x - mean
    # line 8
    variance = jnp.sum(d * d, axis=1, keepdims=True) / N
    # line 10
    mul = d * jax.lax.rsqrt(variance + eps_ref[0, 0]) * weight_ref[...].astype(jnp.float32)
    y_ref[...] = (mul + bias_ref[...].astype(jnp.float32)).astype(jnp.bfloat16)


@functools.partial(jax.jit, static_argnames=("BM", "interpret"))
def layernorm(x, weight, bias, eps, *, BM=32, interpret=False):
    """Return y."""
    if (
        x.ndim != 2
        or weight.ndim != 1
        or bias.ndim != 1
        or x.dtype != jnp.bfloat16
        or weight.dtype != jnp.bfloat16
        or bias.dtype != jnp.bfloat16
    ):
        raise ValueError(
            "expected x: bfloat16[M, N], weight: bfloat16[N], bias: bfloat16[N]; "
            f"got {x.dtype}{x.shape}, {weight.dtype}{weight.shape}, {bias.dtype}{bias.shape}"
        )
    M, N = x.shape
    if weight.shape != (N,) or bias.shape != (N,):
        raise ValueError(
            "expected x: bfloat16[M, N], weight: bfloat16[N], bias: bfloat16[N]; "
            f"got {x.dtype}{x.shape}, {weight.dtype}{weight.shape}, {bias.dtype}{bias.shape}"
        )
    if 0 in (M, N):
        return jnp.zeros((M, N), jnp.bfloat16)
    # Tiles no larger than what they run along: Mosaic takes a whole dimension, of any size.
    BM = min(BM, M)
    if BM < 1 or (BM % 8 and BM < M):
        raise ValueError(f"tile sizes are multiples (BM of 8) or a whole dimension; got BM = {BM}")
    return pl.pallas_call(
        functools.partial(_layernorm_kernel, N=N),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.bfloat16),
        grid=(pl.cdiv(M, BM),),
        in_specs=[
            pl.BlockSpec(memory_space=pltpu.SMEM),
            pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
            pl.BlockSpec((1, N), lambda m_block: (0, 0)),
            pl.BlockSpec((1, N), lambda m_block: (0, 0)),
        ],
        out_specs=pl.BlockSpec((BM, N), lambda m_block: (m_block, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
        name="layernorm",
    )(jnp.full((1, 1), eps, jnp.float32), x, weight.reshape(1, N), bias.reshape(1, N))
