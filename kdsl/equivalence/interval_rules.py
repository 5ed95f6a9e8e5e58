"""Between which ends an op's integer result lies, given those of its operands. None: anything of its dtype."""

from __future__ import annotations

from collections.abc import Callable

from kdsl.analysis.ranges import Interval
from kdsl.ir.dtypes import DType


def ends_of(dtype: DType) -> Interval:
    """The least and the greatest number of an integer dtype; of i64 for floats, of which nothing is known."""
    if dtype.kind == "bool":
        return 0, 1
    if dtype.is_float:
        return -(1 << 63), (1 << 63) - 1
    return (0, (1 << dtype.bits) - 1) if dtype.kind == "uint" else (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1)


def union(*ends: Interval) -> Interval:
    return min(low for low, _ in ends), max(high for _, high in ends)


def _corners(function: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval]:
    def ends(left: Interval, right: Interval) -> Interval:
        corners = [function(a, b) for a in left for b in right]
        return min(corners), max(corners)

    return ends


multiply = _corners(lambda a, b: a * b)


def _floordiv(left: Interval, right: Interval) -> Interval | None:
    return _corners(lambda a, b: a // b)(left, right) if right[0] > 0 else None


def _truncdiv(left: Interval, right: Interval) -> Interval | None:
    return _corners(lambda a, b: a // b if a >= 0 else -(-a // b))(left, right) if right[0] > 0 else None


def _floormod(left: Interval, right: Interval) -> Interval | None:
    if right[0] <= 0:
        return None
    return left if left[0] >= 0 and left[1] < right[0] else (0, right[1] - 1)


def _shift(function: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval | None]:
    return lambda left, right: _corners(function)(left, right) if right[0] >= 0 and right[1] < 64 else None


def _and(left: Interval, right: Interval) -> Interval | None:
    limits = [high for low, high in (left, right) if low >= 0]
    return (0, min(limits)) if limits else None


def _or(left: Interval, right: Interval) -> Interval | None:
    if left[0] < 0 or right[0] < 0:
        return None
    return 0, (1 << max(left[1], right[1]).bit_length()) - 1


def _least(*ends: Interval) -> Interval:
    return min(low for low, _ in ends), min(high for _, high in ends)


def _greatest(*ends: Interval) -> Interval:
    return max(low for low, _ in ends), max(high for _, high in ends)


def _abs(ends: Interval) -> Interval:
    return (0 if ends[0] <= 0 <= ends[1] else min(map(abs, ends))), max(map(abs, ends))


RULES: dict[str, Callable[..., Interval | None]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "mul": multiply,
    "floordiv": _floordiv,
    "truncdiv": _truncdiv,
    "floormod": _floormod,
    "maximum": _greatest,
    "minimum": _least,
    "maxnum": _greatest,
    "minnum": _least,
    "clamp": lambda x, low, high: _least(_greatest(x, low), high),
    "neg": lambda x: (-x[1], -x[0]),
    "abs": _abs,
    "not": lambda x: (-1 - x[1], -1 - x[0]),
    "and": _and,
    "or": _or,
    "xor": _or,
    "shl": _shift(lambda a, b: a << b),
    "shr": _shift(lambda a, b: a >> b),
    **dict.fromkeys(("broadcast", "reshape", "flip", "concat", "join", "split", "relabel"), union),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "is_nan", "is_inf", "is_finite"), lambda *_: (0, 1)),
}

NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_FAR = 1 << 70


def compared(name: str, other: Interval) -> Interval:
    """Between which ends a number lies that compares so with one between others."""
    low, high = other
    return {
        "lt": (-_FAR, high - 1),
        "le": (-_FAR, high),
        "gt": (low + 1, _FAR),
        "ge": (low, _FAR),
        "eq": (low, high),
        "ne": (-_FAR, _FAR),
    }[name]
