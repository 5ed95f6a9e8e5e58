"""What each operation of the language becomes: one entry a function of `kdsl/lang`.

The larger families have files of their own: `products.py`, `along_axes.py`, `randomness.py`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kdsl.frontends.python import along_axes, products, randomness
from kdsl.frontends.python.accesses import Entry
from kdsl.frontends.python.given import Call, Handler
from kdsl.frontends.python.lifting import common_dtype
from kdsl.frontends.python.values import GridOf, IndexVariable, RangeOf, form_of
from kdsl.ir.dtypes import BF16, BOOL, F16, F32, I32
from kdsl.ir.expr import Expr, symbol, wrap
from kdsl.ir.kernel import Axis, Text, Value
from kdsl.lang import dims, functions, lanes, operations, random

if TYPE_CHECKING:
    from kdsl.frontends.python.trace import Tracer

# Functions of `kdsl/lang/functions.py` whose op has another name; the others are called as their op.
OP_NAMES: dict[Callable[..., Any], str] = {
    functions.fmax: "maxnum", functions.fmin: "minnum", functions.isnan: "is_nan", functions.isinf: "is_inf",
    functions.isfinite: "is_finite",
}  # fmt: skip

REDUCTIONS: dict[Callable[..., Any], str] = {
    operations.sum: "add", operations.prod: "mul", operations.max: "maximum", operations.min: "minimum",
    operations.any: "or", operations.all: "and", operations.argmax: "argmax", operations.argmin: "argmin",
}  # fmt: skip


def is_intrinsic(function: Any) -> bool:
    try:
        return function in ELEMENTWISE or function in REDUCTIONS or function in OTHERS
    except TypeError:  # unhashable, so not a function
        return False


def call(trace: Tracer, node: ast.Call, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Trace a call of a language operation. Raises KdslError."""
    title = f"kdsl.{function.__name__}"
    signature = inspect.signature(function)
    try:
        things = signature.bind(*arguments, **keywords)
        nodes = signature.bind(*node.args, **{str(item.arg): item.value for item in node.keywords})
    except TypeError as error:
        trace.error(node, "K0104", what=f"{title}: {error}")
    things.apply_defaults()
    given = Call(trace, title, node, things.arguments, nodes.arguments)
    if function in OTHERS:
        return OTHERS[function](given)
    if function in REDUCTIONS:
        return reduction(given, REDUCTIONS[function])
    for name, thing in given.things.items():
        trace.operand(given.where(name), thing)
    return trace.lift.apply(ELEMENTWISE[function], list(given.things.values()), title)


# -- values --------------------------------------------------------------------------------------------------------


def zeros(given: Call) -> Value:
    return _filled(given, 0)


def full(given: Call) -> Value:
    given.trace.operand(given.where("value"), given["value"])
    return _filled(given, given["value"])


def _filled(given: Call, value: Any) -> Value:
    trace, names = given.trace, given.axes("axes")
    constant = trace.lift.value(value, trace.dtype_of(given["dtype"], given.where("dtype")))
    return trace.lift.emit("broadcast", [constant], {"axes": trace.builder.kernel.order(names)}, title=given.title)


def cast(given: Call) -> Value:
    attributes: dict[str, Any] = {}
    if given.word("rounding", ("nearest", "zero")) != "nearest":
        attributes["rounding"] = given["rounding"]
    if given.flag("saturate"):
        attributes["saturate"] = True
    if not attributes:
        return convert(given.trace, (given.where("x"), given["x"]), (given.where("dtype"), given["dtype"]))
    dtype = given.trace.dtype_of(given["dtype"], given.where("dtype"))
    return given.trace.lift.emit("cast", [given.value("x")], attributes, title=given.title, dtype=dtype)


def convert(trace: Tracer, operand: Entry, dtype: Entry) -> Value:
    """`x.to(dtype)` and `kdsl.cast(x, dtype)`."""
    trace.operand(*operand)
    return trace.lift.cast(trace.lift.value(operand[1]), trace.dtype_of(dtype[1], dtype[0]))


def bitcast(given: Call) -> Value:
    dtype = given.trace.dtype_of(given["dtype"], given.where("dtype"))
    return given.trace.lift.emit("bitcast", [given.value("x")], title=given.title, dtype=dtype)


def where(given: Call) -> Value:
    trace = given.trace
    for name in ("condition", "x", "y"):
        trace.operand(given.where(name), given[name])
    condition = trace.lift.value(given["condition"])
    if condition.dtype != BOOL:
        problem = f"the condition is {condition.dtype}, not bool"
        trace.error(given.where("condition"), "K0206", operation=given.title, problem=problem)
    dtype = common_dtype([given["x"], given["y"]], trace.builder.location)
    arms = [trace.lift.value(given[name], dtype) for name in ("x", "y")]
    return trace.lift.emit("select", [condition, *arms], title=given.title)


def reduction(given: Call, combine: str) -> Value:
    trace, node = given.trace, given.where("x")
    value = given.value("x")
    if combine in ("or", "and") and value.dtype != BOOL:
        trace.error(node, "K0206", operation=given.title, problem=f"takes a bool tile, not {value.dtype}")
    if combine == "add" and value.dtype == BOOL:
        value = trace.lift.cast(value, I32)  # how many are true
    axes = given.axes("over")
    is_place = combine in ("argmax", "argmin")
    if is_place and len(axes) != 1:
        trace.error(given.where("over"), "K0213", thing=f"{trace.quote(given.where('over'))} (several axes)")
    dtype = value.dtype
    if len(axes) > 1 and combine in ("add", "mul") and dtype in (F16, BF16):
        value = trace.lift.cast(value, F32)  # rounded once, not once an axis
    for name in axes:
        given.varies_over(name, value, "x")
        value = trace.lift.emit("reduce", [value], {"axis": name, "combine": combine}, title=given.title)
    if not is_place:
        return trace.lift.cast(value, dtype)
    # The op counts lanes; the author means places in the dimension.
    ((_, axis),) = given.entries("over")
    start = axis.start if isinstance(axis, IndexVariable) else wrap(0)
    return value if start.constant == 0 else trace.lift.apply("add", [value, start], given.title)


