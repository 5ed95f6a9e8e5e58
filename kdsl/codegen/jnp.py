"""The op table in jnp: what the targets that print JAX source share. One entry a row of `kdsl/ir/ops.py`, in its order.

An expression is `Code`: its text, how tightly it binds, and whether it is a bare Python number (which takes the dtype
of what it meets). Few ops need more than an expression: their text calls a helper of HELPERS, by its name, and the
emitted module must define those that it calls (`helpers_in`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kdsl.ir.dtypes import BF16, BOOL, DType
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Op
from kdsl.ir.meaning import identity

# How tightly Python binds, loosest first.
COMPARE, OR, XOR, AND, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(9)


class Code(NamedTuple):
    """An expression as Python source."""

    text: str
    level: int = ATOM
    number: bool = False  # a bare Python number, which has no dtype of its own

    def at(self, level: int) -> str:
        """The text, in parentheses unless it binds at least as tightly as `level`."""
        return self.text if self.level >= level else f"({self.text})"


Printer = Callable[..., Code]

JNP = {
    "bool": "jnp.bool_",
    "f16": "jnp.float16",
    "bf16": "jnp.bfloat16",
    "f32": "jnp.float32",
    "f64": "jnp.float64",
    **{f"i{bits}": f"jnp.int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"jnp.uint{bits}" for bits in (8, 16, 32, 64)},
}
"""jnp's name of each dtype."""

# Defined at the top of a module that uses them. Each states the op table's rule where XLA leaves it open.
HELPERS = {
    "divide": '''\
def divide(x, y):
    """x / y, rounded once: XLA would multiply by the reciprocal of a y that it broadcasts or knows."""
    x, y = jnp.broadcast_arrays(x, jnp.asarray(y, x.dtype))
    return x / jax.lax.optimization_barrier(y)
''',
    "floor_divide": '''\
def floor_divide(x, y):
    """x / y of integers, rounded down; 0 where y is 0."""
    return jnp.where(y == 0, 0, x // jnp.where(y == 0, 1, y))
''',
    "floor_mod": '''\
def floor_mod(x, y):
    """x - y * floor(x / y) of integers; 0 where y is 0."""
    return jnp.where(y == 0, 0, x % jnp.where(y == 0, 1, y))
''',
    "shift_left": '''\
def shift_left(x, y):
    """x << y; 0 where y is no bit position."""
    inside = (y >= 0) & (y < jnp.iinfo(x.dtype).bits)
    return jnp.where(inside, x << jnp.where(inside, y, 0), 0)
''',
    "shift_right": '''\
def shift_right(x, y):
    """x >> y, with sign if x has one; past the width all sign bits."""
    bits = jnp.iinfo(x.dtype).bits
    inside = (y >= 0) & (y < bits)
    # Two shifts clear the whole width; one by the width itself is undefined.
    return jnp.where(inside, x >> jnp.where(inside, y, 0), (x >> (bits - 1)) >> 1)
''',
    "to_integer": '''\
def to_integer(x, dtype):
    """Floats rounded toward zero and saturated; NaN gives 0."""
    limits = jnp.iinfo(dtype)
    high, low = x >= float(limits.max), x <= float(limits.min)
    whole = jnp.where(high | low | (x != x), 0, x).astype(dtype)
    return jnp.where(high, jnp.full_like(whole, limits.max), jnp.where(low, jnp.full_like(whole, limits.min), whole))
''',
    "to_bfloat16": '''\
def to_bfloat16(x):
    """32-bit integers rounded once. From 2**24 on, float32 holds them with their low byte reduced to "not zero"."""
    large = (x >= 2**24) | (x < -(2**24)) if x.dtype == jnp.int32 else x >= 2**24
    sticky = jnp.where(large & (x & 255 != 0), x - (x & 255) + 128, x)
    return sticky.astype(jnp.float32).astype(jnp.bfloat16)
''',
    "first_extreme": '''\
def first_extreme(x, extreme, axis):
    """The lowest lane along an axis that holds the extreme, or NaN; the axis is kept with size 1."""
    lane = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return jnp.min(jnp.where((x == extreme) | (x != x), lane, x.shape[axis]), axis=axis, keepdims=True)
''',
    "place_of": '''\
def place_of(extreme, x, axis):
    """extreme (jnp.argmax or jnp.argmin) of x along an axis; 0 where the axis has no lane."""
    if not x.shape[axis]:
        return jnp.sum(x, axis=axis, dtype=jnp.int32)
    return extreme(x, axis=axis).astype(jnp.int32)
''',
}
"""Source of each helper function."""


