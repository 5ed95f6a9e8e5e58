"""Running one op on vectors, and arithmetic to expect of it that shares nothing with the op table's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from kdsl.interpreter import run
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import BOOL, DTYPES, F64, DType
from kdsl.ir.expr import symbol, wrap
from kdsl.ir.kernel import Buffer, Kernel, Region, whole
from kdsl.ir.verify import verify

Array = np.ndarray[Any, Any]


def evaluate(name: str, operands: Sequence[Array], result: DType | None = None, **attributes: Any) -> Array:
    """One op on vectors, run as a kernel."""
    dtypes = [next(dtype for dtype in DTYPES.values() if dtype.numpy == array.dtype) for array in operands]
    n, length = symbol("n"), wrap(len(operands[0]))
    buffers = tuple(Buffer(f"x{place}", dtype, (length,)) for place, dtype in enumerate(dtypes))
    builder = Builder(Kernel("one", buffers, (), (), (), (whole("n", length),), Region()))
    loaded = [builder.emit("load", (), {"buffer": buffer.name, "index": (n,)}) for buffer in buffers]
    value = builder.emit(name, loaded, attributes, dtype=result)
    out = Buffer("y", value.dtype, (length,) if value.axes else (), "out")
    kernel = Kernel("one", (*buffers, out), (), (), (), builder.kernel.axes, Region())
    builder.kernel = kernel
    builder.effect("store", [value], {"buffer": "y", "index": (n,) if value.axes else ()})
    given = {buffer.name: array for buffer, array in zip(buffers, operands, strict=True)}
    return run(verify(builder.finish()), given)["y"]


def bits(array: Array) -> Array:
    """The array's bytes as integers, all NaNs made one: sign and payload of a NaN mean nothing."""
    if array.dtype not in (ml_dtypes.int4, ml_dtypes.uint4) and array.dtype.kind not in "biu":
        array = np.where(array != array, np.asarray(np.nan, array.dtype), array)
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def assert_same(got: Array, expected: Array, *operands: Array) -> None:
    assert got.dtype == expected.dtype
    wrong = np.flatnonzero(bits(got) != bits(expected))
    shown = [(*(operand[place] for operand in operands), got[place], expected[place]) for place in wrong[:5]]
    assert not shown, f"(operands, got, expected): {shown}"


def round_to(value: float | Fraction, dtype: DType) -> Any:
    """A Python float or fraction rounded once, to nearest even, by integer arithmetic on its significand."""
    limits = ml_dtypes.finfo(dtype.numpy)
    if isinstance(value, Fraction):
        sign, exponent = (1 if value > 0 else -1), abs(value.numerator).bit_length() - value.denominator.bit_length()
        exponent -= abs(value) < Fraction(2) ** exponent
        step = max(exponent, int(limits.minexp)) - dtype.mantissa
        significand = round(value / Fraction(2) ** step)
        overflows = abs(significand) * Fraction(2) ** step > Fraction(float(limits.max))
        value = math.inf if overflows else math.ldexp(abs(significand), step)
        return np.asarray(math.copysign(value, sign)).astype(dtype.numpy)[()]
    if dtype != F64 and math.isfinite(value) and value != 0:
        step = max(math.frexp(value)[1] - 1, int(limits.minexp)) - dtype.mantissa
        significand = round(math.ldexp(value, -step))
        overflows = abs(significand) > math.ldexp(float(limits.max), -step)
        value = math.copysign(math.inf if overflows else math.ldexp(abs(significand), step), value)
    return np.asarray(value).astype(dtype.numpy)[()]


def wrap_to(value: int, dtype: DType) -> int:
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "int" and value >> (dtype.bits - 1) else value


def specials(dtype: DType) -> Array:
    if dtype == BOOL:
        return np.array([False, True])
    if dtype.is_integer:
        limits = ml_dtypes.iinfo(dtype.numpy)
        numbers = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 100]
        numbers += [] if dtype.kind == "uint" else [-1, -2, -3, -8]
        return np.array([number for number in numbers if limits.min <= number <= limits.max], dtype.numpy)
    limits = ml_dtypes.finfo(dtype.numpy)
    numbers = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 10.0, 88.0, float(limits.max), float(limits.tiny), math.inf]
    numbers += [float(limits.smallest_subnormal), float(limits.tiny) / 2, float(limits.eps), 1 + float(limits.eps)]
    return np.array([*numbers, *(-number for number in numbers), math.nan]).astype(dtype.numpy)


def lanes(operands: Sequence[Array]) -> list[tuple[Any, ...]]:
    """The operands lane by lane as Python numbers."""
    wide = [array if array.dtype.kind in "biu" else array.astype(_wide(array.dtype)) for array in operands]
    return list(zip(*(array.tolist() for array in wide), strict=True))


def _wide(dtype: Any) -> Any:
    return np.int8 if dtype in (ml_dtypes.int4, ml_dtypes.uint4) else np.float64


# -- what one lane gives ----------------------------------------------------------------------------------------------


