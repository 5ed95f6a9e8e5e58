"""Kernels that the tests of the judge share: the ready-made ones at small sizes, and some that show one thing."""

from __future__ import annotations

from typing import Any

import kdsl
from kdsl import Out, Scalar, Tensor, Tile, f32
from kdsl.kernels.attention import attention
from kdsl.kernels.layernorm import layernorm
from kdsl.kernels.matmul import matmul
from kdsl.kernels.softmax import softmax
from kdsl.kernels.vector_add import vector_add
from kdsl.lang.kernel import Example, Kernel


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class T(kdsl.DType): ...


def with_examples(kernel: Kernel, *examples: dict[str, Any]) -> Kernel:
    """The kernel with other examples than its author's."""
    changed = Kernel(kernel.function, kernel.refuses)
    changed.examples = tuple(map(Example, examples))
    return changed


def each_dtype(kernel: Kernel, **values: Any) -> Kernel:
    return with_examples(kernel, *({**values, "T": dtype} for dtype in (kdsl.f32, kdsl.bf16)))


SMALL = {
    "vector_add": each_dtype(vector_add, N=70, BN=32),
    "softmax": each_dtype(softmax, M=9, N=70),
    "layernorm": each_dtype(layernorm, M=9, N=70, epsilon=1e-5),
    "matmul": each_dtype(matmul, M=20, N=33, K=70, BM=16, BN=16, BK=16, activation="gelu"),
    "attention": each_dtype(attention, B=1, H=2, L=37, S=37, D=16, scale=0.25, causal=True, BL=16, BS=16),
}


@kdsl.kernel
@kdsl.example(M=5, N=40, T=kdsl.f32)
def extremes(x: Tensor[M, N, T], low: Out[M, T], high: Out[M, T], *, BM: Tile = 4) -> None:
    """The least and the greatest element of each row."""
    for m in kdsl.grid(M.tiles(BM)):
        row = x[m, :]
        low[m] = kdsl.min(row, over=N)
        high[m] = kdsl.max(row, over=N)


@kdsl.kernel
@kdsl.example(N=100)
def rounding_sign(x: Tensor[N, f32], y: Tensor[N, f32], out: Out[N, f32], *, BN: Tile = 32) -> None:
    """Nothing but the rounding of a product and a quotient decides the result."""
    for n in kdsl.grid(N.tiles(BN)):
        out[n] = kdsl.where(x[n] * y[n] / y[n] > x[n], 1.0, -1.0)


@kdsl.kernel
@kdsl.example(N=100)
def leaky(x: Tensor[N, f32], y: Tensor[N, f32], out: Out[N, f32], *, BN: Tile = 32) -> None:
    """The condition is undecided where the arms meet."""
    for n in kdsl.grid(N.tiles(BN)):
        z = x[n] * y[n] - y[n] * x[n]
        out[n] = kdsl.where(z > 0.0, z, z * 0.5)


@kdsl.kernel
@kdsl.example(M=2, N=40)
def half_written(x: Tensor[N, f32], out: Out[M, N, f32], *, BN: Tile = 32) -> None:
    """Leaves all rows but the first as they were: a fault of its author's."""
    for n in kdsl.grid(N.tiles(BN)):
        out[0, n] = x[n]


@kdsl.kernel
@kdsl.example(M=30, N=40)
def totals(x: Tensor[M, N, f32], total: Out[M, f32], *, BM: Tile = 32) -> None:
    """The sum of the sizes of each row."""
    for m in kdsl.grid(M.tiles(BM)):
        total[m] = kdsl.sum(kdsl.abs(x[m, :]), over=N)


@kdsl.kernel
@kdsl.example(N=40, scale=0.3)
def scaled(x: Tensor[N, f32], out: Out[N, f32], scale: Scalar[f32], *, BN: Tile = 32) -> None:
    """out = x * scale"""
    for n in kdsl.grid(N.tiles(BN)):
        out[n] = x[n] * scale


__all__ = [
    "SMALL",
    "attention",
    "extremes",
    "half_written",
    "leaky",
    "rounding_sign",
    "scaled",
    "totals",
    "with_examples",
]
