"""The op table: every operation of the IR, declared once.

A row says what an op takes and gives, which attributes and regions it has, what it does to memory, what it means in
NumPy, what an invalid lane does to it (padding), and how rounding error passes through it (error). The verifier, the
printer and parser, the interpreter, the error bounds and the docs read these rows; emitters have one line a row.

To add an op: add a row here, and a line to each emitter that can say it (the others refuse it by name).
"""

from __future__ import annotations

import numpy as np

from kdsl.ir import (
    errors,
    functions,
    meaning,
    meaning_boxes,
    meaning_control,
    meaning_dots,
    rows_access,
    rows_control,
    rows_functions,
    rows_orders,
    rows_tiles,
    type_rules,
)
from kdsl.ir.dtypes import BOOL
from kdsl.ir.errors import ErrorRule
from kdsl.ir.kernel import Axis, Kernel, Op
from kdsl.ir.spec import OPS, OpSpec, define, define_pointwise, define_unary

# -- pointwise rows ------------------------------------------------------------------------------------------------

# Each of these files adds its rows to the table when it is imported.
CHAPTERS = (rows_functions, rows_orders, rows_tiles, rows_access, rows_control)

NUMBER, ORDERED, INTEGER = "int uint float", "bool int uint float", "int uint"


define_pointwise("add", "x + y; integers wrap", type_rules.same(NUMBER), np.add, errors.total)
define_pointwise("sub", "x - y; integers wrap", type_rules.same(NUMBER), np.subtract, errors.total)
define_pointwise("mul", "x * y; integers wrap", type_rules.same(NUMBER), np.multiply, errors.product)
define_pointwise("div", "x / y of floats", type_rules.same("float"), np.divide, errors.quotient)
define_pointwise(
    "floordiv", "x / y of integers, rounded down; 0 where y is 0", type_rules.same(INTEGER), meaning.floordiv
)
define_pointwise("floormod", "x - y * floordiv(x, y); 0 where y is 0", type_rules.same(INTEGER), meaning.floormod)
define_pointwise("maximum", "the larger; NaN if either is NaN", type_rules.same(ORDERED), np.maximum, errors.largest)
define_pointwise("minimum", "the smaller; NaN if either is NaN", type_rules.same(ORDERED), np.minimum, errors.largest)
define_pointwise("and", "bitwise and", type_rules.same("bool int uint"), np.bitwise_and)
define_pointwise("or", "bitwise or", type_rules.same("bool int uint"), np.bitwise_or)
define_pointwise("xor", "bitwise exclusive or", type_rules.same("bool int uint"), np.bitwise_xor)
define_pointwise("shl", "x << y; 0 where y is no bit position", type_rules.same(INTEGER), meaning.shift_left)
define_pointwise(
    "shr", "x >> y, with sign if signed; past the width all sign bits", type_rules.same(INTEGER), meaning.shift_right
)

define_pointwise("eq", "x == y; false where either is NaN", type_rules.same(ORDERED, BOOL), np.equal)
define_pointwise("ne", "x != y; true where either is NaN", type_rules.same(ORDERED, BOOL), np.not_equal)
define_pointwise("lt", "x < y; false where either is NaN", type_rules.same(ORDERED, BOOL), np.less)
define_pointwise("le", "x <= y; false where either is NaN", type_rules.same(ORDERED, BOOL), np.less_equal)
define_pointwise("gt", "x > y; false where either is NaN", type_rules.same(ORDERED, BOOL), np.greater)
define_pointwise("ge", "x >= y; false where either is NaN", type_rules.same(ORDERED, BOOL), np.greater_equal)

define_unary("neg", "-x; integers wrap", np.negative, errors.total, NUMBER)
define_unary("abs", "|x|; integers wrap", np.abs, errors.total, NUMBER)
define_unary("not", "bitwise complement", np.invert, errors.exact, "bool int uint")
define_unary("floor", "the integer at or below x", np.floor, errors.stepwise)
define_unary("ceil", "the integer at or above x", np.ceil, errors.stepwise)
define_unary("exp", "e ** x", np.exp, errors.exponential(np.e))
define_unary("exp2", "2 ** x", np.exp2, errors.exponential(2.0))
define_unary("log", "natural logarithm", np.log, errors.logarithm(np.e))
define_unary("log2", "logarithm to base 2", np.log2, errors.logarithm(2.0))
define_unary("sqrt", "square root", np.sqrt, errors.power(0.5))
define_unary("rsqrt", "1 / sqrt(x)", meaning.wide(lambda x: 1.0 / np.sqrt(x)), errors.power(-0.5))
define_unary("sin", "sine, x in radians", np.sin, errors.lipschitz(1.0))
define_unary("cos", "cosine, x in radians", np.cos, errors.lipschitz(1.0))
define_unary("tanh", "hyperbolic tangent", np.tanh, errors.monotone(np.tanh))
define_unary("erf", "error function", meaning.wide(functions.erf), errors.monotone(functions.erf))
define_unary("sigmoid", "1 / (1 + exp(-x))", meaning.wide(functions.sigmoid), errors.monotone(functions.sigmoid))

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
        "integers wrap, anything to bool is x != 0. The rounding is exact on every target; `rounding` zero cuts off "
        "instead. Past the largest number f16, bf16, f8e5m2 give infinity, f8e4m3 and f8e4m3fnuz NaN, as of infinity; "
        "`saturate` gives the largest number instead, as f4e2m1 always does, which makes -0 of NaN",
        ("x",),
        type_rules.cast,
        (("rounding", "word"), ("saturate", "flag")),
        optional=("rounding", "saturate"),
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
        "operands); one for each point of the other axes that both vary over; `precision` ieee multiplies f32 operands "
        "in full",
        ("left", "right"),
        type_rules.dot,
        (("axis", "axis"), ("precision", "word")),
        padding="zeroed",
        evaluate=meaning_dots.dot,
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
        evaluate=meaning_boxes.load,
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
        evaluate=meaning_boxes.store,
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
        evaluate=meaning_control.loop,
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


__all__ = ["CHAPTERS", "OPS", "OpSpec", "axis_of", "error_rule", "is_pointwise"]
