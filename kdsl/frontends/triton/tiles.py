"""Reductions and products of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kdsl.frontends.triton.axes import shape
from kdsl.frontends.triton.module import Operation
from kdsl.frontends.triton.scope import Scope
from kdsl.frontends.triton.signature import plain, refusal
from kdsl.ir.kernel import Region, Value

REDUCTIONS = {"arith.addf": "add", "arith.addi": "add", "arith.maximumf": "maximum", "arith.minimumf": "minimum"}
REDUCTIONS |= {"arith.maxsi": "maximum", "arith.minsi": "minimum", "arith.mulf": "mul", "arith.muli": "mul"}


def reduce(scope: Scope, operation: Operation) -> None:
    place, body = operation.attributes["axis"], operation.body
    first = operation.operands[0]
    assert isinstance(place, int)
    axis = scope.axis(first, place)
    sources = [scope.operand(name, first) for name in operation.operands]
    if axis is None:
        for result, value in zip(operation.results, sources, strict=True):
            scope.meanings[result] = value
        return
    sources = [scope.spread(value, axis) for value in sources]
    combine, *rest = body.operations
    if combine.name in REDUCTIONS and len(rest) == 1 and set(combine.operands) == set(body.arguments):
        attributes = {"axis": axis, "combine": REDUCTIONS[combine.name]}
        results: Sequence[Value] = [scope.builder.emit("reduce", sources, attributes)]
    else:
        results = _reduce_by(scope, operation, sources, axis)
    for name, value in zip(operation.results, results, strict=True):
        kept = [each for d, each in enumerate(scope.axes(first)) if d != place]
        scope.meanings[name] = scope.align(value, kept, scope.axes(name)) if shape(name) else value


def _reduce_by(scope: Scope, operation: Operation, sources: Sequence[Value], axis: str) -> Sequence[Value]:
    kernel = scope.builder.kernel
    axes = kernel.order(name for value in sources for name in value.axes)
    arguments = []
    with scope.builder.region() as ops:
        for name, source in zip(operation.body.arguments, [*sources, *sources], strict=True):
            argument = Value(scope.builder.fresh(plain(name.title or "x")), source.dtype, axes)
            scope.meanings[name] = argument
            arguments.append(argument)
        *body, end = operation.body.operations
        scope.read(scope, replace(operation.body, operations=tuple(body)))
        scope.builder.effect("yield", [scope.operand(name) for name in end.operands], {})
    region = Region(tuple(arguments), tuple(ops))
    hints = [plain(name.title or "reduced") for name in operation.results]
    return scope.builder.emit_all("reduce_by", sources, {"axis": axis}, hints, [region])


def dot(scope: Scope, operation: Operation) -> None:
    left, right, accumulator = operation.operands
    *batch, rows, columns = scope.axes(operation.result)
    precision = str(operation.attributes.get("inputPrecision", "ieee"))
    inner = scope.axis(left, len(batch) + 1)
    if inner is None or inner in (*batch, rows, columns):
        inner = scope.new_axis("inner", shape(left)[-1])
    a = scope.align(scope.operand(left), scope.axes(left), [*batch, rows, inner])
    b = scope.align(scope.operand(right), scope.axes(right), [*batch, inner, columns])
    attributes = {"axis": inner, "precision": precision}
    product = scope.builder.emit("dot", [scope.spread(a, inner), scope.spread(b, inner)], attributes)
    total = scope.operand(accumulator, operation.result)
    if total.dtype != product.dtype:
        raise refusal(f"tt.dot with an accumulator of {total.dtype}", operation)
    scope.define(operation.result, scope.builder.emit("add", [total, product]))
