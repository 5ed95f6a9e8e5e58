"""What each operation of the language becomes: one entry a function of `kdsl/lang/operations.py`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kdsl.frontends.python.accesses import Entry
from kdsl.frontends.python.lifting import common_dtype
from kdsl.frontends.python.values import GridOf, IndexVariable, form_of
from kdsl.ir.dtypes import BF16, BOOL, F16, F32, I32
from kdsl.ir.expr import symbol, wrap
from kdsl.ir.kernel import Axis, Value
from kdsl.ir.type_rules import OpTypeError
from kdsl.lang import dims, operations

if TYPE_CHECKING:
    from kdsl.frontends.python.expressions import Expressions


@dataclass(frozen=True)
class Call:
    """A call of an operation: what is given for each parameter, and where that is written."""

    title: str
    node: ast.Call
    things: Mapping[str, Any]
    nodes: Mapping[str, ast.expr]

    def __getitem__(self, name: str) -> Any:
        return self.things[name]

    def where(self, name: str) -> ast.expr:
        return self.nodes.get(name, self.node)


Handler = Callable[["Expressions", Call], Any]

ELEMENTWISE: dict[Callable[..., Any], str] = {
    operations.maximum: "maximum", operations.minimum: "minimum", operations.exp: "exp", operations.exp2: "exp2",
    operations.log: "log", operations.log2: "log2", operations.sqrt: "sqrt", operations.rsqrt: "rsqrt",
    operations.sin: "sin", operations.cos: "cos", operations.tanh: "tanh", operations.erf: "erf",
    operations.sigmoid: "sigmoid", operations.floor: "floor", operations.ceil: "ceil", operations.abs: "abs",
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


def call(
    trace: Expressions, node: ast.Call, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Trace a call of a language operation. Raises KdslError."""
    title = f"kdsl.{function.__name__}"
    signature = inspect.signature(function)
    try:
        things = signature.bind(*arguments, **keywords)
        nodes = signature.bind(*node.args, **{str(item.arg): item.value for item in node.keywords})
    except TypeError as error:
        trace.error(node, "K0104", what=f"{title}: {error}")
    things.apply_defaults()
    given = Call(title, node, things.arguments, nodes.arguments)
    if function in OTHERS:
        return OTHERS[function](trace, given)
    if function in REDUCTIONS:
        return reduction(trace, given, REDUCTIONS[function])
    for name, thing in given.things.items():
        trace.operand(given.where(name), thing)
    return trace.lift.apply(ELEMENTWISE[function], list(given.things.values()), title)


def axes_of(trace: Expressions, given: Call, name: str) -> list[tuple[str, Any, ast.AST]]:
    """The axes that an argument names: each with the thing it was given as and its place."""
    axes, node = given[name], given.where(name)
    if not isinstance(axes, tuple | list):
        pairs: list[Entry] = [(node, axes)]
    elif isinstance(node, ast.Tuple | ast.List) and len(node.elts) == len(axes):
        pairs = list(zip(node.elts, axes, strict=True))
    else:
        pairs = [(node, axis) for axis in axes]
    return [(trace.axis_of(axis, place), axis, place) for place, axis in pairs]


def zeros(trace: Expressions, given: Call) -> Value:
    return _filled(trace, given, 0)


def full(trace: Expressions, given: Call) -> Value:
    trace.operand(given.where("value"), given["value"])
    return _filled(trace, given, given["value"])


def _filled(trace: Expressions, given: Call, value: Any) -> Value:
    names = tuple(name for name, _, _ in axes_of(trace, given, "axes"))
    dtype = trace.dtype_of(given["dtype"], given.where("dtype"))
    constant = trace.lift.value(value, dtype)
    return trace.lift.emit("broadcast", [constant], {"axes": trace.builder.kernel.order(names)}, title=given.title)


def cast(trace: Expressions, given: Call) -> Value:
    return convert(trace, (given.where("x"), given["x"]), (given.where("dtype"), given["dtype"]))


def convert(trace: Expressions, operand: Entry, dtype: Entry) -> Value:
    """`x.to(dtype)` and `kdsl.cast(x, dtype)`."""
    trace.operand(*operand)
    return trace.lift.cast(trace.lift.value(operand[1]), trace.dtype_of(dtype[1], dtype[0]))


def where(trace: Expressions, given: Call) -> Value:
    for name in ("condition", "x", "y"):
        trace.operand(given.where(name), given[name])
    condition = trace.lift.value(given["condition"])
    if condition.dtype != BOOL:
        problem = f"the condition is {condition.dtype}, not bool"
        trace.error(given.where("condition"), "K0206", operation=given.title, problem=problem)
    dtype = common_dtype([given["x"], given["y"]], trace.builder.location)
    arms = [trace.lift.value(given[name], dtype) for name in ("x", "y")]
    return trace.lift.emit("select", [condition, *arms], title=given.title)


