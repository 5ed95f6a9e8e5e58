"""Small @triton.jit functions that emitted modules contain when they use them, by name."""

from __future__ import annotations

import re

from .tile_helpers import TILE_HELPERS

# Arithmetic, in the order of the op table, then combines.
_SCALARS: dict[str, str] = {
    "floor_div": '''
@triton.jit
def floor_div(x, y):
    """x / y of integers, rounded down; 0 where y is 0. (Triton's // rounds toward zero.)"""
    divisor = tl.where((y == 0) | (y == -1), 1, y)
    quotient = x // divisor
    remainder = x - quotient * divisor
    quotient = tl.where((remainder != 0) & ((remainder < 0) != (divisor < 0)), quotient - 1, quotient)
    # The smallest integer divided by -1 has no quotient: it wraps, as negation does.
    return tl.where(y == 0, 0, tl.where(y == -1, -x, quotient))
''',
    "floor_mod": '''
@triton.jit
def floor_mod(x, y):
    """The remainder of integers that has the sign of y; 0 where y is 0. (Triton's % has the sign of x.)"""
    divisor = tl.where((y == 0) | (y == -1), 1, y)
    remainder = x % divisor
    return tl.where((remainder != 0) & ((remainder < 0) != (divisor < 0)), remainder + divisor, remainder)
''',
    "unsigned_div": '''
@triton.jit
def unsigned_div(x, y):
    """x / y of unsigned integers, rounded down; 0 where y is 0."""
    return tl.where(y == 0, 0, x // tl.where(y == 0, 1, y))
''',
    "unsigned_mod": '''
@triton.jit
def unsigned_mod(x, y):
    """The remainder of unsigned integers; 0 where y is 0."""
    return x % tl.where(y == 0, 1, y)
''',
    "shift_left": '''
@triton.jit
def shift_left(x, y, BITS: tl.constexpr):
    """x << y; 0 where y is no bit position."""
    return tl.where((y >= 0) & (y < BITS), x << y, 0)
''',
    "shift_right": '''
@triton.jit
def shift_right(x, y, BITS: tl.constexpr):
    """x >> y, with sign if x is signed; past the width all sign bits."""
    return tl.where((y >= 0) & (y < BITS), x >> y, tl.where(x < 0, -1, 0).to(x.dtype))
''',
    "saturating_cast": '''
@triton.jit
def saturating_cast(x, LOW: tl.constexpr, HIGH: tl.constexpr, DTYPE: tl.constexpr):
    """Truncate floats to integers; NaN gives 0, and what is out of range the nearest integer in it."""
    whole = tl.where((x > LOW) & (x < HIGH), x, 0.0).to(DTYPE)
    return tl.where(x >= HIGH, HIGH, tl.where(x <= LOW, LOW, whole)).to(DTYPE)
''',
    "tanh": '''
@triton.jit
def tanh(x):
    """(1 - t) / (1 + t) for t = exp(-2 |x|), which cannot overflow; a series where that difference would cancel."""
    t = tl.exp(-2.0 * tl.abs(x))
    large = (1.0 - t) / (1.0 + t)
    square = x * x
    # x - x^3/3 + 2x^5/15 - 17x^7/315 + 62x^9/2835: the next term is below 2^-36 of x where |x| < 1/8.
    series = x + x * square * (-1 / 3 + square * (2 / 15 + square * (-17 / 315 + square * (62 / 2835))))
    return tl.where(tl.abs(x) < 0.125, series, tl.where(x < 0, -large, large))
''',
    "tanh_f64": '''
@triton.jit
def tanh_f64(x):
    """(1 - t) / (1 + t) for t = exp(-2 |x|), which cannot overflow."""
    t = tl.exp(-2.0 * tl.abs(x))
    result = (1.0 - t) / (1.0 + t)
    return tl.where(x < 0, -result, result)
''',
    "trunc_div": '''
@triton.jit
def trunc_div(x, y):
    """x / y of integers, rounded to zero; 0 where y is 0. The smallest divided by -1 wraps, as negation does."""
    quotient = x // tl.where((y == 0) | (y == -1), 1, y)
    return tl.where(y == 0, 0, tl.where(y == -1, -x, quotient))
''',
    "trunc_mod": '''
@triton.jit
def trunc_mod(x, y):
    """The remainder of integers that has the sign of x; 0 where y is 0."""
    return x % tl.where((y == 0) | (y == -1), 1, y)
''',
    "narrow_mulhi": '''
@triton.jit
def narrow_mulhi(x, y, BITS: tl.constexpr, WIDE: tl.constexpr):
    """The upper half of the double-width product."""
    return ((x.to(WIDE) * y.to(WIDE)) >> BITS).to(x.dtype)
''',
    "signed_mulhi": '''
@triton.jit
def signed_mulhi(x, y):
    """The upper half of the 128-bit product: from that of unsigned operands, 2^64 more where negative."""
    high = tl.umulhi(x.to(tl.uint64, bitcast=True), y.to(tl.uint64, bitcast=True)).to(tl.int64, bitcast=True)
    return high - tl.where(x < 0, y, 0) - tl.where(y < 0, x, 0)
''',
    "cube_root": '''
@triton.jit
def cube_root(x):
    """2 ** (log2(x) / 3), then two of Newton's steps; small numbers are scaled, as log2 may flush them to zero."""
    size = tl.abs(x)
    is_small = size < 1e-30
    scaled = tl.where(is_small, size * 1152921504606846976.0, size)  # 2^60
    root = tl.exp2(tl.log2(scaled) / 3.0)
    root = root - (root - scaled / (root * root)) / 3.0
    root = root - (root - scaled / (root * root)) / 3.0
    root = tl.where(is_small, root * 9.5367431640625e-07, root)  # 2^-20
    root = tl.where((size > 0.0) & (size < float("inf")), root, size)
    return tl.where(x < 0, -root, root)
''',
    "is_nan": """
@triton.jit
def is_nan(x):
    return x != x
""",
    "is_inf": """
@triton.jit
def is_inf(x):
    return tl.abs(x) == float("inf")
""",
    "is_finite": """
@triton.jit
def is_finite(x):
    return tl.abs(x) < float("inf")
""",
    "round_to": '''
@triton.jit
def round_to(
    x,
    MANTISSA: tl.constexpr,
    SMALLEST: tl.constexpr,
    LARGEST: tl.constexpr,
    FINITE: tl.constexpr,
    INFINITE: tl.constexpr,
    TO_ZERO: tl.constexpr,
):
    """f32 rounded to nearest even, or to zero, to the numbers of a format: SMALLEST is its smallest normal one. FINITE
    and INFINITE stand for finite and infinite numbers past the LARGEST."""
    DROP: tl.constexpr = 23 - MANTISSA
    bits = x.to(tl.int32, bitcast=True)
    size, size_bits = tl.abs(x), bits & 0x7FFFFFFF
    # Below the normal numbers all steps are equal: the sum with 2^23 of them has no finer ones.
    subnormal = (size + SMALLEST * (1 << DROP)) - SMALLEST * (1 << DROP)
    if TO_ZERO:
        normal = ((size_bits >> DROP) << DROP).to(tl.float32, bitcast=True)
        subnormal = tl.where(subnormal > size, subnormal - SMALLEST / (1 << MANTISSA), subnormal)
    else:
        half = (1 << (DROP - 1)) - 1 + ((size_bits >> DROP) & 1)
        normal = (((size_bits + half) >> DROP) << DROP).to(tl.float32, bitcast=True)
    rounded = tl.where(size < SMALLEST, subnormal, normal)
    rounded = tl.where(rounded > LARGEST, tl.where(size < float("inf"), FINITE, INFINITE), rounded)
    signed = (rounded.to(tl.int32, bitcast=True) & 0x7FFFFFFF) | (bits & -2147483648)
    return tl.where(x == x, signed.to(tl.float32, bitcast=True), x)
''',
    "f8e5m2_bits": '''
@triton.jit
def f8e5m2_bits(x):
    """f32 numbers that float8_e5m2 has, as such: it is the upper half of float16. (A conversion would saturate.)"""
    upper = x.to(tl.float16).to(tl.uint16, bitcast=True) >> 8
    return upper.to(tl.uint8).to(tl.float8e5, bitcast=True)
''',
    "multiply": """
@triton.jit
def multiply(a, b):
    return a * b
""",
    "bitwise_and": """
@triton.jit
def bitwise_and(a, b):
    return a & b
""",
    "bitwise_or": """
@triton.jit
def bitwise_or(a, b):
    return a | b
""",
    "maximum": '''
@triton.jit
def maximum(a, b):
    """The larger; NaN if either is NaN, unlike tl.max."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
''',
    "minimum": '''
@triton.jit
def minimum(a, b):
    """The smaller; NaN if either is NaN, unlike tl.min."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
''',
    "argmax": '''
@triton.jit
def argmax(value_a, lane_a, value_b, lane_b):
    """The larger value and its lane: NaN counts as the largest, the lower lane wins a tie."""
    tie = (value_a == value_b) | ((value_a != value_a) & (value_b != value_b))
    larger = (value_a > value_b) | ((value_a != value_a) & (value_b == value_b))
    first = larger | (tie & (lane_a < lane_b))
    return tl.where(first, value_a, value_b), tl.where(first, lane_a, lane_b)
''',
    "argmin": '''
@triton.jit
def argmin(value_a, lane_a, value_b, lane_b):
    """The smaller value and its lane: NaN counts as the smallest, the lower lane wins a tie."""
    tie = (value_a == value_b) | ((value_a != value_a) & (value_b != value_b))
    smaller = (value_a < value_b) | ((value_a != value_a) & (value_b == value_b))
    first = smaller | (tie & (lane_a < lane_b))
    return tl.where(first, value_a, value_b), tl.where(first, lane_a, lane_b)
''',
}

HELPERS: dict[str, str] = _SCALARS | TILE_HELPERS


def used_helpers(code: str) -> list[str]:
    """The helpers that code calls or passes on, and those that they call, in the table's order."""
    used: set[str] = set()
    found = _mentioned(code)
    while found - used:
        used |= found
        found = {name for helper in used for name in _mentioned(HELPERS[helper])}
    return [text.strip() for name, text in HELPERS.items() if name in used]


def _mentioned(code: str) -> set[str]:
    return HELPERS.keys() & set(re.findall(r"(?<![\w.])\w+", code))
