"""What the ops of the table mean on words. An op that is in none of the three lists has no algebraic meaning.

MOVES       only moves words about, and keeps its ordinary meaning
POINTWISE   on aligned words, lane by lane
ALONG       along an axis, or on memory
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kdsl.equivalence.algebra.field import Field, accumulate, drawn, fold
from kdsl.equivalence.algebra.words import MINUS, NAN, ONE, PLUS, UNDEFINED, ZERO, Word, encode, mod_p
from kdsl.ir import meaning, meaning_access, meaning_dots, meaning_tiles
from kdsl.ir.dtypes import BOOL, U64, DType
from kdsl.ir.kernel import Op, Value
from kdsl.ir.meaning import Array, Frame
from kdsl.ir.ops import OPS

MOVES = frozenset(
    (
        *("select", "broadcast", "reshape", "load", "store", "load_at", "store_at", "gather", "flip", "concat", "join"),
        *("split", "relabel", "for", "if", "while", "reduce_by", "scan_by", "yield", "poison", "print"),
        *("breakpoint", "constant", "argument"),
    )
)

Pointwise = Callable[..., Array]  # of a field, an op and its operands
Along = Callable[[Field, Frame, Op, list[Array]], list[Array]]


# -- pointwise -----------------------------------------------------------------------------------------------------


def plain(dtype: DType) -> DType:
    """The type of the table that a word's type, or any other, stands for."""
    return dtype.plain if isinstance(dtype, Word) else dtype


def _concrete(op: Op) -> Callable[..., Array]:
    """The meaning in the op table, for numbers given as f64 that the operands' types hold."""
    pointwise, dtypes = OPS[op.name].pointwise, [plain(value.dtype).numpy for value in op.operands]

    def compute(*numbers: Array) -> Array:
        operands = [number.astype(dtype) for number, dtype in zip(numbers, dtypes, strict=True)]
        if pointwise is not None:
            return np.asarray(pointwise(*operands))
        if op.name == "bitcast":
            return np.ascontiguousarray(operands[0]).view(plain(op.result.dtype).numpy)
        return np.asarray(meaning.convert(operands[0], plain(op.result.dtype), **op.attributes))

    return compute


def _function(field: Field, op: Op, *operands: Array) -> Array:
    return field.function(op.name, _concrete(op), *operands)


def _power(field: Field, op: Op, x: Array) -> Array:
    return field.exponential(op.name, _concrete(op), x)


def _signed(field: Field, negative: Array, x: Array) -> Array:
    return np.where(negative, field.negate(x), x)


def _absolute(field: Field, op: Op, x: Array) -> Array:
    return _signed(field, field.sign(x) < 0, x)


def _copysign(field: Field, op: Op, x: Array, y: Array) -> Array:
    magnitude = _signed(field, field.sign(x) < 0, x)
    return np.where(y == UNDEFINED, UNDEFINED, _signed(field, field.sign(y) < 0, magnitude))


def _fma(field: Field, op: Op, x: Array, y: Array, z: Array) -> Array:
    return field.add(field.multiply(x, y), z)


def _clamp(field: Field, op: Op, x: Array, low: Array, high: Array) -> Array:
    return field.extreme(np.less_equal, field.extreme(np.greater_equal, x, low), high)


def _test(specials: Sequence[Any], holds: bool) -> Pointwise:
    """Whether a word is one of the specials, or not."""

    def test(field: Field, op: Op, x: Array) -> Array:
        found = np.isin(x, np.array(specials, np.uint64)) == holds
        undefined = x == UNDEFINED
        return np.asarray(np.where(undefined, field.coin(undefined) == 1, found))

    return test


def _cast(field: Field, op: Op, x: Array) -> Array:
    """Between floats a narrowing one is a rounding; to an integer, any function; from an integer exact as it is."""
    source, target = op.operands[0].dtype, op.result.dtype
    if not isinstance(source, Word):
        return encode(meaning.convert(x, plain(target), **op.attributes))
    if target == BOOL:
        return field.compare(np.not_equal, x, np.asarray(ZERO))
    if not isinstance(target, Word):
        return _integer(field, op, x, 8)
    if holds_all(target.plain, source.plain) or not field.rounds:
        return x
    return field.rounded(" ".join([target.name, *map(str, op.attributes.values())]), _concrete(op), x)


def holds_all(wide: DType, narrow: DType) -> bool:
    """Whether one float type holds all numbers of another."""
    return wide.mantissa >= narrow.mantissa and wide.bits - wide.mantissa >= narrow.bits - narrow.mantissa


def _bitcast(field: Field, op: Op, x: Array) -> Array:
    source, target = op.operands[0].dtype, op.result.dtype
    if not isinstance(source, Word):
        return drawn(field.mixed(f"bits as {target}", x.astype(np.uint64)))
    if not isinstance(target, Word):
        return _integer(field, op, x, 2**target.bits)
    return field.function(f"bits of {source} as {target}", _concrete(op), x)


def _integer(field: Field, op: Op, x: Array, count: int) -> Array:
    """A random function to the integers below `count`; of a number of the text what the op table says."""
    dtype = op.result.dtype.numpy
    bits = field.mixed(f"{op.name} to {op.result.dtype}", mod_p(x)) & np.uint64(count - 1)
    undefined = x == UNDEFINED
    result = np.where(undefined, field.coin(undefined, 8), bits).astype(np.int64).astype(dtype)
    given, numbers = field.named(x)
    if given.any():
        result[given] = _concrete(op)(numbers[given])
    return result


_COMPARISONS: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_FUNCTIONS = (
    *("floor", "ceil", "trunc", "round", "log", "log2", "log10", "log1p", "expm1", "sqrt", "rsqrt", "precise_sqrt"),
    *("cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf"),
    *("sigmoid", "fmod", "pow", "atan2"),
)
_LARGER, _SMALLER = np.greater_equal, np.less_equal

