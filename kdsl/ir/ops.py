"""The op table: every operation of the IR, declared once.

A row says what an op takes and gives, which attributes and regions it has, what it does to memory, what it means in
NumPy, what an invalid lane does to it (padding), and how rounding error passes through it (error). The verifier, the
printer and parser, the interpreter, the error bounds and the docs read these rows; emitters have one line a row.

To add an op: add a row here, and a line to each emitter that can say it (the others refuse it by name).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from kdsl.ir import errors, meaning
from kdsl.ir.dtypes import BOOL, F32, I32, I64, DType, holds_number
from kdsl.ir.errors import ErrorRule
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Axis, Bound, Kernel, Op, Scalar

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


class Type(NamedTuple):
    """The type of a value."""

    dtype: DType
    axes: tuple[str, ...]


class OpTypeError(Exception):
    """An op whose operands or attributes its row forbids; the verifier turns it into a diagnostic."""


Infer = Callable[[Kernel, Op], tuple[Type, ...]]


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
    infer: Infer
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


# -- type rules ----------------------------------------------------------------------------------------------------


def union(kernel: Kernel, *axes: Iterable[str]) -> tuple[str, ...]:
    """All axes, in the kernel's order."""
    return kernel.order(name for group in axes for name in group)


def form_axes(kernel: Kernel, forms: Iterable[Expr | Bound]) -> tuple[str, ...]:
    """The axes that index forms and bounds vary over."""
    return kernel.order(name for form in forms for name in form.symbols)


def axis_bounds(kernel: Kernel, axes: Iterable[str]) -> tuple[Bound, ...]:
    """The bounds that make lanes of these axes valid."""
    return tuple(bound for name in axes for bound in kernel.axis(name).bounds)


def _same(kinds: str, result: DType | None = None) -> Infer:
    """Operands of one dtype, of one of the kinds; the result has it too, or `result`."""

    def infer(kernel: Kernel, op: Op) -> tuple[Type, ...]:
        dtypes = {value.dtype for value in op.operands}
        if len(dtypes) != 1:
            raise OpTypeError(f"operands differ in dtype: {', '.join(str(value.dtype) for value in op.operands)}")
        (dtype,) = dtypes
        if dtype.kind not in kinds.split():
            raise OpTypeError(f"takes {kinds.replace(' ', ' or ')} operands, not {dtype}")
        return (Type(result or dtype, union(kernel, *(value.axes for value in op.operands))),)

    return infer