def helpers_in(text: str) -> tuple[str, ...]:
    """Names of the helpers that a text calls, in the order of HELPERS."""
    return tuple(name for name in HELPERS if re.search(rf"(?<![\w.]){name}\(", text))


# -- numbers -------------------------------------------------------------------------------------------------------


def constant(value: Any, dtype: DType) -> Code:
    """A number of a dtype, as the shortest text that gives exactly the dtype's nearest value."""
    if dtype == BOOL:
        return Code(str(bool(value)), number=True)
    with np.errstate(over="ignore"):  # what overflows is infinite, by rule
        exact = np.asarray(value).astype(dtype.numpy)
    if dtype.is_integer:
        whole = int(exact)
        # A bare number beyond 32 bits is an error where 64-bit types are off.
        if not -(2**31) <= whole < 2**31:
            return Code(f"{JNP[dtype.name]}({whole})")
        return Code(str(whole), UNARY if whole < 0 else ATOM, number=True)
    real = float(exact)
    if math.isnan(real):
        return Code("jnp.nan", number=True)
    if math.isinf(real):
        return Code("jnp.inf" if real > 0 else "-jnp.inf", ATOM if real > 0 else UNARY, number=True)
    text = repr(real)
    if dtype.name in ("f16", "f32"):  # NumPy prints the digits that tell the value from its neighbours
        text = str(exact)
        text = text if "." in text or "e" in text else f"{text}.0"
    return Code(text, UNARY if text.startswith("-") else ATOM, number=True)


def typed(code: Code, dtype: DType) -> Code:
    """The expression with the dtype it stands for, where it is a bare number."""
    return Code(f"{JNP[dtype.name]}({code.text})") if code.number else code


def integer(form: Expr, text: str, number: bool = False) -> Code:
    """An integer form as `print_expr` wrote it."""
    if len(form.terms) > 1 or text.startswith("-"):
        return Code(text, SUM, number)
    factors = sum(len(monomial) + (coefficient != 1) for monomial, coefficient in form.terms)
    return Code(text, PRODUCT if factors > 1 else ATOM, number)


# -- pointwise -----------------------------------------------------------------------------------------------------


def _infix(sign: str, level: int) -> Printer:
    """A left-associative operator. Comparisons chain in Python, so both of their operands are made to bind tighter."""
    left = level + 1 if level == COMPARE else level

    def write(x: Code, y: Code) -> Code:
        return Code(f"{x.at(left)} {sign} {y.at(level + 1)}", level)

    return write


def _call(name: str) -> Printer:
    return lambda *operands: Code(f"{name}({', '.join(code.text for code in operands)})")


def _prefix(sign: str) -> Printer:
    return lambda x: Code(f"{sign}{x.at(UNARY)}", UNARY)


def _literal(code: Code) -> int | None:
    """The integer that is written there; a size is a number too, but not known."""
    return int(code.text) if code.number and code.text.removeprefix("-").isdecimal() else None


def _divide(sign: str, helper: str) -> Printer:
    """Division by a number other than 0 and -1 needs no helper."""

    def write(x: Code, y: Code) -> Code:
        plain = _literal(y) not in (None, 0, -1)
        return _infix(sign, PRODUCT)(x, y) if plain else _call(helper)(x, y)

    return write


def _shift(sign: str, helper: str) -> Printer:
    """A shift by a number that is a bit position of every integer needs no helper."""

    def write(x: Code, y: Code) -> Code:
        return _infix(sign, SHIFT)(x, y) if _literal(y) in range(8) else _call(helper)(x, y)

    return write


EXPRESSIONS: dict[str, Printer] = {
    "add": _infix("+", SUM),
    "sub": _infix("-", SUM),
    "mul": _infix("*", PRODUCT),
    "div": _infix("/", PRODUCT),
    "floordiv": _divide("//", "floor_divide"),
    "floormod": _divide("%", "floor_mod"),
    "maximum": _call("jnp.maximum"),
    "minimum": _call("jnp.minimum"),
    "and": _infix("&", AND),
    "or": _infix("|", OR),
    "xor": _infix("^", XOR),
    "shl": _shift("<<", "shift_left"),
    "shr": _shift(">>", "shift_right"),
    "eq": _infix("==", COMPARE),
    "ne": _infix("!=", COMPARE),
    "lt": _infix("<", COMPARE),
    "le": _infix("<=", COMPARE),
    "gt": _infix(">", COMPARE),
    "ge": _infix(">=", COMPARE),
    "neg": _prefix("-"),
    "abs": _call("jnp.abs"),
    "not": _prefix("~"),
    "floor": _call("jnp.floor"),
    "ceil": _call("jnp.ceil"),
    "exp": _call("jnp.exp"),
    "exp2": _call("jnp.exp2"),
    "log": _call("jnp.log"),
    "log2": _call("jnp.log2"),
    "sqrt": _call("jnp.sqrt"),
    "rsqrt": _call("jax.lax.rsqrt"),
    "sin": _call("jnp.sin"),
    "cos": _call("jnp.cos"),
    "tanh": _call("jnp.tanh"),
    "erf": _call("jax.lax.erf"),
    "sigmoid": _call("jax.nn.sigmoid"),
    "select": _call("jnp.where"),
}
"""How each pointwise op is written, given its operands."""