def reduction(trace: Expressions, given: Call, combine: str) -> Value:
    node = given.where("x")
    trace.operand(node, given["x"])
    value = trace.lift.value(given["x"])
    if combine in ("or", "and") and value.dtype != BOOL:
        trace.error(node, "K0206", operation=given.title, problem=f"takes a bool tile, not {value.dtype}")
    if combine == "add" and value.dtype == BOOL:
        value = trace.lift.cast(value, I32)  # how many are true
    axes = axes_of(trace, given, "over")
    is_place = combine in ("argmax", "argmin")
    if is_place and len(axes) != 1:
        trace.error(given.where("over"), "K0213", thing=f"{trace.quote(given.where('over'))} (several axes)")
    dtype = value.dtype
    if len(axes) > 1 and combine in ("add", "mul") and dtype in (F16, BF16):
        value = trace.lift.cast(value, F32)  # rounded once, not once an axis
    for name, _, _ in axes:
        if name not in trace.builder.kernel.tile_axes(value):
            own = trace.shown_axes(trace.builder.kernel.tile_axes(value)) or "it has none"
            trace.error(node, "K0202", value=trace.quote(node), axis=trace.shown_axes([name]), axes=own)
        value = trace.lift.emit("reduce", [value], {"axis": name, "combine": combine}, title=given.title)
    if not is_place:
        return trace.lift.cast(value, dtype)
    # The op counts lanes; the author means places in the dimension.
    start = axes[0][1].start if isinstance(axes[0][1], IndexVariable) else wrap(0)
    return value if start.constant == 0 else trace.lift.apply("add", [value, start], given.title)


def dot(trace: Expressions, given: Call) -> Value:
    if given["precision"] != "ieee":
        problem = f"there is no precision {given['precision']!r}, only 'ieee'"
        trace.error(given.where("precision"), "K0201", problem=problem)
    for name in ("x", "y"):
        trace.operand(given.where(name), given[name])
    dtype = common_dtype([given["x"], given["y"]], trace.builder.location)
    left, right = (trace.lift.value(given[name], dtype) for name in ("x", "y"))
    tile_axes = trace.builder.kernel.tile_axes
    shared = [name for name in tile_axes(left) if name in tile_axes(right)]
    if given["over"] is None:
        if len(shared) != 1:
            problem = f"both operands vary over {trace.shown_axes(shared)}" if shared else "they share no tile axis"
            trace.error(given.node, "K0201", problem=problem)
        axis = shared[0]
    else:
        axis = trace.axis_of(given["over"], given.where("over"))
        for name, value in (("x", left), ("y", right)):
            if axis not in tile_axes(value):
                problem = f"{trace.quote(given.where(name))} does not vary over {trace.shown_axes([axis])}"
                trace.error(given.where(name), "K0201", problem=problem)
        others = trace.shown_axes(name for name in shared if name != axis)
        if others:
            trace.error(given.node, "K0201", problem=f"both operands also vary over {others}")
    try:
        return trace.builder.emit("dot", (left, right), {"axis": axis, "precision": given["precision"]})
    except OpTypeError as error:
        trace.error(given.node, "K0201", problem=error)


def new_axis(trace: Expressions, given: Call) -> IndexVariable:
    extent, node, name = given["extent"], given.where("extent"), given["name"]
    trace.no_tile_size(node, extent)
    size = form_of(extent)
    if size is None or not size.symbols <= trace.signature.sizes.keys() or (size.constant or 0) < 0:
        what = f"{trace.quote(node, extent)} as the extent of an axis, which is made of sizes and numbers"
        trace.error(node, "K0104", what=what)
    if not isinstance(name, str) or not name.isidentifier():
        trace.error(given.where("name"), "K0104", what=f"{trace.quote(given.where('name'))} as the name of an axis")
    axis = trace.builder.add_axis(Axis(trace.axis_name(name), "tile", size))
    return IndexVariable(axis.name, symbol(axis.name), None, axis.name, wrap(0), size, size)


def reshape(trace: Expressions, given: Call) -> Value:
    node = given.where("x")
    trace.operand(node, given["x"])
    value = trace.lift.value(given["x"])
    source, target = (tuple(name for name, _, _ in axes_of(trace, given, which)) for which in ("source", "target"))
    kernel = trace.builder.kernel  # with the axes that were just met
    missing = [name for name in source if name not in kernel.tile_axes(value)]
    if missing:
        problem = f"{trace.quote(node)} does not vary over {trace.shown_axes(missing)}"
        trace.error(node, "K0215", problem=problem)
    ragged = [name for name in (*source, *target) if kernel.axis(name).bounds]
    if ragged:
        trace.error(given.node, "K0215", problem=f"not all lanes of {trace.shown_axes(ragged)} are valid")
    try:
        return trace.builder.emit("reshape", (value,), {"source": source, "target": target})
    except OpTypeError as error:
        trace.error(given.node, "K0215", problem=error)


def grid(trace: Expressions, given: Call) -> GridOf:
    return GridOf(given["axes"])


OTHERS: dict[Callable[..., Any], Handler] = {
    operations.zeros: zeros, operations.full: full, operations.cast: cast, operations.where: where,
    operations.dot: dot, operations.axis: new_axis, operations.reshape: reshape, dims.grid: grid,
}  # fmt: skip