def _select(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    condition, yes, no = op.operands
    if condition.dtype != BOOL or yes.dtype != no.dtype:
        raise OpTypeError(f"takes bool, T, T; not {condition.dtype}, {yes.dtype}, {no.dtype}")
    return (Type(yes.dtype, union(kernel, condition.axes, yes.axes, no.axes)),)


def _declared(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    """cast: the dtype is what the result says."""
    return (Type(op.result.dtype, union(kernel, *(value.axes for value in op.operands))),)


def _constant(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    _check_number(op.result.dtype, op.attributes["value"])
    return (Type(op.result.dtype, ()),)


def _check_number(dtype: DType, value: object) -> None:
    if not holds_number(dtype, value):
        raise OpTypeError(f"{value} is no {dtype}")


def _argument(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    name = op.attributes["scalar"]
    dtypes = {parameter.name: parameter.dtype for parameter in kernel.parameters if isinstance(parameter, Scalar)}
    if name not in dtypes:
        raise OpTypeError(f"no scalar argument {name}")
    return (Type(dtypes[name], ()),)


def _index(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    if op.result.dtype not in (I32, I64):
        raise OpTypeError(f"an index is i32 or i64, not {op.result.dtype}")
    return (Type(op.result.dtype, form_axes(kernel, [op.attributes["form"]])),)


def _in_bounds(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    return (Type(BOOL, form_axes(kernel, op.attributes["bounds"])),)


def _broadcast(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (value,) = op.operands
    return (Type(value.dtype, union(kernel, value.axes, op.attributes["axes"])),)


def _reduce(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (source,), axis = op.operands, op.attributes["axis"]
    combine = meaning.COMBINES.get(op.attributes["combine"])
    if combine is None:
        raise OpTypeError(f"no combine named {op.attributes['combine']}")
    if axis not in source.axes or kernel.axis(axis).kind != "tile":
        raise OpTypeError(f"{source} does not vary over a tile axis {axis}")
    if source.dtype.kind not in combine.kinds:
        raise OpTypeError(f"combine {op.attributes['combine']} does not take {source.dtype}")
    # How many lanes are valid may vary over axes that the source itself does not vary over.
    axes = union(kernel, source.axes, kernel.with_validity(kernel.decided_along(axis, source.axes)))
    return (Type(combine.result or source.dtype, tuple(name for name in axes if name != axis)),)


PRECISIONS = ("ieee",)


def _dot(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (left, right), axis = op.operands, op.attributes["axis"]
    if axis not in left.axes or axis not in right.axes or kernel.axis(axis).kind != "tile":
        raise OpTypeError(f"{axis} is no tile axis of both operands")
    if op.attributes["precision"] not in PRECISIONS:
        raise OpTypeError(f"no precision named {op.attributes['precision']}")
    if left.dtype != right.dtype or left.dtype.kind not in ("float", "int"):
        raise OpTypeError(f"takes two operands of one float or signed dtype, not {left.dtype} and {right.dtype}")
    shared = [name for name in kernel.tile_axes(left) if name in right.axes and name != axis]
    if shared:
        raise OpTypeError(f"operands share the tile axes {', '.join(shared)} besides the contracted {axis}")
    dtype = left.dtype if left.dtype.bits == 64 else I32 if left.dtype.kind == "int" else F32
    axes = union(kernel, left.axes, right.axes)
    for operand in (left, right):
        validity = kernel.with_validity(kernel.decided_along(axis, operand.axes))
        if any(kernel.axis(name).kind == "tile" and name not in operand.axes for name in validity):
            raise OpTypeError(f"which lanes of {operand} are valid varies over a tile axis that it does not vary over")
        axes = union(kernel, axes, validity)
    return (Type(dtype, tuple(name for name in axes if name != axis)),)


def _reshape(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (value,), source, target = op.operands, op.attributes["source"], op.attributes["target"]
    missing = [name for name in source if name not in value.axes]
    if missing:
        raise OpTypeError(f"{value} does not vary over {', '.join(missing)}")
    if set(target) & (set(value.axes) - set(source)):
        raise OpTypeError("a target axis is already an axis of the value")
    if any(kernel.axis(name).kind != "tile" for name in (*source, *target)):
        raise OpTypeError("only tile axes can be reshaped")
    if len(set(source)) != len(source) or len(set(target)) != len(target):
        raise OpTypeError("an axis is named twice")
    if axis_bounds(kernel, (*source, *target)):
        raise OpTypeError("an axis with invalid lanes cannot be reshaped")
    kept = [name for name in value.axes if name not in source]
    if any(kernel.decided_along(axis, kept) for axis in source):
        raise OpTypeError("which lanes of another axis are valid depends on a source axis")
    if _extent(kernel, source) != _extent(kernel, target):
        raise OpTypeError(f"extents differ: {_extent(kernel, source)} and {_extent(kernel, target)}")
    return (Type(value.dtype, union(kernel, set(value.axes) - set(source), target)),)


def _extent(kernel: Kernel, axes: Sequence[str]) -> Expr:
    """How many lanes the axes have together; computed sizes are what they are computed from."""
    computed = {size.name: size.value for size in kernel.sizes if size.value is not None}
    extent = Expr((((), 1),))
    for name in axes:
        extent = extent * kernel.axis(name).extent.substitute(computed)
    return extent


def _load(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    buffer = kernel.buffer(op.attributes["buffer"])
    _check_rank(kernel, op)
    if "fill" in op.attributes:
        _check_number(buffer.dtype, op.attributes["fill"])
    named = form_axes(kernel, [*op.attributes["index"], *op.attributes.get("bounds", ())])
    return (Type(buffer.dtype, kernel.with_validity(named)),)


def _store(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    buffer = kernel.buffer(op.attributes["buffer"])
    _check_rank(kernel, op)
    (value,) = op.operands
    if buffer.role == "in":
        raise OpTypeError(f"{buffer.name} is an input")
    if value.dtype != buffer.dtype:
        raise OpTypeError(f"stores {value.dtype} into a tensor of {buffer.dtype}")
    covered = form_axes(kernel, op.attributes["index"])
    loose = [name for name in kernel.tile_axes(value) if name not in covered]
    if loose:
        raise OpTypeError(f"the value varies over {', '.join(loose)}, the index does not")
    return ()


def _check_rank(kernel: Kernel, op: Op) -> None:
    buffer = kernel.buffer(op.attributes["buffer"])
    if len(op.attributes["index"]) != len(buffer.shape):
        raise OpTypeError(f"{buffer.name} has {len(buffer.shape)} dimensions, the index {len(op.attributes['index'])}")


def _for(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    """Carried values: argument, yielded value and result agree, but the result has left the loop."""
    axis, (body,) = kernel.axis(op.attributes["axis"]), op.regions
    if axis.kind != "loop":
        raise OpTypeError(f"{axis.name} is no loop axis")
    if not body.ops or body.ops[-1].name != "yield":
        raise OpTypeError("the body does not end with a yield")
    yielded = body.ops[-1].operands
    if not len(op.operands) == len(body.arguments) == len(yielded):
        raise OpTypeError("initial values, arguments and yielded values differ in number")
    trips = form_axes(kernel, [axis.extent])
    types = []
    for initial, argument, final in zip(op.operands, body.arguments, yielded, strict=True):
        if not initial.dtype == argument.dtype == final.dtype:
            raise OpTypeError(f"carried {argument} changes dtype: {initial.dtype}, {argument.dtype}, {final.dtype}")
        if not set(initial.axes) | set(final.axes) <= set(argument.axes):
            raise OpTypeError(f"carried {argument} does not vary over all axes of what it is given")
        types.append(Type(argument.dtype, union(kernel, set(argument.axes) - {axis.name}, trips)))
    return tuple(types)


def _nothing(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    return ()


# -- pointwise rows ------------------------------------------------------------------------------------------------

NUMBER, ORDERED, INTEGER = "int uint float", "bool int uint float", "int uint"


def _pointwise(
    name: str,
    doc: str,
    infer: Infer,
    function: Callable[..., Any],
    error: ErrorRule = errors.exact,
    operands: str = "x y",
) -> None:
    define(OpSpec(name, doc, tuple(operands.split()), infer, pointwise=function, error=error))


def _unary(name: str, doc: str, function: Callable[..., Any], error: ErrorRule, kinds: str = "float") -> None:
    _pointwise(name, doc, _same(kinds), function, error, operands="x")


_pointwise("add", "x + y; integers wrap", _same(NUMBER), np.add, errors.total)
_pointwise("sub", "x - y; integers wrap", _same(NUMBER), np.subtract, errors.total)
_pointwise("mul", "x * y; integers wrap", _same(NUMBER), np.multiply, errors.product)
_pointwise("div", "x / y of floats", _same("float"), np.divide, errors.quotient)
_pointwise("floordiv", "x / y of integers, rounded down; 0 where y is 0", _same(INTEGER), meaning.floordiv)
_pointwise("floormod", "x - y * floordiv(x, y); 0 where y is 0", _same(INTEGER), meaning.floormod)
_pointwise("maximum", "the larger; NaN if either is NaN", _same(ORDERED), np.maximum, errors.largest)
_pointwise("minimum", "the smaller; NaN if either is NaN", _same(ORDERED), np.minimum, errors.largest)
_pointwise("and", "bitwise and", _same("bool int uint"), np.bitwise_and)
_pointwise("or", "bitwise or", _same("bool int uint"), np.bitwise_or)
_pointwise("xor", "bitwise exclusive or", _same("bool int uint"), np.bitwise_xor)
_pointwise("shl", "x << y; 0 where y is no bit position", _same(INTEGER), meaning.shift_left)
_pointwise("shr", "x >> y, with sign if signed; past the width all sign bits", _same(INTEGER), meaning.shift_right)

_pointwise("eq", "x == y; false where either is NaN", _same(ORDERED, BOOL), np.equal)
_pointwise("ne", "x != y; true where either is NaN", _same(ORDERED, BOOL), np.not_equal)
_pointwise("lt", "x < y; false where either is NaN", _same(ORDERED, BOOL), np.less)
_pointwise("le", "x <= y; false where either is NaN", _same(ORDERED, BOOL), np.less_equal)
_pointwise("gt", "x > y; false where either is NaN", _same(ORDERED, BOOL), np.greater)
_pointwise("ge", "x >= y; false where either is NaN", _same(ORDERED, BOOL), np.greater_equal)

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
        _select,
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
        _declared,
        evaluate=meaning.cast,
        error=errors.total,
    )
)

# -- values from nothing -------------------------------------------------------------------------------------------

define(OpSpec("constant", "a number", (), _constant, (("value", "value"),), evaluate=meaning.constant))
define(OpSpec("argument", "a scalar argument", (), _argument, (("scalar", "scalar"),), evaluate=meaning.argument))
define(
    OpSpec(
        "index",
        "the value of an integer form: program ids, loop counters, lane numbers and sizes are all of this kind",
        (),
        _index,
        (("form", "form"),),
        evaluate=meaning.index,
    )
)
define(
    OpSpec(
        "in_bounds",
        "whether all bounds hold",
        (),
        _in_bounds,
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
        _broadcast,
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
        _reduce,
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
        _dot,
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
        _reshape,
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
        _load,
        (("buffer", "buffer"), ("index", "forms"), ("bounds", "bounds"), ("fill", "value")),
        optional=("bounds", "fill"),
        effect="read",
        padding="predicated",
        evaluate=meaning.load,
    )
)
define(
    OpSpec(
        "store",
        "write a box: one index form a dimension. Lanes outside `bounds`, and invalid ones, are left as they are",
        ("value",),
        _store,
        (("buffer", "buffer"), ("index", "forms"), ("bounds", "bounds")),
        optional=("bounds",),
        effect="write",
        padding="predicated",
        evaluate=meaning.store,
    )
)

# -- control -------------------------------------------------------------------------------------------------------

define(
    OpSpec(
        "for",
        "run the body for each point of a loop axis in order, carrying values from one iteration to the next",
        ("*",),
        _for,
        (("axis", "axis"),),
        regions=1,
        padding="region",
        evaluate=meaning.loop,
    )
)
define(OpSpec("yield", "what a region gives", ("*",), _nothing, padding="region"))


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
