"""@triton.jit functions on whole tiles that emitted modules contain when they use them, by name."""

from __future__ import annotations

TILE_HELPERS: dict[str, str] = {
    "bitwise_xor": """
@triton.jit
def bitwise_xor(a, b):
    return a ^ b
""",
    "float_key": '''
@triton.jit
def float_key(x):
    """Integers in the order of the floats: -0.0 equals 0.0, NaN is the largest."""
    bits = x.to(tl.float32).to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return tl.where(x == x, tl.where(x == 0.0, 0, key), 0x7FFFFFFF)
''',
    "sorted_lanes": '''
@triton.jit
def sorted_lanes(keys, lanes, DESCENDING: tl.constexpr):
    """Lane numbers in the order of 32-bit keys along the last axis, the lower lane first among equals."""
    wide = keys.to(tl.int64)
    if DESCENDING:
        wide = -1 - wide
    return (tl.sort((wide << 32) | lanes.to(tl.int64)) & 0xFFFFFFFF).to(tl.int32)
''',
    "double_key": '''
@triton.jit
def double_key(x):
    """Integers in the order of the f64: -0.0 equals 0.0, NaN is the largest."""
    bits = x.to(tl.int64, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFFFFFFFFFF, bits)
    return tl.where(x == x, tl.where(x == 0.0, 0, key), 0x7FFFFFFFFFFFFFFF)
''',
    "sorted_lanes_64": '''
@triton.jit
def sorted_lanes_64(keys, lanes, DESCENDING: tl.constexpr):
    """As sorted_lanes, by 64-bit keys: by their lower halves, then, which keeps that order, by their upper ones."""
    wide = keys
    if DESCENDING:
        wide = -1 - wide
    by_low = sorted_lanes((wide & 0xFFFFFFFF) - 2147483648, lanes, False)
    by_high = sorted_lanes(tl.gather(wide >> 32, by_low, len(keys.shape) - 1), lanes, False)
    return tl.gather(by_low, by_high, len(keys.shape) - 1)
''',
    "top_lanes": '''
@triton.jit
def top_lanes(keys, lanes, COUNT: tl.constexpr):
    """Lane numbers of the COUNT largest 32-bit keys along the last axis, the lower lane first among equals."""
    wide = -1 - keys.to(tl.int64)
    return (tl.topk((wide << 32) | lanes.to(tl.int64), COUNT, descending=False) & 0xFFFFFFFF).to(tl.int32)
''',
    "philox": '''
@triton.jit
def philox(c0, c1, c2, c3, k0, k1, ROUNDS: tl.constexpr):
    """Philox4x32: four counter words and two key words, u32, to four random words."""
    for _ in tl.static_range(ROUNDS):
        first, second = c0, c2
        c0 = tl.umulhi(second, 0xCD9E8D57) ^ c1 ^ k0
        c1 = second * 0xCD9E8D57
        c2 = tl.umulhi(first, 0xD2511F53) ^ c3 ^ k1
        c3 = first * 0xD2511F53
        k0 += 0x9E3779B9
        k1 += 0xBB67AE85
    return c0, c1, c2, c3
''',
}
