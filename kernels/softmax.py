"""Softmax along rows."""

from __future__ import annotations

import kdsl
from kdsl import Out, Tensor, Tile, f32


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class T(kdsl.DType): ...


@kdsl.kernel
@kdsl.example(M=257, N=1023, T=kdsl.f32)
@kdsl.example(M=64, N=512, T=kdsl.bf16)
def softmax(x: Tensor[M, N, T], y: Out[M, N, T], *, BM: Tile = 8) -> None:
    """y[m, n] = exp(x[m, n] - max_n x[m, n]) / sum_n exp(x[m, n] - max_n x[m, n]), in f32, rounded to T."""
    for m in kdsl.grid(M.tiles(BM)):
        row = x[m, :].to(f32)
        shifted = row - kdsl.max(row, over=N)
        numerator = kdsl.exp(shifted)
        y[m, :] = numerator / kdsl.sum(numerator, over=N)
