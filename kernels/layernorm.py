"""Layer normalisation along rows (Ba, Kiros, Hinton 2016, arXiv:1607.06450)."""

from __future__ import annotations

import kdsl
from kdsl import Out, Scalar, Tensor, Tile, f32


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class T(kdsl.DType): ...


@kdsl.kernel
@kdsl.example(M=257, N=1023, T=kdsl.f32, epsilon=1e-5)
@kdsl.example(M=64, N=512, T=kdsl.bf16, epsilon=1e-5)
def layernorm(
    x: Tensor[M, N, T],
    weight: Tensor[N, T],
    bias: Tensor[N, T],
    y: Out[M, N, T],
    epsilon: Scalar[f32],
    *,
    BM: Tile = 8,
) -> None:
    """y[m, n] = (x[m, n] - mean) / sqrt(variance + epsilon) * weight[n] + bias[n], mean and variance over n, in f32."""
    for m in kdsl.grid(M.tiles(BM)):
        row = x[m, :].to(f32)
        mean = kdsl.sum(row, over=N) / N
        centred = row - mean
        variance = kdsl.sum(centred * centred, over=N) / N
        normalised = centred * kdsl.rsqrt(variance + epsilon)
        y[m, :] = normalised * weight[:].to(f32) + bias[:].to(f32)
