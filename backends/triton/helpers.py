"""Small @triton.jit functions that emitted modules contain when they use them, by name."""

from __future__ import annotations

import re

HELPERS: dict[str, str] = {
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


def used_helpers(code: str) -> list[str]:
    """The helpers that code calls or passes on, in the table's order."""
    words = set(re.findall(r"(?<![\w.])\w+", code))
    return [text.strip() for name, text in HELPERS.items() if name in words]