# -- axes ----------------------------------------------------------------------------------------------------------


def new_axis(given: Call) -> IndexVariable:
    trace, extent, node, name = given.trace, given["extent"], given.where("extent"), given["name"]
    trace.no_tile_size(node, extent)
    size = form_of(extent)
    if size is None or not size.symbols <= trace.signature.sizes.keys() or (size.constant or 0) < 0:
        what = f"{trace.quote(node, extent)} as the extent of an axis, which is made of sizes and numbers"
        trace.error(node, "K0104", what=what)
    if not isinstance(name, str) or not name.isidentifier():
        trace.error(given.where("name"), "K0104", what=f"{trace.quote(given.where('name'))} as the name of an axis")
    axis = trace.builder.add_axis(Axis(trace.axis_name(name), "tile", size))
    return IndexVariable(axis.name, symbol(axis.name), None, axis.name, wrap(0), size, size, wrap(0))


def reshape(given: Call) -> Value:
    trace, node, value = given.trace, given.where("x"), given.value("x")
    source, target = given.axes("source"), given.axes("target")
    kernel = trace.builder.kernel  # with the axes that were just met
    missing = [name for name in source if name not in kernel.tile_axes(value)]
    if missing:
        problem = f"{trace.quote(node)} does not vary over {trace.shown_axes(missing)}"
        trace.error(node, "K0215", operation=given.title, problem=problem)
    ragged = [name for name in (*source, *target) if kernel.axis(name).bounds]
    if ragged:
        problem = f"not all lanes of {trace.shown_axes(ragged)} are valid"
        trace.error(given.node, "K0215", operation=given.title, problem=problem)
    return given.emit("reshape", [value], {"source": source, "target": target}, "K0215")


def grid(given: Call) -> GridOf:
    return GridOf(given["axes"])


def integers(given: Call) -> RangeOf:
    """`kdsl.range`: limits may be known only when the kernel runs, the step is a positive size."""
    trace, step = given.trace, form_of(given["step"])
    trace.no_tile_size(given.where("step"), given["step"])
    if step is None or not step.symbols <= trace.fixed() or (step.constant is not None and step.constant < 1):
        what = f"{trace.quote(given.where('step'), given['step'])} as a step, which is a positive number or size"
        trace.error(given.where("step"), "K0104", what=what)
    start, stop = (trace.limit(given.where(name), given[name]) for name in ("start", "stop"))
    return RangeOf(start, stop, step)


def program_id(given: Call) -> Expr:
    variable = given["variable"]
    if not isinstance(variable, IndexVariable):
        thing = given.trace.quote(given.where("variable"), variable)
        given.trace.error(given.where("variable"), "K0213", thing=thing)
    return variable.block


# -- reports -------------------------------------------------------------------------------------------------------


def check(given: Call) -> None:
    condition = given.value("condition")
    if condition.dtype != BOOL:
        problem = f"the condition is {condition.dtype}, not bool"
        given.trace.error(given.where("condition"), "K0206", operation=given.title, problem=problem)
    given.trace.builder.effect("assert", (condition,), {"message": _message(given)})


def show(given: Call) -> None:
    values = [given.trace.lift.value(thing) for thing in given["values"]]
    given.trace.builder.effect("print", values, {"message": _message(given)})


def _message(given: Call) -> Text:
    if not isinstance(given["message"], str):
        problem = f"{given.trace.quote(given.where('message'), given['message'])} is no text"
        given.trace.error(given.where("message"), "K0220", operation=given.title, problem=problem)
    return Text(given["message"])


ELEMENTWISE: dict[Callable[..., Any], str] = {
    function: OP_NAMES.get(function, name)
    for name, function in vars(functions).items()
    if inspect.isfunction(function) and function is not functions.bitcast
}

OTHERS: dict[Callable[..., Any], Handler] = {
    operations.zeros: zeros, operations.full: full, operations.cast: cast, operations.where: where,
    functions.bitcast: bitcast, operations.dot: products.dot, operations.dot_scaled: products.dot_scaled,
    operations.axis: new_axis, operations.reshape: reshape, operations.program_id: program_id,
    operations.check: check, operations.print: show, dims.grid: grid, dims.range: integers,
    lanes.scan: along_axes.scan, lanes.cumsum: along_axes.cumsum, lanes.cumprod: along_axes.cumprod,
    lanes.cummax: along_axes.cummax, lanes.reduce: along_axes.reduce, lanes.sort: along_axes.sort,
    lanes.associative_scan: along_axes.associative_scan, lanes.argsort: along_axes.argsort,
    lanes.topk: along_axes.topk, lanes.gather: along_axes.gather, lanes.flip: along_axes.flip,
    lanes.concat: along_axes.concat, lanes.join: along_axes.join, lanes.split: along_axes.split,
    lanes.relabel: along_axes.relabel, lanes.histogram: along_axes.histogram,
    random.random_bits: randomness.random_bits, random.uniform: randomness.uniform, random.normal: randomness.normal,
}  # fmt: skip
