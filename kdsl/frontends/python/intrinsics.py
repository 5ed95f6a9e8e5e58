"""What each operation of the language becomes: one entry a function of `kdsl/lang/operations.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kdsl.diagnostics import fail
from kdsl.frontends.python.lifting import common_dtype, is_operand
from kdsl.frontends.python.values import GridOf, IndexVariable, form_of
from kdsl.ir.dtypes import BOOL
from kdsl.ir.expr import symbol, wrap
from kdsl.ir.kernel import Axis, Value
from kdsl.ir.ops import OpTypeError
from kdsl.lang import dims, operations

if TYPE_CHECKING:
    from kdsl.frontends.python.expressions import Expressions

Handler = Callable[..., Any]

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


def zeros(trace: Expressions, axes: Sequence[Any], dtype: Any) -> Value:
    return full(trace, axes, 0, dtype)


def full(trace: Expressions, axes: Sequence[Any], value: Any, dtype: Any) -> Value:
    names = tuple(trace.axis_of(axis) for axis in _sequence(axes))
    constant = trace.lift.value(value, trace.dtype_of(dtype))
    return trace.builder.emit("broadcast", (constant,), {"axes": trace.builder.kernel.order(names)})


def cast(trace: Expressions, x: Any, dtype: Any) -> Value:
    return trace.lift.value(trace.lift.value(x), trace.dtype_of(dtype))


def where(trace: Expressions, condition: Any, x: Any, y: Any) -> Value:
    assert trace.builder.location is not None
    dtype = common_dtype([x, y], trace.builder.location)
    chosen = trace.lift.value(condition)
    return trace.lift.emit("select", [chosen, trace.lift.value(x, dtype), trace.lift.value(y, dtype)], title="where")


def reduction(trace: Expressions, combine: str, title: str, x: Any, over: Any) -> Value:
    value = trace.lift.value(x)
    for axis in _sequence(over):
        name = trace.axis_of(axis)
        if name not in value.axes:
            axes = ", ".join(trace.builder.kernel.tile_axes(value)) or "it has none"
            raise fail("K0202", trace.builder.location, value=trace.spell(x), axis=name, axes=axes)
        value = trace.lift.emit("reduce", [value], {"axis": name, "combine": combine}, title=title)
        if combine in ("argmax", "argmin"):
            # The op counts lanes; the author means places in the dimension.
            start = axis.start if isinstance(axis, IndexVariable) else wrap(0)
            value = value if start.constant == 0 else trace.lift.apply("add", [value, start])
    return value


def dot(trace: Expressions, x: Any, y: Any, over: Any = None, precision: str = "ieee") -> Value:
    if precision != "ieee":
        raise fail("K0201", trace.builder.location, problem=f"there is no precision {precision!r}, only 'ieee' so far")
    assert trace.builder.location is not None
    dtype = common_dtype([x, y], trace.builder.location)
    left, right = trace.lift.value(x, dtype), trace.lift.value(y, dtype)
    tile_axes = trace.builder.kernel.tile_axes
    shared = [name for name in tile_axes(left) if name in tile_axes(right)]
    if over is None and len(shared) != 1:
        problem = f"the operands share {'the axes ' + ', '.join(shared) if shared else 'no tile axis'}"
        raise fail("K0201", trace.builder.location, problem=problem)
    axis = shared[0] if over is None else trace.axis_of(over)
    try:
        return trace.builder.emit("dot", (left, right), {"axis": axis, "precision": precision})
    except OpTypeError as error:
        raise fail("K0201", trace.builder.location, problem=error) from None


def new_axis(trace: Expressions, extent: Any, name: str = "axis") -> IndexVariable:
    size = form_of(extent)
    if size is None:
        raise fail("K0104", trace.builder.location, what=f"{extent!r} is no extent")
    axis = trace.builder.add_axis(Axis(trace.axis_name(name), "tile", size))
    return IndexVariable(axis.name, symbol(axis.name), None, axis.name, wrap(0), size, size)


def reshape(trace: Expressions, x: Any, source: Sequence[Any], target: Sequence[Any]) -> Value:
    value = trace.lift.value(x)
    attributes = {
        "source": tuple(trace.axis_of(axis) for axis in _sequence(source)),
        "target": tuple(trace.axis_of(axis) for axis in _sequence(target)),
    }
    try:
        return trace.builder.emit("reshape", (value,), attributes)
    except OpTypeError as error:
        raise fail("K0215", trace.builder.location, problem=error) from None


def grid(trace: Expressions, *axes: Any) -> GridOf:
    assert trace.builder.location is not None
    return GridOf(axes, trace.builder.location)


def require(trace: Expressions, condition: Any) -> None:
    """Only reached with a compile-time condition: one on sizes is handled as a statement."""
    if not condition:
        raise fail("K0111", trace.builder.location, problem="the required condition is false")


def _sequence(things: Any) -> Sequence[Any]:
    return things if isinstance(things, tuple | list) else (things,)


OTHERS: dict[Callable[..., Any], Handler] = {
    operations.zeros: zeros, operations.full: full, operations.cast: cast, operations.where: where,
    operations.dot: dot, operations.axis: new_axis, operations.reshape: reshape, operations.require: require,
    dims.grid: grid,
}  # fmt: skip


def is_intrinsic(function: Any) -> bool:
    try:
        return function in ELEMENTWISE or function in REDUCTIONS or function in OTHERS
    except TypeError:  # unhashable, so not a function
        return False


def call(trace: Expressions, function: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Trace a call of a language operation. Raises KdslError."""
    title = f"kdsl.{function.__name__}"
    try:
        bound = inspect.signature(function).bind(*arguments, **keywords)
    except TypeError as error:
        raise fail("K0104", trace.builder.location, what=f"{title}: {error}") from None
    if function in OTHERS:
        return OTHERS[function](trace, *bound.args, **bound.kwargs)
    for name, thing in bound.arguments.items():
        if name != "over" and not is_operand(thing):
            raise fail("K0104", trace.builder.location, what=f"{title} of {trace.spell(thing)}")
    if function in REDUCTIONS:
        value = trace.lift.value(bound.arguments["x"])
        if function in (operations.any, operations.all) and value.dtype != BOOL:
            problem = f"takes a bool tile, not {value.dtype}"
            raise fail("K0206", trace.builder.location, operation=title, problem=problem)
        return reduction(trace, REDUCTIONS[function], title, value, bound.arguments["over"])
    return trace.lift.apply(ELEMENTWISE[function], list(bound.arguments.values()), title)
