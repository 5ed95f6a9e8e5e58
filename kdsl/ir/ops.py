"""The op table: every operation of the IR, declared once.

A row says what an op takes and gives, which attributes and regions it has, what it does to memory, what it means in
NumPy, what an invalid lane does to it (padding), and how rounding error passes through it (error). The verifier, the
printer and parser, the interpreter, the error bounds and the docs read these rows; emitters have one line a row.

To add an op: add a row here, and a line to each emitter that can say it (the others refuse it by name).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kdsl.ir import errors, meaning, memory, type_rules
from kdsl.ir.dtypes import BOOL
from kdsl.ir.errors import ErrorRule
from kdsl.ir.kernel import Axis, Kernel, Op

Effect = Literal["none", "read", "write"]

Padding = Literal[
    "lanewise",  # a lane of the result depends on the same lane of the operands: invalid in, invalid out
    "excluded",  # lanes invalid along the reduced axis never take part
    "zeroed",  # both operands count as zero where the contracted axis is invalid
    "predicated",  # an invalid lane touches no memory
    "rearranged",  # only legal on axes that have no invalid lane
    "region",  # what the ops of the region do
]

AttributeKind = Literal["value", "axis", "axes", "form", "forms", "bounds", "buffer", "scalar", "word"]


@dataclass(frozen=True)
class OpSpec:
    """One row of the table.

    `operands` names them ("*" for any number); `optional` attributes may be left out. `infer` gives the result types
    or raises OpTypeError. `pointwise` is the meaning of a lanewise op on aligned arrays; `evaluate` that of any other,
    with the interpreter's frame.
    """

    name: str
    doc: str
    operands: tuple[str, ...]
    infer: type_rules.Infer
    attributes: tuple[tuple[str, AttributeKind], ...] = ()
    optional: tuple[str, ...] = ()
    regions: int = 0
    effect: Effect = "none"
    padding: Padding = "lanewise"
    pointwise: Callable[..., Any] | None = None
    evaluate: meaning.Evaluate | None = None
    error: ErrorRule = errors.exact


OPS: dict[str, OpSpec] = {}

# Names that later ops will have, so that nobody takes them for something else.
_LATER = """
    scan sort topk flip concat join split gather histogram philox bitcast mulhi clamp fma precise_div precise_sqrt
    truncdiv truncmod maxnum minnum dot_scaled load_at store_at atomic atomic_cas if while assert print poison
    relabel libdevice
