"""Causal attention, forward, in one pass over the keys (Dao 2023, arXiv:2307.08691): BL queries a program.
BS keys a step; only the keys up to a tile's last query are visited.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q,
    k,
    v,
    out,
    scale,
    L,
    S,
    stride_q,
    stride_k,
    stride_v,
    stride_out,
    BL: tl.constexpr,
    BS: tl.constexpr,
    D: tl.constexpr,
):
    head, block = tl.program_id(0), tl.program_id(1)
    rows, lanes, depth = block * BL + tl.arange(0, BL), tl.arange(0, BS), tl.arange(0, D)
    q_places = rows[:, None] * D + depth[None, :]
    query = tl.load(q + head * stride_q + q_places, mask=(rows < L)[:, None], other=0.0)
    row_max = tl.full((BL,), -float("inf"), tl.float32)
    row_sum = tl.zeros((BL,), tl.float32)
    accumulator = tl.zeros((BL, D), tl.float32)
    for start in range(0, tl.minimum((block + 1) * BL, S), BS):
        columns = start + lanes
        key = tl.load(
            k + head * stride_k + columns[None, :] * D + depth[:, None], mask=(columns < S)[None, :], other=0.0
        )
        scores = tl.dot(query, key, input_precision="ieee") * scale
        scores = tl.where((columns[None, :] <= rows[:, None]) & (columns < S)[None, :], scores, -float("inf"))
        new_max = tl.maximum(row_max, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_max[:, None])
        rescale = tl.exp(row_max - new_max)
        row_sum = row_sum * rescale + tl.sum(weights, axis=1)
        row_max = new_max
        value = tl.load(
            v + head * stride_v + columns[:, None] * D + depth[None, :], mask=(columns < S)[:, None], other=0.0
        )
        accumulator = accumulator * rescale[:, None]
        accumulator = tl.dot(weights.to(v.dtype.element_ty), value, accumulator, input_precision="ieee")
    result = accumulator / row_sum[:, None]
    tl.store(out + head * stride_out + q_places, result, mask=(rows < L)[:, None])


def attention(q, k, v, scale, BL=64, BS=64):
    B, H, L, D = q.shape
    out = torch.empty_like(q)
    strides = [tensor.stride(1) for tensor in (q, k, v, out)]
    attention_kernel[(B * H, triton.cdiv(L, BL))](q, k, v, out, scale, L, k.shape[2], *strides, BL, BS, D)
    return out
