"""Branches taken when the kernel runs: both ways are traced, and the names that they assign meet after them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kdsl.frontends.python.lifting import common_dtype, is_operand, is_weak
from kdsl.frontends.python.loops import assigned_names
from kdsl.frontends.python.values import Gone, describe
from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Op, Region, Value

if TYPE_CHECKING:
    from kdsl.frontends.python.trace import Tracer


def branch(trace: Tracer, node: ast.If, condition: Value) -> None:
    """Trace `if condition: ... else: ...` into the kernel. Raises KdslError."""
    before, sides = dict(trace.names), []
    for statements in (node.body, node.orelse):
        trace.names = dict(before)
        with trace.builder.region() as ops:
            trace.loops += 1
            trace.block(statements)
            trace.loops -= 1
        sides.append((trace.names, ops))
    trace.names = dict(before)
    trace.at(node)
    (then, then_ops), (otherwise, other_ops) = sides
    dtypes: dict[str, DType] = {}
    for name in assigned_names([*node.body, *node.orelse]):
        if name not in then and name not in otherwise:
            continue  # assigned only where a compile-time condition does not lead
        ways = then.get(name), otherwise.get(name)
        if _same(*ways):
            trace.names[name] = ways[0]
        elif all(map(is_operand, ways)):
            dtypes[name] = _common(trace, node, name, *ways)
        else:
            trace.names[name] = Gone("not both ways of a branch that is taken when the kernel runs give it a value")
    regions = tuple(_region(trace, ops, names, dtypes) for names, ops in ((then, then_ops), (otherwise, other_ops)))
    results = trace.builder.emit_all("if", [condition], {}, list(dtypes), regions)
    trace.names |= dict(zip(dtypes, results, strict=True))


def without_returns(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a grid with the rest after `if ...: ...; return` as its `else`: a program that returns is done."""
    for place, statement in enumerate(body):
        if isinstance(statement, ast.If) and not statement.orelse and _returns(statement.body[-1]):
            done: list[ast.stmt] = statement.body[:-1] or [ast.copy_location(ast.Pass(), statement)]
            whole = ast.If(statement.test, done, without_returns(body[place + 1 :]))
            return [*body[:place], ast.copy_location(whole, statement)]
    return list(body)


def _returns(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Return) and statement.value is None


def _same(first: Any, second: Any) -> bool:
    """Whether both ways leave a name as it was, or give it the same number."""
    return first is second or (is_weak(first) and type(first) is type(second) and first == second)


def _common(trace: Tracer, node: ast.If, name: str, first: Any, second: Any) -> DType:
    """The dtype of a name after the branch: both ways have it, or one gives a Python number that can take it."""
    dtype = common_dtype([first, second], trace.builder.location)
    for thing in (first, second):
        if not is_weak(thing) and common_dtype([thing], trace.builder.location) != dtype:
            ends = [describe(thing) if is_weak(thing) else common_dtype([thing], None) for thing in (first, second)]
            trace.error(node.test, "K0219", name=name, first=ends[0], second=ends[1])
    return dtype


def _region(trace: Tracer, ops: list[Op], names: dict[str, Any], dtypes: dict[str, DType]) -> Region:
    with trace.builder.region() as more, trace.stating(None):
        final = [trace.lift.value(names[name], dtype) for name, dtype in dtypes.items()]
        more.append(Op("yield", tuple(final), location=trace.builder.location))
    return Region((), (*ops, *more))
