"""Counted loops: `for i in range(start, stop, step)` is an axis of as many iterations, counted from zero.

Which axes a carried value varies over is found by building the body until it no longer grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kdsl.frontends.triton import pointwise
from kdsl.frontends.triton.axes import ended, shape
from kdsl.frontends.triton.module import Operation
from kdsl.frontends.triton.module import Value as Name
from kdsl.frontends.triton.scope import Pointer, Scope
from kdsl.frontends.triton.signature import plain, refusal
from kdsl.ir.dtypes import I64
from kdsl.ir.expr import symbol, wrap
from kdsl.ir.kernel import Axis, Value


def loop(scope: Scope, operation: Operation) -> None:
    """`for i in range(start, stop, step)`: as many iterations, counted from zero."""
    start, stop, step, *initial = operation.operands
    counter, *carried = operation.body.arguments
    axis = _loop_axis(scope, operation, start, stop, step, counter)
    first = [_carried(scope, name, target) for name, target in zip(initial, carried, strict=True)]
    state, used = scope.builder.snapshot(), set(scope.used)
    axes = [value.axes for value in first]
    while True:  # each turn adds axes, of which there are finitely many
        arguments = [
            Value(scope.builder.fresh(plain(name.title or "carried")), value.dtype, scope.builder.kernel.order(varies))
            for name, value, varies in zip(carried, first, axes, strict=True)
        ]
        with scope.builder.region() as ops:
            scope.define(counter, _count(scope, start, step, axis, counter))
            for name, source, argument in zip(carried, initial, arguments, strict=True):
                meaning = scope.meanings[source]
                scope.meanings[name] = Pointer(meaning.buffer, argument) if isinstance(meaning, Pointer) else argument
            body, last = ended(operation.body)
            scope.read(scope, replace(operation.body, operations=body))
            yielded = [_carried(scope, name, target) for name, target in zip(last, carried, strict=True)]
            _check_buffers(scope, operation, carried, last)
            scope.builder.effect("yield", yielded, {})
        order = scope.builder.kernel.order
        wider = [order({*known, *value.axes}) for known, value in zip(axes, yielded, strict=True)]
        if wider == axes:
            break
        axes = wider
        # Back to before the body; the tile axes that it declared stay, as dimensions have their names by now.
        tiles = [axis for axis in scope.builder.kernel.axes if axis.kind == "tile"]
        scope.builder.restore(state)
        others = [axis for axis in scope.builder.kernel.axes if axis.kind != "tile"]
        scope.builder.kernel = replace(scope.builder.kernel, axes=(*others, *tiles))
        scope.used = used | {axis.name for axis in tiles}
    hints = [plain(name.title or "carried") for name in operation.results]
    results = scope.builder.loop(axis, first, arguments, ops, hints)
    for name, source, value in zip(operation.results, carried, results, strict=True):
        value = scope.align(value, scope.axes(source), scope.axes(name))
        meaning = scope.meanings[source]
        scope.meanings[name] = Pointer(meaning.buffer, value) if isinstance(meaning, Pointer) else value


def _check_buffers(scope: Scope, operation: Operation, carried: Sequence[Name], last: Sequence[Name]) -> None:
    for name, end in zip(carried, last, strict=True):
        before, after = scope.meanings[name], scope.meanings[end]
        if isinstance(before, Pointer) and isinstance(after, Pointer) and before.buffer != after.buffer:
            raise refusal(f"a loop that goes from {before.buffer} to {after.buffer}", operation)


def _carried(scope: Scope, name: Name, target: Name) -> Value:
    """What a loop carries for a name: a value, or the offset of a pointer."""
    meaning = scope.meanings[name]
    value = scope.wide(scope.offset(meaning)) if isinstance(meaning, Pointer) else meaning
    return scope.align(value, scope.axes(name), scope.axes(target)) if shape(name) else value


def _loop_axis(scope: Scope, operation: Operation, start: Name, stop: Name, step: Name, counter: Name) -> str:
    """Declare the axis of a loop, and its extent: a number, or an integer that is named here."""
    numbers = [scope.numbers.get(name) for name in (start, stop, step)]
    hint = plain(counter.title or counter.name)
    first, last, stride = numbers
    if isinstance(stride, int) and stride <= 0:
        raise refusal("a loop whose step is not positive", operation)
    if isinstance(first, int) and isinstance(last, int) and isinstance(stride, int):
        extent = wrap(max(0, -((first - last) // stride)))
    else:
        emit = scope.builder.emit
        length = scope.operand(stop)
        if first != 0:
            length = emit("sub", [scope.wide(length), scope.wide(scope.operand(start))])
        if stride != 1:
            length = scope.wide(length)
            width = scope.wide(scope.operand(step))
            one = emit("constant", attributes={"value": 1}, dtype=I64)
            length = emit("truncdiv", [emit("add", [length, emit("sub", [width, one])]), width])
        extent = symbol(scope.builder.name_integer(scope.fresh(f"{hint}_count"), length).name)
    return scope.builder.add_axis(Axis(scope.fresh(hint), "loop", extent)).name


def _count(scope: Scope, start: Name, step: Name, axis: str, counter: Name) -> Value:
    dtype = pointwise.dtype_of(counter.type)
    assert dtype is not None
    first, stride = scope.numbers.get(start), scope.numbers.get(step)
    if isinstance(first, int) and isinstance(stride, int):
        return scope.index(wrap(first) + wrap(stride) * symbol(axis), dtype)
    turned = scope.builder.emit("mul", [scope.index(symbol(axis), dtype), scope.operand(step)])
    return scope.builder.emit("add", [scope.operand(start), turned])