"""
RESERVED = frozenset(_LATER.split())


def define(spec: OpSpec) -> None:
    if spec.name in OPS or spec.name in RESERVED:
        raise ValueError(f"op {spec.name} is declared twice or reserved")
    OPS[spec.name] = spec


# -- pointwise rows ------------------------------------------------------------------------------------------------

NUMBER, ORDERED, INTEGER = "int uint float", "bool int uint float", "int uint"


def _pointwise(
    name: str,
    doc: str,
    infer: type_rules.Infer,
    function: Callable[..., Any],
    error: ErrorRule = errors.exact,
    operands: str = "x y",
) -> None:
    define(OpSpec(name, doc, tuple(operands.split()), infer, pointwise=function, error=error))


def _unary(name: str, doc: str, function: Callable[..., Any], error: ErrorRule, kinds: str = "float") -> None:
    _pointwise(name, doc, type_rules.same(kinds), function, error, operands="x")


_pointwise("add", "x + y; integers wrap", type_rules.same(NUMBER), np.add, errors.total)
_pointwise("sub", "x - y; integers wrap", type_rules.same(NUMBER), np.subtract, errors.total)
_pointwise("mul", "x * y; integers wrap", type_rules.same(NUMBER), np.multiply, errors.product)
_pointwise("div", "x / y of floats", type_rules.same("float"), np.divide, errors.quotient)
_pointwise("floordiv", "x / y of integers, rounded down; 0 where y is 0", type_rules.same(INTEGER), meaning.floordiv)
_pointwise("floormod", "x - y * floordiv(x, y); 0 where y is 0", type_rules.same(INTEGER), meaning.floormod)
_pointwise("maximum", "the larger; NaN if either is NaN", type_rules.same(ORDERED), np.maximum, errors.largest)
_pointwise("minimum", "the smaller; NaN if either is NaN", type_rules.same(ORDERED), np.minimum, errors.largest)
_pointwise("and", "bitwise and", type_rules.same("bool int uint"), np.bitwise_and)
_pointwise("or", "bitwise or", type_rules.same("bool int uint"), np.bitwise_or)
_pointwise("xor", "bitwise exclusive or", type_rules.same("bool int uint"), np.bitwise_xor)
_pointwise("shl", "x << y; 0 where y is no bit position", type_rules.same(INTEGER), meaning.shift_left)
_pointwise(
    "shr", "x >> y, with sign if signed; past the width all sign bits", type_rules.same(INTEGER), meaning.shift_right
)

_pointwise("eq", "x == y; false where either is NaN", type_rules.same(ORDERED, BOOL), np.equal)
_pointwise("ne", "x != y; true where either is NaN", type_rules.same(ORDERED, BOOL), np.not_equal)
_pointwise("lt", "x < y; false where either is NaN", type_rules.same(ORDERED, BOOL), np.less)
_pointwise("le", "x <= y; false where either is NaN", type_rules.same(ORDERED, BOOL), np.less_equal)
_pointwise("gt", "x > y; false where either is NaN", type_rules.same(ORDERED, BOOL), np.greater)
_pointwise("ge", "x >= y; false where either is NaN", type_rules.same(ORDERED, BOOL), np.greater_equal)

_unary("neg", "-x; integers wrap", np.negative, errors.total, NUMBER)
_unary("abs", "|x|; integers wrap", np.abs, errors.total, NUMBER)
_unary("not", "bitwise complement", np.invert, errors.exact, "bool int uint")
_unary("floor", "the integer at or below x", np.floor, errors.stepwise)
_unary("ceil", "the integer at or above x", np.ceil, errors.stepwise)
_unary("exp", "e ** x", np.exp, errors.exponential(np.e))
_unary("exp2", "2 ** x", np.exp2, errors.exponential(2.0))
_unary("log", "natural logarithm", np.log, errors.logarithm(np.e))
_unary("log2", "logarithm to base 2", np.log2, errors.logarithm(2.0))
_unary("sqrt", "square root", np.sqrt, errors.power(0.5))
_unary("rsqrt", "1 / sqrt(x)", meaning.wide(lambda x: 1.0 / np.sqrt(x)), errors.power(-0.5))
_unary("sin", "sine, x in radians", np.sin, errors.lipschitz(1.0))
_unary("cos", "cosine, x in radians", np.cos, errors.lipschitz(1.0))
_unary("tanh", "hyperbolic tangent", np.tanh, errors.lipschitz(1.0))
_unary("erf", "error function", meaning.wide(meaning.erf), errors.lipschitz(2 / np.sqrt(np.pi)))
_unary("sigmoid", "1 / (1 + exp(-x))", meaning.wide(meaning.sigmoid), errors.lipschitz(0.25))

define(
    OpSpec(
        "select",
        "y where the condition holds, else z; a lane takes nothing from the arm it does not choose",
        ("condition", "y", "z"),
        type_rules.select,
        pointwise=np.where,
        error=errors.chosen,
    )
)
define(
    OpSpec(
        "cast",
        "x as the result's dtype: floats round to nearest even, floats to integers truncate and saturate, NaN to 0, "
        "integers wrap, anything to bool is x != 0. The rounding is exact on every target",
        ("x",),
        type_rules.declared,
        evaluate=meaning.cast,
        error=errors.total,
    )
)

# -- values from nothing -------------------------------------------------------------------------------------------

define(OpSpec("constant", "a number", (), type_rules.constant, (("value", "value"),), evaluate=meaning.constant))
define(
    OpSpec("argument", "a scalar argument", (), type_rules.argument, (("scalar", "scalar"),), evaluate=meaning.argument)
)
define(
    OpSpec(
        "index",
        "the value of an integer form: program ids, loop counters, lane numbers and sizes are all of this kind",
        (),
        type_rules.index,
        (("form", "form"),),
        evaluate=meaning.index,
    )
)
define(
    OpSpec(
        "in_bounds",
        "whether all bounds hold",
        (),
        type_rules.in_bounds,
        (("bounds", "bounds"),),
        evaluate=meaning.in_bounds,
    )
)

# -- axes ----------------------------------------------------------------------------------------------------------

define(
    OpSpec(
        "broadcast",
        "the value, varying over more axes without changing along them",
        ("x",),
        type_rules.broadcast,
        (("axes", "axes"),),
        evaluate=meaning.broadcast,
        error=errors.total,
    )
)
define(
    OpSpec(
        "reduce",
        "combine the valid lanes along one axis, which the result no longer varies over; the combine's identity where "
        "no lane is valid. argmax and argmin give the lowest lane number (a NaN lane counts as the extreme)",
        ("source",),
        type_rules.reduce,
        (("axis", "axis"), ("combine", "word")),
        padding="excluded",
        evaluate=meaning.reduce,
        error=errors.total,
    )
)
define(
    OpSpec(
        "dot",
        "sum of products along one axis of both operands, accumulated in f32 (i32 for integers, 64 bits for 64-bit "
        "operands); `precision` ieee multiplies f32 operands in full",
        ("left", "right"),
        type_rules.dot,
        (("axis", "axis"), ("precision", "word")),
        padding="zeroed",
        evaluate=meaning.dot,
        error=errors.product,
    )
)
define(
    OpSpec(
        "reshape",
        "replace axes by others of the same number of lanes, in row-major order: i = c*q + r",
        ("x",),
        type_rules.reshape,
        (("source", "axes"), ("target", "axes")),
        padding="rearranged",
        evaluate=meaning.reshape,
        error=errors.total,
    )
)

# -- memory --------------------------------------------------------------------------------------------------------

define(
    OpSpec(
        "load",
        "read a box: one index form a dimension. Lanes outside `bounds` give `fill`; without a fill they are poison",
        (),
        type_rules.load,
        (("buffer", "buffer"), ("index", "forms"), ("bounds", "bounds"), ("fill", "value")),
        optional=("bounds", "fill"),
        effect="read",
        padding="predicated",
        evaluate=memory.load,
    )
)
define(
    OpSpec(
        "store",
        "write a box: one index form a dimension. Lanes outside `bounds`, and invalid ones, are left as they are",
        ("value",),
        type_rules.store,
        (("buffer", "buffer"), ("index", "forms"), ("bounds", "bounds")),
        optional=("bounds",),
        effect="write",
        padding="predicated",
        evaluate=memory.store,
    )
)

# -- control -------------------------------------------------------------------------------------------------------

define(
    OpSpec(
        "for",
        "run the body for each point of a loop axis in order, carrying values from one iteration to the next",
        ("*",),
        type_rules.loop,
        (("axis", "axis"),),
        regions=1,
        padding="region",
        evaluate=meaning.loop,
    )
)
define(OpSpec("yield", "what a region gives", ("*",), type_rules.nothing, padding="region"))


def error_rule(op: Op) -> ErrorRule:
    """How error in the operands reaches the result: the row's rule, but a float cast to an integer or bool steps."""
    if op.name == "cast" and op.operands[0].dtype.is_float and not op.result.dtype.is_float:
        return errors.stepwise
    return OPS[op.name].error


def is_pointwise(op: Op) -> bool:
    """Whether a lane of the result depends on that lane of the operands alone."""
    return OPS[op.name].pointwise is not None or op.name == "cast"


def axis_of(kernel: Kernel, op: Op) -> Axis:
    """The axis that a reduce, dot or for is over."""
    return kernel.axis(op.attributes["axis"])
