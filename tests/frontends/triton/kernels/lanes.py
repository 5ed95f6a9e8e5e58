"""Kernels that move lanes, touch memory in odd ways, or leave the language."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def atomics(x, counts, total, ticket, lock, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask, other=0.0)
    tl.atomic_add(counts + value.to(tl.int32), 1, mask=mask, sem="relaxed")
    tl.atomic_add(total, tl.sum(value, axis=0))
    tl.atomic_max(counts + offsets, 3, mask=mask)
    tl.atomic_min(total, 0.5)
    tl.atomic_and(counts + offsets, 255)
    tl.atomic_or(counts + offsets, 1)
    tl.atomic_xor(counts + offsets, 1)
    order = tl.atomic_add(ticket, 1, sem="acq_rel", scope="gpu")
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + order, tl.load(out + order) + 1.0)
    tl.atomic_xchg(lock, 0, sem="release")


@triton.jit
def orders(x, sorted_out, top, flipped, BLOCK: tl.constexpr, K: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    tl.store(sorted_out + offsets, tl.sort(value, descending=True))
    tl.store(top + tl.arange(0, K), tl.topk(value, K))
    tl.store(flipped + offsets, tl.flip(value, 0))


@triton.jit
def lanes(x, index, gathered, joined, parts, counts, long, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    position = tl.load(index + offsets)
    tl.store(gathered + offsets, tl.gather(value, position, 0))
    pairs = tl.join(value, -value)
    tl.store(joined + offsets[:, None] * 2 + tl.arange(0, 2)[None, :], pairs)
    even, odd = tl.split(tl.reshape(value, (BLOCK // 2, 2)))
    tl.store(parts + tl.arange(0, BLOCK // 2), even - odd)
    tl.store(counts + tl.arange(0, 16), tl.histogram(position, 16))
    tl.store(long + tl.arange(0, 2 * BLOCK), tl.cat(value, value, can_reorder=True))


@triton.jit
def dropout(x, out, n, seed, p, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, offsets) > p
    value = tl.load(x + offsets, mask=offsets < n)
    tl.store(out + offsets, tl.where(keep, value / (1 - p), 0.0), mask=offsets < n)


@triton.jit
def softplus(x, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    result = tl.inline_asm_elementwise(
        asm="""{
        .reg .pred p;
        setp.gt.f32 p, $1, 20.;
        @p mov.f32 $0, $1;
        @!p mul.f32 $0, $1, 1.4426950408889634;
        }""",
        constraints="=r,r", args=[value], dtype=tl.float32, is_pure=True, pack=1,
    )  # fmt: skip
    tl.store(out + offsets, result)


@triton.jit
def descriptors(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    row = tl.program_id(0) * BM
    for column in range(0, N, BN):
        tile = source.load([row, column])
        target.store([row, column], tile * 2.0)
        target.atomic_add([row, column], tile)
    rows = source.gather(tl.arange(0, 32), 0) if BM == 1 else tl.zeros([32, BN], tl.float32)
    tl.store(x + tl.arange(0, 32)[:, None] * BN + tl.arange(0, BN)[None, :], rows)


@triton.jit
def host_descriptor(source, out, BM: tl.constexpr, BN: tl.constexpr):
    tile = source.load([tl.program_id(0) * BM, 0])
    tl.store(out + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], tile)


@triton.jit
def library(x, y, out, whole, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a = tl.load(x + offsets)
    b = tl.load(y + offsets)
    c = libdevice.tanh(a) + libdevice.pow(a, b) + libdevice.log1p(a) + libdevice.atan2(a, b) + libdevice.rsqrt(b)
    c += libdevice.pow(a, offsets)
    tl.store(whole + offsets, libdevice.llrint(c) + libdevice.isnan(a).to(tl.int64))
    tl.store(out + offsets, c)


@triton.jit
def addresses(table, x, out, BLOCK: tl.constexpr):
    """Pointers loaded from memory, made from integers, and turned into integers."""
    offsets = tl.arange(0, BLOCK)
    row = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    aligned = x.to(tl.int64) % 16 == 0
    tl.store(out + offsets, tl.where(aligned, tl.load(row + offsets), 0.0))


@triton.jit
def blocked(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Block pointers: up to Triton 3.8."""
    source = tl.make_block_ptr(x, (M, N), (N, 1), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
    target = tl.make_block_ptr(out, (M, N), (N, 1), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
    for _ in range(0, N, BN):
        tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, tile * 2.0, boundary_check=(0, 1))
        source = tl.advance(source, (0, BN))
        target = tl.advance(target, (0, BN))


EXAMPLES = {
    "atomics": (
        {
            "x": "*fp32",
            "counts": "*i32",
            "total": "*fp32",
            "ticket": "*i32",
            "lock": "*i32",
            "out": "*fp32",
            "n": "i32",
        },
        {"BLOCK": 64},
    ),
    "orders": ({"x": "*fp32", "sorted_out": "*fp32", "top": "*fp32", "flipped": "*fp32"}, {"BLOCK": 16, "K": 4}),
    "lanes": (
        {"x": "*fp32", "index": "*i32", "gathered": "*fp32", "joined": "*fp32", "parts": "*fp32", "counts": "*i32"}
        | {"long": "*fp32"},
        {"BLOCK": 64},
    ),
    "dropout": ({"x": "*fp32", "out": "*fp32", "n": "i32", "seed": "i32", "p": "fp32"}, {"BLOCK": 64}),
    "softplus": ({"x": "*fp32", "out": "*fp32"}, {"BLOCK": 64}),
    "descriptors": ({"x": "*fp32", "out": "*fp32", "M": "i32", "N": "i32"}, {"BM": 8, "BN": 32}),
    "host_descriptor": ({"source": "tensordesc<fp16[16, 64]>", "out": "*fp16"}, {"BM": 16, "BN": 64}),
    "library": ({"x": "*fp32", "y": "*fp32", "out": "*fp32", "whole": "*i64"}, {"BLOCK": 64}),
    "addresses": ({"table": "*i64", "x": "*fp32", "out": "*fp32"}, {"BLOCK": 64}),
}
BEFORE_39 = {"blocked": ({"x": "*fp32", "out": "*fp32", "M": "i32", "N": "i32"}, {"BM": 8, "BN": 32})}
