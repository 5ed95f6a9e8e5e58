"""Kernels around matrix products."""

import triton
import triton.language as tl


@triton.jit
def matmul(
    a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Programs in groups of rows, so that neighbours share tiles of b; pointers advance in the loop."""
    program = tl.program_id(0)
    blocks_n = tl.cdiv(N, BN)
    in_group = GROUP * blocks_n
    first = program // in_group * GROUP
    rows = min(tl.cdiv(M, BM) - first, GROUP)
    block_m = first + program % in_group % rows
    block_n = program % in_group // rows
    m = (block_m * BM + tl.arange(0, BM)) % M
    n = (block_n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    a_tile = a + m[:, None] * stride_am + k[None, :] * stride_ak
    b_tile = b + k[:, None] * stride_bk + n[None, :] * stride_bn
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        left = tl.load(a_tile, mask=k[None, :] < K - step * BK, other=0.0)
        right = tl.load(b_tile, mask=k[:, None] < K - step * BK, other=0.0)
        accumulator = tl.dot(left, right, accumulator)
        a_tile += BK * stride_ak
        b_tile += BK * stride_bk
    m = block_m * BM + tl.arange(0, BM)
    n = block_n * BN + tl.arange(0, BN)
    mask = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + stride_cm * m[:, None] + stride_cn * n[None, :], accumulator.to(tl.float16), mask=mask)


@triton.jit
def online_softmax(acc, row_sum, row_max, scores, values):
    new_max = tl.maximum(row_max, tl.max(scores, 1))
    weights = tl.exp2(scores - new_max[:, None])
    alpha = tl.exp2(row_max - new_max)
    row_sum = row_sum * alpha + tl.sum(weights, 1)
    acc = tl.dot(weights.to(values.dtype), values, acc * alpha[:, None])
    return acc, row_sum, new_max


@triton.jit
def flash_attention(q, k, v, out, scale, length, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Causal: the loop ends with the diagonal block."""
    block = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64) * length * D
    rows = block * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    queries = tl.load(q + head + rows[:, None] * D + d[None, :], mask=rows[:, None] < length, other=0.0)
    row_max = tl.full([BM], float("-inf"), tl.float32)
    row_sum = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for start in tl.range(0, (block + 1) * BM, BN, num_stages=3):
        start = tl.multiple_of(start, BN)
        columns = start + tl.arange(0, BN)
        inside = columns < length
        keys = tl.load(k + head + columns[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(queries, keys) * (scale * 1.44269504)
        scores = tl.where((columns[None, :] <= rows[:, None]) & inside[None, :], scores, float("-inf"))
        values = tl.load(v + head + columns[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        acc, row_sum, row_max = online_softmax(acc, row_sum, row_max, scores, values)
    acc = acc / row_sum[:, None]
    tl.store(out + head + rows[:, None] * D + d[None, :], acc.to(out.dtype.element_ty), mask=rows[:, None] < length)


@triton.jit
def conv1d(x, w, y, channels, length, W: tl.constexpr, BL: tl.constexpr):
    """Depthwise, with a halo of W - 1 elements: static_range unrolls."""
    channel = tl.program_id(1)
    position = tl.program_id(0) * BL + tl.arange(0, BL)
    acc = tl.zeros([BL], tl.float32)
    for tap in tl.static_range(W):
        source = position + tap - (W - 1)
        value = tl.load(x + channel * length + source, mask=(source >= 0) & (source < length), other=0.0)
        acc += value * tl.load(w + channel * W + tap)
    tl.store(y + channel * length + position, acc, mask=position < length)


@triton.jit
def products(a, b, whole_a, whole_b, f8_a, f8_b, c, d, e, B: tl.constexpr):
    i = tl.arange(0, B)
    index = i[:, None] * B + i[None, :]
    left = tl.load(a + index)
    c_tile = tl.dot(left, tl.trans(tl.load(b + index)), input_precision="ieee")
    c_tile = tl.dot(left, left, c_tile, input_precision="tf32x3")
    tl.store(c + index, c_tile)
    tl.store(d + index, tl.dot(tl.load(whole_a + index), tl.load(whole_b + index)))
    batched = tl.reshape(left, (2, B // 2, B))
    gram = tl.dot(batched, tl.permute(batched, (0, 2, 1)))
    tl.store(d, tl.sum(gram).to(tl.int32))
    tl.store(e + index, tl.dot(tl.load(f8_a + index), tl.load(f8_b + index), out_dtype=tl.float32))


@triton.jit
def microscaled(a, a_scale, b, b_scale, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    left = tl.load(a + m[:, None] * K + tl.arange(0, K)[None, :])
    right = tl.load(b + tl.arange(0, K // 2)[:, None] * N + n[None, :])
    scales = tl.arange(0, K // 32)[None, :]
    left_scale = tl.load(a_scale + m[:, None] * (K // 32) + scales)
    right_scale = tl.load(b_scale + n[:, None] * (K // 32) + scales)
    product = tl.dot_scaled(left, left_scale, "e5m2", right, right_scale, "e2m1")
    tl.store(c + m[:, None] * N + n[None, :], product)


EXAMPLES = {
    "matmul": (
        {"a": "*fp16", "b": "*fp16", "c": "*fp16"}
        | {"M": "i32", "N": "i32", "K": "i32", "stride_am": "i32", "stride_ak": "i32:1"}
        | {"stride_bk": "i32:16", "stride_bn": "i32:1", "stride_cm": "i32", "stride_cn": "i32:1"},
        {"BM": 64, "BN": 32, "BK": 32, "GROUP": 8},
    ),
    "flash_attention": (
        {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp16", "scale": "fp32", "length": "i32"},
        {"BM": 64, "BN": 32, "D": 64},
    ),
    "conv1d": ({"x": "*fp32", "w": "*fp32", "y": "*fp32", "channels": "i32", "length": "i32"}, {"W": 4, "BL": 64}),
    "products": (
        {"a": "*fp32", "b": "*fp32", "whole_a": "*i8", "whole_b": "*i8", "f8_a": "*fp8e4nv", "f8_b": "*fp8e4nv"}
        | {"c": "*fp32", "d": "*i32", "e": "*fp32"},
        {"B": 32},
    ),
    "microscaled": (
        {"a": "*fp8e5", "a_scale": "*u8", "b": "*u8", "b_scale": "*u8", "c": "*fp32"},
        {"M": 128, "N": 32, "K": 64},
    ),
}
