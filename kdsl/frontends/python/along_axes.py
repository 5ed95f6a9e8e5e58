"""Operations of `kdsl/lang/lanes.py`: scans, combines by a helper, sorting, and moves of lanes."""

from __future__ import annotations

from typing import Any

from kdsl.frontends.python.given import Call
from kdsl.frontends.python.lifting import common_dtype, is_operand
from kdsl.frontends.python.values import describe
from kdsl.ir.dtypes import BOOL, I32
from kdsl.ir.expr import symbol
from kdsl.ir.kernel import Op, Region, Value
from kdsl.ir.rows_orders import SCANS
from kdsl.lang.kernel import INLINE

# -- scans and combines --------------------------------------------------------------------------------------------


def scan(given: Call) -> Value:
    return _scan(given, given.word("combine", SCANS))


def cumsum(given: Call) -> Value:
    return _scan(given, "add")


def cumprod(given: Call) -> Value:
    return _scan(given, "mul")


def cummax(given: Call) -> Value:
    return _scan(given, "maximum")


def _scan(given: Call, combine: str) -> Value:
    value = given.value("x")
    if combine == "add" and value.dtype == BOOL:
        value = given.trace.lift.cast(value, I32)  # how many are true
    axis = given.own_axis("over", value)
    return given.emit("scan", [value], {"axis": axis, "combine": combine, **_reverse(given)})


def _reverse(given: Call) -> dict[str, bool]:
    return {"reverse": True} if given.flag("reverse") else {}


def reduce(given: Call) -> Any:
    return _combined(given, "reduce_by", {})


def associative_scan(given: Call) -> Any:
    return _combined(given, "scan_by", _reverse(given))


def _combined(given: Call, name: str, attributes: dict[str, bool]) -> Any:
    """An op whose region is the helper's body."""
    kernel, values = given.trace.builder.kernel, given.values("x")
    axis = given.axis("over")
    axes = kernel.order(name for value in values for name in value.axes)
    if axis not in axes:
        given.own_axis("over", values[0])
    axes = kernel.order({*axes, *kernel.with_validity(kernel.decided_along(axis, axes))})
    region = _combine_region(given, values, axes)
    return _alike(given, given.emit_all(name, values, {"axis": axis, **attributes}, (region,), "K0218"))


def _combine_region(given: Call, values: list[Value], axes: tuple[str, ...]) -> Region:
    trace, combine, node = given.trace, given["combine"], given.where("combine")
    if not getattr(combine, INLINE, False):
        problem = f"{trace.quote(node, combine)} is no function decorated with @kdsl.inline"
        trace.error(node, "K0218", operation=given.title, problem=problem)
    fresh = trace.builder.fresh
    sides = [tuple(Value(fresh(side), value.dtype, axes) for value in values) for side in ("left", "right")]
    with trace.builder.region() as ops:
        given_sides = [_alike(given, side) for side in sides]
        result = trace.inline(given.node, combine, given_sides, {})
        results = result if isinstance(result, tuple | list) else (result,)
        if len(results) != len(values) or not all(map(is_operand, results)):
            expected = f"{len(values)} tiles" if isinstance(given["x"], tuple | list) else "a tile"
            problem = f"the combine gives {describe(result)}, not {expected}"
            trace.error(node, "K0218", operation=given.title, problem=problem)
        trace.at(given.node)
        for place, (value, thing) in enumerate(zip(values, results, strict=True)):
            dtype = common_dtype([thing], trace.builder.location)
            if isinstance(thing, Value) and dtype != value.dtype:
                problem = f"result {place} of the combine is {dtype}, and what it combines is {value.dtype}"
                trace.error(node, "K0218", operation=given.title, problem=problem)
        final = [trace.lift.value(thing, value.dtype) for thing, value in zip(results, values, strict=True)]
        ops.append(Op("yield", tuple(final), location=trace.builder.location))
    return Region(tuple(value for side in sides for value in side), tuple(ops))


def _alike(given: Call, values: tuple[Value, ...]) -> Any:
    """A tuple if x is one, else the one value."""
    return tuple(values) if isinstance(given["x"], tuple | list) else values[0]


# -- order ---------------------------------------------------------------------------------------------------------


def sort(given: Call) -> Any:
    values = given.values("x")
    axis = given.own_axis("over", values[0])
    return _alike(given, given.emit_all("sort", values, {"axis": axis, **_descending(given)}))


def argsort(given: Call) -> Value:
    value = given.value("x")
    axis = given.own_axis("over", value)
    places = given.trace.lift.index(given.start("over") + symbol(axis))
    return given.emit_all("sort", [value, places], {"axis": axis, **_descending(given)})[1]


def _descending(given: Call) -> dict[str, bool]:
    return {"descending": True} if given.flag("descending") else {}


def topk(given: Call) -> tuple[Value, Value]:
    value = given.value("x")
    axis = given.own_axis("over", value)
    attributes = {"axis": axis, "target": given.axis("into")}
    values, lanes = given.emit_all("topk", [value], attributes, code="K0215", results=2)
    start = given.start("over")
    places = lanes if start.constant == 0 else given.trace.lift.apply("add", [lanes, start], given.title)
    return values, places


def gather(given: Call) -> Value:
    value, index = given.value("x"), given.value("index")
    return given.emit("gather", [value, index], {"axis": given.own_axis("over", value)})


def histogram(given: Call) -> Value:
    value = given.value("x")
    return given.emit("histogram", [value], {"axis": given.own_axis("over", value), "target": given.axis("into")})


# -- moves ---------------------------------------------------------------------------------------------------------


def flip(given: Call) -> Value:
    value = given.value("x")
    return given.emit("flip", [value], {"axis": given.own_axis("over", value)}, "K0215")


def concat(given: Call) -> Value:
    trace, things = given.trace, [thing for _, thing in given.entries("tiles")]
    for node, thing in given.entries("tiles"):
        trace.operand(node, thing)
    dtype = common_dtype(things, trace.builder.location)
    values = [trace.lift.value(thing, dtype) for thing in things]
    return given.emit("concat", values, {"source": given.axes("axes"), "target": given.axis("into")}, "K0215")


def join(given: Call) -> Value:
    dtype = common_dtype([given["x"], given["y"]], given.trace.builder.location)
    values = [given.value("x", dtype), given.value("y", dtype)]
    return given.emit("join", values, {"axis": given.axis("into")}, "K0215")


def split(given: Call) -> tuple[Value, ...]:
    value = given.value("x")
    return given.emit_all("split", [value], {"axis": given.own_axis("over", value)}, code="K0215", results=2)


def relabel(given: Call) -> Value:
    value = given.value("x")
    attributes = {"source": given.own_axis("source", value), "target": given.axis("target")}
    return given.emit("relabel", [value], attributes, "K0215")
