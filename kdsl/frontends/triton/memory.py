"""Loads and stores through pointers: a buffer, and an offset that `tt.addptr` adds to."""

from __future__ import annotations

from dataclasses import replace

from kdsl.frontends.triton.module import Operation
from kdsl.frontends.triton.scope import Scope


def addptr(scope: Scope, operation: Operation) -> None:
    base, step = operation.operands
    pointer = scope.pointer(base, operation.result, operation)
    offset = scope.operand(step, operation.result)
    if pointer.offset is not None:
        offset = scope.builder.emit("add", [scope.wide(pointer.offset), scope.wide(offset)])
    scope.meanings[operation.result] = replace(pointer, offset=offset)


def load(scope: Scope, operation: Operation) -> None:
    address, *others = operation.operands
    pointer = scope.pointer(address, operation.result, operation)
    operands = [scope.offset(pointer)]
    attributes: dict[str, object] = {"buffer": pointer.buffer}
    if not others:
        scope.define(operation.result, scope.builder.emit("load_at", operands, attributes))
        return
    mask = scope.operand(others[0], operation.result)
    dtype = scope.builder.kernel.buffer(pointer.buffer).dtype
    zero: object = False if dtype.kind == "bool" else 0.0 if dtype.is_float else 0
    fill = scope.numbers.get(others[1]) if len(others) > 1 else zero
    attributes |= {"masked": True, "fill": zero if fill is None else fill}
    result = scope.builder.emit("load_at", [*operands, mask], attributes)
    if fill is None:
        result = scope.builder.emit("select", [mask, result, scope.operand(others[1], operation.result)])
    scope.define(operation.result, result)


def store(scope: Scope, operation: Operation) -> None:
    address, value, *mask = operation.operands
    pointer = scope.pointer(address, address, operation)
    operands = [scope.operand(value, address), scope.offset(pointer)]
    operands += [scope.operand(each, address) for each in mask]
    attributes: dict[str, object] = {"buffer": pointer.buffer} | ({"masked": True} if mask else {})
    scope.builder.effect("store_at", operands, attributes)