def pointwise(op: Op, operands: Sequence[Code]) -> Code:
    """A pointwise op. Of operands that are all bare numbers, one is given its dtype."""
    codes = list(operands)
    first = 1 if op.name == "select" else 0
    if all(code.number for code in codes[first:]):
        codes[first] = typed(codes[first], op.operands[first].dtype)
    if op.name == "select":
        codes[0] = typed(codes[0], BOOL)
    return EXPRESSIONS[op.name](*codes)


def cast(x: Code, source: DType, target: DType) -> Code:
    """x of one dtype as another, by the op table's rule."""
    if source == target:
        return x
    x = typed(x, source)
    if target == BOOL:
        return Code(f"{x.at(COMPARE + 1)} != 0", COMPARE)
    if source.is_float and target.is_integer:
        return Code(f"to_integer({x.text}, {JNP[target.name]})")
    if target == BF16 and source.is_integer and source.bits == 32:
        return Code(f"to_bfloat16({x.text})")
    return Code(f"{x.at(ATOM)}.astype({JNP[target.name]})")


# -- axes ----------------------------------------------------------------------------------------------------------

REDUCTIONS = {
    "add": "jnp.sum",  # 16-bit floats accumulate in float32 and round once, as the op table wants
    "mul": "jnp.prod",
    "maximum": "jnp.max",
    "minimum": "jnp.min",
    "and": "jnp.bitwise_and.reduce",
    "or": "jnp.bitwise_or.reduce",
    "argmax": "jnp.argmax",
    "argmin": "jnp.argmin",
}
"""The function of each combine of a reduce. Of booleans, `maximum` is any and `minimum` is all."""


def reduce(
    x: Code, combine: str, dtype: DType, dimension: int, keepdims: bool = False, maybe_empty: bool = False
) -> Code:
    """A reduce of an array of `dtype` along one dimension; argmax and argmin give int32.

    Where the dimension is `maybe_empty`, jnp has to be told what an extreme of nothing is.
    """
    function = REDUCTIONS[combine]
    if dtype == BOOL:
        function = "jnp.all" if combine in ("and", "minimum") else "jnp.any"
    kept = ", keepdims=True" if keepdims else ""
    if combine in ("argmax", "argmin") and maybe_empty and not keepdims:
        return Code(f"place_of({function}, {x.text}, {dimension})")
    if combine in ("argmax", "argmin"):
        return Code(f"{function}({x.text}, axis={dimension}{kept}).astype(jnp.int32)")
    # A sum keeps its dtype; jnp would widen small integers.
    narrow = f", dtype={JNP[dtype.name]}" if combine in ("add", "mul") and dtype.is_integer else ""
    initial = ""
    if maybe_empty and combine in ("maximum", "minimum") and dtype != BOOL:
        initial = f", initial={constant(identity(combine, dtype), dtype).text}"
    return Code(f"{function}({x.text}, axis={dimension}{narrow}{initial}{kept})")


def dot_arguments(left: str, right: str, dimensions: tuple[int, int], dtype: DType, result: DType) -> list[str]:
    """Arguments of `jax.lax.dot_general` that contract one dimension of each operand; operands are of `dtype`."""
    first, second = dimensions
    arguments = [left, right, f"((({first},), ({second},)), ((), ()))"]
    if dtype.name == "f32":
        # Without it a TPU multiplies in bfloat16.
        arguments.append("precision=jax.lax.Precision.HIGHEST")
    return [*arguments, f"preferred_element_type={JNP[result.name]}"]


def dot(left: Code, right: Code, dimensions: tuple[int, int], dtype: DType, result: DType) -> Code:
    """A dot of two arrays: the left's other dimensions, then the right's."""
    return Code(f"jax.lax.dot_general({', '.join(dot_arguments(left.text, right.text, dimensions, dtype, result))})")