POINTWISE: dict[str, Pointwise] = {
    "add": lambda field, op, x, y: field.add(x, y),
    "sub": lambda field, op, x, y: field.subtract(x, y),
    "mul": lambda field, op, x, y: field.multiply(x, y),
    "div": lambda field, op, x, y: field.divide(x, y),
    "precise_div": lambda field, op, x, y: field.divide(x, y),
    "neg": lambda field, op, x: field.negate(x),
    "fma": _fma,
    "exp": _power,
    "exp2": _power,
    "maximum": lambda field, op, x, y: field.extreme(_LARGER, x, y),
    "minimum": lambda field, op, x, y: field.extreme(_SMALLER, x, y),
    "maxnum": lambda field, op, x, y: field.extreme(_LARGER, x, y, numbers_win=True),
    "minnum": lambda field, op, x, y: field.extreme(_SMALLER, x, y, numbers_win=True),
    "clamp": _clamp,
    "abs": _absolute,
    "copysign": _copysign,
    "is_nan": _test([NAN], holds=True),
    "is_inf": _test([PLUS, MINUS], holds=True),
    "is_finite": _test([NAN, PLUS, MINUS], holds=False),
    "cast": _cast,
    "bitcast": _bitcast,
    **{name: lambda field, op, x, y: field.compare(_COMPARISONS[op.name], x, y) for name in _COMPARISONS},
    **dict.fromkeys(_FUNCTIONS, _function),
}


# -- along an axis -------------------------------------------------------------------------------------------------


def _combines(field: Field) -> dict[str, tuple[Callable[[Array, Array], Array], Any]]:
    return {
        "add": (field.add, ZERO),
        "mul": (field.multiply, ONE),
        "maximum": (partial(field.extreme, _LARGER), MINUS),
        "minimum": (partial(field.extreme, _SMALLER), PLUS),
    }


def _reduce(field: Field, frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    combines = _combines(field)
    if op.attributes["combine"] not in combines:  # argmax, argmin
        keys = field.tossed_keys(operands[0])
        if op.attributes["combine"] == "argmin":
            keys = np.where(operands[0] == NAN, ZERO, keys)  # a NaN is the extreme either way
        return meaning.reduce(frame, _on_keys(op), [keys])
    combine, neutral = combines[op.attributes["combine"]]
    axes = frame.kernel.order({*op.result.axes, op.attributes["axis"]})
    (lanes,), valid = meaning_tiles.lanes_of(frame, op, operands, op.attributes["axis"], axes)
    return [fold(combine, np.where(valid, lanes, neutral), neutral)]


def _scan(field: Field, frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    combine, neutral = _combines(field)[op.attributes["combine"]]
    axes, step = op.result.axes, -1 if op.attributes.get("reverse") else 1
    (lanes,), valid = meaning_tiles.lanes_of(frame, op, operands, op.attributes["axis"], axes)
    running = accumulate(combine, np.where(valid, lanes, neutral)[..., ::step])
    return [meaning_tiles.back(running[..., ::step], op.attributes["axis"], axes)]


def _on_keys(op: Op) -> Op:
    """The op with keys for its first operand."""
    first, *others = op.operands
    return replace(op, operands=(replace(first, dtype=U64), *others))


def _sort(field: Field, frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """The words are carried along with their keys."""
    if not isinstance(op.operands[0].dtype, Word):
        return meaning_tiles.sort(frame, op, operands)
    key = Value("", U64, op.operands[0].axes)
    results = (replace(key, axes=op.results[0].axes), *op.results)
    keyed = replace(op, operands=(key, *op.operands), results=results)
    return meaning_tiles.sort(frame, keyed, [field.tossed_keys(operands[0]), *operands])[1:]


def _topk(field: Field, frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    keys = field.tossed_keys(operands[0])
    largest, lanes = meaning_tiles.topk(frame, _on_keys(op), [keys])
    known, places = np.unique(keys, return_index=True)
    place = np.searchsorted(known, largest).clip(max=max(len(known) - 1, 0))
    words = operands[0].reshape(-1)[places]
    if not words.size:
        return [np.full(largest.shape, UNDEFINED), lanes]
    return [np.where(known[place] == largest, words[place], UNDEFINED), lanes]


def _dot(field: Field, frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    precision = op.attributes["precision"]

    def matmul(x: Array, y: Array) -> Array:
        if field.rounds and precision in ("tf32", "bf16"):
            x, y = (field.rounded(f"dot {precision}", lambda number: number, each) for each in (x, y))
        return field.matmul(x, y)

    return meaning_dots.contraction(frame, op, operands, matmul)


def _dot_scaled(field: Field, frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    def scale(x: Array, exponent: Array) -> Array:
        return field.multiply(x, encode(meaning_dots.power_of_two(exponent)))

    return meaning_dots.scaled_contraction(frame, op, operands, scale, field.matmul)


def _atomic(field: Field, frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    changes: dict[str, Callable[[Array, Array], Array]] = {
        "add": field.add,
        "maximum": partial(field.extreme, _LARGER, numbers_win=True),
        "minimum": partial(field.extreme, _SMALLER, numbers_win=True),
        "exchange": lambda old, new: new,
    }
    return meaning_access.one_by_one(frame, op, operands, 1, changes[op.attributes["combine"]])


ALONG: dict[str, Along] = {
    "reduce": _reduce,
    "scan": _scan,
    "sort": _sort,
    "topk": _topk,
    "dot": _dot,
    "dot_scaled": _dot_scaled,
    "atomic": _atomic,
}
