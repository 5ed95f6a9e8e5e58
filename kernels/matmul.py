"""Matrix multiplication with bias and activation."""

from __future__ import annotations

from typing import Literal

import kdsl
from kdsl import Const, Out, Tensor, Tile, TileValue, f32


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class K(kdsl.Dim): ...


class T(kdsl.DType): ...


@kdsl.inline
def activate(x: TileValue, activation: str) -> TileValue:
    """relu; gelu with the error function (Hendrycks, Gimpel 2016, arXiv:1606.08415); silu; or x itself."""
    if activation == "relu":
        return kdsl.maximum(x, 0.0)
    if activation == "gelu":
        return 0.5 * x * (1.0 + kdsl.erf(x * 0.7071067811865476))
    if activation == "silu":
        return x * kdsl.sigmoid(x)
    return x


@kdsl.kernel
@kdsl.example(M=256, N=1000, K=512, T=kdsl.bf16)
@kdsl.example(M=33, N=100, K=31, T=kdsl.f32, activation="gelu")
def matmul(
    a: Tensor[M, K, T],
    b: Tensor[K, N, T],
    bias: Tensor[N, T],
    c: Out[M, N, T],
    *,
    activation: Const[Literal["none", "relu", "gelu", "silu"]] = "relu",
    BM: Tile = 64,
    BN: Tile = 64,
    BK: Tile = 32,
) -> None:
    """c = activation(a @ b + bias), accumulated in f32, rounded to T."""
    for m, n in kdsl.grid(M.tiles(BM), N.tiles(BN)):
        accumulator = kdsl.zeros((m, n), f32)
        for k in K.tiles(BK):
            accumulator += kdsl.dot(a[m, k], b[k, n])
        c[m, n] = activate(accumulator + bias[n].to(f32), activation)
