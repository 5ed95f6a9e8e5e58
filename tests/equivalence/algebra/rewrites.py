"""Softmax in one pass over a row, and attention as it is defined: three passes over the keys, one key at a time."""

from __future__ import annotations

from math import inf
from typing import Any

import kdsl
from kdsl import Const, Out, Scalar, Tensor, Tile, f32


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class B(kdsl.Dim): ...


class H(kdsl.Dim): ...


class L(kdsl.Dim): ...


class S(kdsl.Dim): ...


class D(kdsl.Dim): ...


class T(kdsl.DType): ...


@kdsl.kernel
@kdsl.example(M=3, N=37, T=f32)
def online_softmax(x: Tensor[M, N, T], y: Out[M, N, T], *, BM: Tile = 2, BN: Tile = 8) -> None:
    for m in kdsl.grid(M.tiles(BM)):
        row_max, row_sum = kdsl.full((m,), -inf, f32), kdsl.zeros((m,), f32)
        for n in N.tiles(BN):
            part = x[m, n].to(f32)
            new_max = kdsl.maximum(row_max, kdsl.max(part, over=n))
            row_sum = row_sum * kdsl.exp(row_max - new_max) + kdsl.sum(kdsl.exp(part - new_max), over=n)
            row_max = new_max
        for n in N.tiles(BN):
            y[m, n] = kdsl.exp(x[m, n].to(f32) - row_max) / row_sum


@kdsl.inline
def score(query: Any, key: Any, scale: Any, visible: Any, causal: bool) -> Any:
    product = kdsl.sum(query * key, over=D) * scale
    return kdsl.where(visible, product, -inf) if causal else product


@kdsl.kernel
@kdsl.example(B=1, H=2, L=37, S=37, D=3, T=f32, scale=0.5, causal=False)
@kdsl.example(B=1, H=2, L=37, S=37, D=3, T=f32, scale=0.5, causal=True)
def naive_attention(
    q: Tensor[B, H, L, D, T],
    k: Tensor[B, H, S, D, T],
    v: Tensor[B, H, S, D, T],
    out: Out[B, H, L, D, T],
    scale: Scalar[f32],
    *,
    causal: Const[bool] = False,
    BL: Tile = 64,
) -> None:
    for b, h, m in kdsl.grid(B, H, L.tiles(BL)):
        row_max, row_sum = kdsl.full((m,), -inf, f32), kdsl.zeros((m,), f32)
        accumulator = kdsl.zeros((m, D), f32)
        for n in S:
            row_max = kdsl.maximum(row_max, score(q[b, h, m, :], k[b, h, n, :], scale, n <= m.index, causal))
        for n in S:
            weight = kdsl.exp(score(q[b, h, m, :], k[b, h, n, :], scale, n <= m.index, causal) - row_max)
            row_sum += weight
            accumulator += weight * v[b, h, n, :]
        out[b, h, m, :] = accumulator / row_sum
