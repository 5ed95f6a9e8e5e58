"""Attention, forward (FlashAttention-2: Dao 2023, arXiv:2307.08691, algorithm 1)."""

from __future__ import annotations

from math import inf

import kdsl
from kdsl import Const, Out, Scalar, Tensor, Tile, f32


class B(kdsl.Dim): ...


class H(kdsl.Dim): ...


class L(kdsl.Dim): ...


class S(kdsl.Dim): ...


class D(kdsl.Dim): ...


class T(kdsl.DType): ...


@kdsl.kernel
@kdsl.example(B=1, H=2, L=200, S=200, D=64, T=kdsl.bf16, scale=0.125, causal=True)
@kdsl.example(B=2, H=1, L=33, S=77, D=32, T=kdsl.f32, scale=0.17677669, causal=False)
def attention(
    q: Tensor[B, H, L, D, T],
    k: Tensor[B, H, S, D, T],
    v: Tensor[B, H, S, D, T],
    out: Out[B, H, L, D, T],
    scale: Scalar[f32],
    *,
    causal: Const[bool] = True,
    BL: Tile = 64,
    BS: Tile = 64,
) -> None:
    """out = softmax(q @ k^T * scale, over S) @ v for each batch and head; causal: key n counts for query m if n <= m.

    The softmax is computed in one pass over the keys, rescaling what was summed so far whenever the maximum grows.
    """
    for b, h, m in kdsl.grid(B, H, L.tiles(BL)):
        row_max = kdsl.full((m,), -inf, f32)
        row_sum = kdsl.zeros((m,), f32)
        accumulator = kdsl.zeros((m, D), f32)
        query = q[b, h, m, :]
        for n in S.tiles(BS, stop=m.stop if causal else None):
            scores = kdsl.dot(query, k[b, h, n, :], over=D) * scale
            if causal:
                scores = kdsl.where(n.index <= m.index, scores, -inf)
            new_max = kdsl.maximum(row_max, kdsl.max(scores, over=n))
            weights = kdsl.exp(scores - new_max)
            rescale = kdsl.exp(row_max - new_max)
            row_sum = row_sum * rescale + kdsl.sum(weights, over=n)
            row_max = new_max
            accumulator = accumulator * rescale + kdsl.dot(weights.to(T), v[b, h, n, :], over=n)
        out[b, h, m, :] = accumulator / row_sum
