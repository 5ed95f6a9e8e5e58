"""Row-wise kernels: elementwise, reductions and scans over one axis."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, total, mask=mask)


@triton.jit
def softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    scores = tl.load(x + row * stride + column, mask=column < columns, other=-float("inf"))
    numerator = tl.exp(scores - tl.max(scores, axis=0))
    tl.store(out + row * stride + column, numerator / tl.sum(numerator, axis=0), mask=column < columns)


@triton.jit
def layernorm(x, weight, bias, out, mean_out, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    mean = 0.0
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        sums += tl.load(x + row * stride + column, mask=column < columns, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + column, mask=column < columns, other=0.0).to(tl.float32)
        centred = tl.where(column < columns, value - mean, 0.0)
        squares += centred * centred
    scale = tl.math.rsqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_out + row, mean)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = column < columns
        value = tl.load(x + row * stride + column, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        scaled = (value - mean) * scale * tl.load(weight + column, mask=mask) + tl.load(bias + column, mask=mask)
        tl.store(out + row * stride + column, scaled, mask=mask)


@triton.jit
def argmax(x, best, where, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
    largest, index = tl.max(values, axis=0, return_indices=True)
    tl.store(best + row, largest)
    tl.store(where + row, index)


@triton.jit
def welford_combine(mean_1, m2_1, weight_1, mean_2, m2_2, weight_2):
    delta = mean_2 - mean_1
    weight = weight_1 + weight_2
    share = tl.where(weight == 0.0, 0.0, weight_2 / weight)
    return mean_1 + delta * share, m2_1 + m2_2 + delta * delta * weight_1 * share, weight


@triton.jit
def welford(x, mean_out, variance_out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    values = tl.load(x + row * columns + column, mask=mask, other=0.0)
    mean, m2, weight = tl.reduce((values, tl.zeros_like(values), mask.to(tl.float32)), 0, welford_combine)
    tl.store(mean_out + row, mean)
    tl.store(variance_out + row, m2 / weight)


@triton.jit
def recurrence_combine(gate_1, value_1, gate_2, value_2):
    return gate_1 * gate_2, value_1 * gate_2 + value_2


@triton.jit
def recurrence(gates, values, out, sums, T: tl.constexpr, D: tl.constexpr):
    index = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    gate = tl.load(gates + index)
    value = tl.load(values + index)
    _, state = tl.associative_scan((gate, value), 0, recurrence_combine)
    tl.store(out + index, state)
    tl.store(sums + index, tl.cumsum(value, axis=1, reverse=True))


@triton.jit
def casts(x, i, halves, bfloats, e4m3, e5m2, unsigned, flags, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    whole = tl.load(i + offsets)
    tl.store(halves + offsets, value.to(tl.float16))
    tl.store(bfloats + offsets, value.to(tl.bfloat16))
    tl.store(e4m3 + offsets, value.to(tl.float8e4nv))
    tl.store(e5m2 + offsets, value.to(tl.float16).to(tl.float8e5))
    tl.store(unsigned + offsets, value.to(tl.uint8) + value.to(tl.int32, bitcast=True).to(tl.uint8))
    tl.store(flags + offsets, (whole > 0) & (value != value) | (whole.to(tl.uint32) < 7))


@triton.jit
def floats(x, y, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a = tl.load(x + offsets)
    b = tl.load(y + offsets)
    c = tl.exp(a) + tl.exp2(b) + tl.log(a) + tl.log2(b) + tl.sin(a) + tl.cos(b)
    c += tl.sqrt(a) + tl.rsqrt(b) + tl.floor(a) + tl.ceil(b) + tl.erf(a) + tl.abs(b) + tl.fma(a, b, a)
    c += tl.maximum(a, b) + tl.minimum(a, b) + tl.clamp(a, -1.0, 1.0) + tl.sigmoid(b) + (-a) % b
    c += tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL) + tl.div_rn(a, b) + tl.sqrt_rn(a)
    c += tl.where(a == float("inf"), 1e-20, float("nan")) * 3.0e38
    tl.store(out + offsets, c)


@triton.jit
def integers(x, y, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a = tl.load(x + offsets)
    b = tl.load(y + offsets)
    c = a // b + a % b + (a & b) + (a | b) + (a ^ b) + (a << 2) + (a >> 3) + (~a) + tl.abs(b)
    u, v = a.to(tl.uint32), b.to(tl.uint32)
    c += (u // v + u % v + (u >> 5) + tl.umulhi(u, v)).to(tl.int32)
    c += tl.minimum(a, b) + tl.maximum(a, b) + tl.minimum(u, v).to(tl.int32) + tl.maximum(u, v).to(tl.int32)
    c += u.to(tl.float32).to(tl.uint32).to(tl.int32) + a.to(tl.float32).to(tl.int32) + tl.xor_sum(a, axis=0)
    wide = a.to(tl.int64) * 4294967296 + u.to(tl.uint64).to(tl.int64)
    tl.store(out + offsets, c + (wide >> 32).to(tl.int32) + (a.to(tl.int16) * 2).to(tl.int8))


EXAMPLES = {
    "add": ({"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 128}),
    "softmax": ({"x": "*fp32", "out": "*fp32", "stride": "i32", "columns": "i32"}, {"BLOCK": 256}),
    "layernorm": (
        {"x": "*bf16", "weight": "*fp32", "bias": "*fp32", "out": "*bf16", "mean_out": "*fp32", "stride": "i64"}
        | {"columns": "i32", "eps": "fp32"},
        {"BLOCK": 128},
    ),
    "argmax": ({"x": "*fp32", "best": "*fp32", "where": "*i32", "columns": "i32"}, {"BLOCK": 64}),
    "welford": ({"x": "*fp32", "mean_out": "*fp32", "variance_out": "*fp32", "columns": "i32"}, {"BLOCK": 64}),
    "recurrence": ({"gates": "*fp32", "values": "*fp32", "out": "*fp32", "sums": "*fp32"}, {"T": 32, "D": 16}),
    "casts": (
        {"x": "*fp32", "i": "*i32", "halves": "*fp16", "bfloats": "*bf16", "e4m3": "*fp8e4nv", "e5m2": "*fp8e5"}
        | {"unsigned": "*u8", "flags": "*i1"},
        {"BLOCK": 64},
    ),
    "floats": ({"x": "*fp32", "y": "*fp32", "out": "*fp32"}, {"BLOCK": 64}),
    "integers": ({"x": "*i32", "y": "*i32", "out": "*i32"}, {"BLOCK": 64}),
}
