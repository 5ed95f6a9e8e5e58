"""The op table in jnp: what the targets that print JAX source share. One entry a row of `kdsl/ir/ops.py`, in its order.

An expression is `Code`: its text, how tightly it binds, and whether it is a bare Python number (which takes the dtype
of what it meets). Few ops need more than an expression: their text calls a helper of HELPERS, by its name, and the
emitted module must define those that it calls (`jnp_helpers.helpers_in`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kdsl.codegen.layout import Layout
from kdsl.ir.dtypes import BF16, BOOL, F32, DType
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
    **{f"i{bits}": f"jnp.int{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"u{bits}": f"jnp.uint{bits}" for bits in (4, 8, 16, 32, 64)},
    "f8e4m3": "jnp.float8_e4m3fn",
    "f8e5m2": "jnp.float8_e5m2",
    "f8e4m3fnuz": "jnp.float8_e4m3fnuz",
    "f4e2m1": "jnp.float4_e2m1fn",
}
"""jnp's name of each dtype."""

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
    "truncdiv": _call("trunc_divide"),
    "truncmod": _call("trunc_mod"),
    "mulhi": _call("multiply_high"),
    "maxnum": _call("jnp.fmax"),
    "minnum": _call("jnp.fmin"),
    "precise_div": _call("divide"),
    "precise_sqrt": _call("jnp.sqrt"),
    "fma": lambda x, y, z: Code(f"{x.at(PRODUCT)} * {y.at(UNARY)} + {z.at(PRODUCT)}", SUM),
    "clamp": lambda x, low, high: Code(f"jnp.minimum(jnp.maximum({x.text}, {low.text}), {high.text})"),
    "fmod": _call("jnp.fmod"),
    "pow": _call("jnp.power"),
    "copysign": _call("jnp.copysign"),
    "round": _call("jnp.rint"),
    **{name: _call(f"jnp.{name}") for name in ("trunc", "log10", "log1p", "expm1", "cbrt", "tan", "sinh", "cosh")},
    **{f"a{name}": _call(f"jnp.arc{name}") for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "is_nan": _call("jnp.isnan"),
    "is_inf": _call("jnp.isinf"),
    "is_finite": _call("jnp.isfinite"),
}
"""How each pointwise op is written, given its operands."""

# Helpers that take no bare numbers: they ask for dtypes.
_STRICT = {"truncdiv", "truncmod", "mulhi", "precise_div"}


def pointwise(op: Op, operands: Sequence[Code]) -> Code:
    """A pointwise op. Of operands that are all bare numbers, one is given its dtype."""
    codes = list(operands)
    if op.name in _STRICT:
        codes = [typed(code, value.dtype) for code, value in zip(codes, op.operands, strict=True)]
    first = 1 if op.name == "select" else 0
    if op.name in ("shl", "shr"):  # how many bit positions there are is asked of what is shifted
        codes[0] = typed(codes[0], op.operands[0].dtype)
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
    if source.is_float and source.is_storage and target.is_integer:
        x = cast(x, source, F32)  # whose numbers hold the limits of the integers
    if source.is_float and target.is_integer:
        return Code(f"to_integer({x.text}, {JNP[target.name]})")
    if target == BF16 and source.is_integer and source.bits == 32:
        return Code(f"to_bfloat16({x.text})")
    return Code(f"{x.at(ATOM)}.astype({JNP[target.name]})")


def bitcast(x: Code, source: DType, target: DType) -> Code:
    """The bits of x as another dtype."""
    return Code(f"jax.lax.bitcast_convert_type({typed(x, source).text}, {JNP[target.name]})")


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


SCANS = {"add": "jax.lax.cumsum", "mul": "jax.lax.cumprod", "maximum": "jax.lax.cummax", "minimum": "jax.lax.cummin"}
_BY_PAIRS = {
    "and": "jnp.bitwise_and",
    "or": "jnp.bitwise_or",
    "maximum": "jnp.logical_or",
    "minimum": "jnp.logical_and",
}


def scan(x: Code, combine: str, dtype: DType, dimension: int, reverse: bool) -> Code:
    """A running combine of an array of `dtype` along one dimension; 16-bit floats accumulate in float32."""
    last = f"{dimension}, reverse=True" if reverse else str(dimension)
    if dtype == BOOL or combine not in SCANS:
        last = last.replace(f"{dimension}", f"axis={dimension}", 1)
        return Code(f"jax.lax.associative_scan({_BY_PAIRS[combine]}, {x.text}, {last})")
    if dtype.is_float and dtype.bits == 16 and combine in ("add", "mul"):
        return cast(Code(f"{SCANS[combine]}({cast(x, dtype, F32).text}, {last})"), F32, dtype)
    return Code(f"{SCANS[combine]}({x.text}, {last})")


# Fraction bits that a dot of that precision keeps of a float32 operand; split products keep all that matters.
FRACTION_BITS = {"tf32": 10, "bf16": 7}


def dot_arguments(
    factors: Sequence[str], layouts: Sequence[Layout], axis: str, batch: Sequence[str], dtype: DType, result: DType
) -> list[str]:
    """Arguments of `jax.lax.dot_general` on two arrays of these layouts, of `dtype`, that contracts one axis.

    Its result has the batch axes first, then the left array's other dimensions, then the right one's.
    """
    dimensions = (
        tuple((layout.index(axis),) for layout in layouts),
        tuple(tuple(layout.index(name) for name in batch) for layout in layouts),
    )
    arguments = [*factors, str(dimensions)]
    if dtype.name == "f32":
        # Without it a TPU multiplies in bfloat16.
        arguments.append("precision=jax.lax.Precision.HIGHEST")
    return [*arguments, f"preferred_element_type={JNP[result.name]}"]


def dot(
    factors: Sequence[Code], layouts: Sequence[Layout], axis: str, batch: Sequence[str], dtype: DType, result: DType
) -> Code:
    """A dot of two arrays; as `dot_arguments`."""
    arguments = dot_arguments([code.text for code in factors], layouts, axis, batch, dtype, result)
    return Code(f"jax.lax.dot_general({', '.join(arguments)})")