def _extreme(pick: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: math.nan if x != x or y != y else pick(x, y)


def _divide(x: float, y: float) -> float:
    if y != 0:
        return x / y
    return math.nan if x != x or x == 0 else math.copysign(math.inf, x) * math.copysign(1, y)


def _product(x: float, y: float) -> float:
    return x * y


def _guarded(function: Callable[[float], float], outside: Callable[[float], float]) -> Callable[[float], float]:
    """A math function with the IEEE value where Python raises."""

    def compute(x: float) -> float:
        if x != x:
            return math.nan
        try:
            return function(x)
        except (ValueError, OverflowError):
            return outside(x)

    return compute


def _nan(x: float) -> float:
    return math.nan


def _log_outside(x: float) -> float:
    return -math.inf if x == 0 else math.nan


def _number(pick: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: y if x != x else x if y != y else pick(x, y)


def _fused(x: float, y: float, z: float) -> float | Fraction:
    if not all(map(math.isfinite, (x, y, z))):
        return x * y + z
    return Fraction(x) * Fraction(y) + Fraction(z) or x * y + z


def _clamped(x: Any, low: Any, high: Any) -> Any:
    return math.nan if x != x or low != low or high != high else min(max(x, low), high)


def _remainder(x: float, y: float) -> float:
    return math.nan if x != x or y != y or math.isinf(x) or y == 0 else math.fmod(x, y)


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
    except ValueError:
        if x != 0:
            return math.nan
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf


FLOAT_EXPECTED: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": _product,
    "div": _divide,
    "maximum": _extreme(max),
    "minimum": _extreme(min),
    "neg": lambda x: -x,
    "abs": abs,
    "floor": _guarded(lambda x: math.copysign(math.floor(x), x), lambda x: x),
    "ceil": _guarded(lambda x: math.copysign(math.ceil(x), x), lambda x: x),
    "exp": _guarded(math.exp, lambda x: math.inf),
    "exp2": _guarded(lambda x: 2.0**x, lambda x: math.inf),
    "log": _guarded(math.log, _log_outside),
    "log2": _guarded(math.log2, _log_outside),
    "sqrt": _guarded(math.sqrt, _nan),
    "rsqrt": _guarded(lambda x: _divide(1.0, math.sqrt(x)), _nan),
    "sin": _guarded(math.sin, _nan),
    "cos": _guarded(math.cos, _nan),
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x > -700 else 0.0 if x == x else math.nan,
    "maxnum": _number(max),
    "minnum": _number(min),
    "precise_div": _divide,
    "precise_sqrt": _guarded(math.sqrt, _nan),
    "fma": _fused,
    "clamp": _clamped,
    "fmod": _remainder,
    "pow": _power,
    "atan2": math.atan2,
    "copysign": math.copysign,
    "trunc": _guarded(lambda x: math.copysign(math.trunc(x), x), lambda x: x),
    "round": _guarded(lambda x: math.copysign(round(x), x), lambda x: x),
    "log10": _guarded(math.log10, _log_outside),
    "log1p": _guarded(math.log1p, lambda x: -math.inf if x == -1 else math.nan),
    "expm1": _guarded(math.expm1, lambda x: math.inf),
    "cbrt": math.cbrt,
    "tan": _guarded(math.tan, _nan),
    "asin": _guarded(math.asin, _nan),
    "acos": _guarded(math.acos, _nan),
    "atan": math.atan,
    "sinh": _guarded(math.sinh, lambda x: math.copysign(math.inf, x)),
    "cosh": _guarded(math.cosh, lambda x: math.inf),
    "asinh": math.asinh,
    "acosh": _guarded(math.acosh, _nan),
    "atanh": _guarded(math.atanh, lambda x: math.copysign(math.inf, x) if abs(x) == 1 else math.nan),
}


def _shift_left(x: int, y: int, bits: int) -> int:
    return x << y if 0 <= y < bits else 0


def _shift_right(x: int, y: int, bits: int) -> int:
    return x >> y if 0 <= y < bits else (-1 if x < 0 else 0)


def _truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0


INTEGER_EXPECTED: dict[str, Callable[..., int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y if y else 0,
    "floormod": lambda x, y: x - y * (x // y) if y else 0,
    "maximum": max,
    "minimum": min,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "neg": lambda x: -x,
    "abs": abs,
    "not": lambda x: ~x,
    "truncdiv": _truncated,
    "truncmod": lambda x, y: x - y * _truncated(x, y) if y else 0,
    "clamp": _clamped,
}
BOOL_EXPECTED: dict[str, Callable[..., bool]] = {
    "maximum": lambda x, y: x or y,
    "minimum": lambda x, y: x and y,
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "xor": lambda x, y: x != y,
    "not": lambda x: not x,
}
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}
ASKED: dict[str, Callable[[float], bool]] = {"is_nan": math.isnan, "is_inf": math.isinf, "is_finite": math.isfinite}


def expectation(name: str, dtype: DType) -> Callable[..., Any]:
    """What one lane gives, from Python numbers to a Python number (a float not yet rounded)."""
    if name in COMPARED:
        return COMPARED[name]
    if name in ASKED:
        return ASKED[name]
    if name == "mulhi":
        return lambda x, y: (x * y) >> dtype.bits
    if name in ("shl", "shr"):
        shift = _shift_left if name == "shl" else _shift_right
        return lambda x, y: wrap_to(shift(x, y, dtype.bits), dtype)
    if dtype == BOOL:
        return BOOL_EXPECTED[name]
    if dtype.is_integer:
        return lambda *numbers: wrap_to(INTEGER_EXPECTED[name](*numbers), dtype)
    return FLOAT_EXPECTED[name]
