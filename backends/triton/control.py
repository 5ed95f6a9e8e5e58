"""Statements with a body, and those that say something: loops, branches, named integers, asserts, prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdsl.ir.kernel import Op, Region, Value, walk
from kdsl.ir.ops import is_pointwise

from .access import KINDS
from .expressions import ATOM, without_parentheses
from .lifetimes import LARGEST_EXPRESSION

if TYPE_CHECKING:
    from .emitter import Emitter


def loop(emitter: Emitter, op: Op) -> None:
    (body,), axis = op.regions, op.attributes["axis"]
    start(emitter, op, body)
    trips = without_parentheses(emitter.scope.integer(emitter.kernel.axis(axis).extent).code)
    header = f"for {emitter.scope.names['symbol', axis]} in range({trips}):"
    emitter.loops.append(axis)
    with emitter.block(header, op.regions):
        for line in emitter.scope.definitions(emitter.loops, emitter.named):
            emitter.write(line)
        emitter.region(body)
        carry(emitter, body.arguments, body.ops[-1].operands)
    emitter.loops.pop()


def start(emitter: Emitter, op: Op, body: Region) -> None:
    """Give what a loop carries its first values."""
    for argument, initial in zip(body.arguments, op.operands, strict=True):
        if not emitter.lifetimes.shared(initial, argument):
            emitter.comment(op)
            emitter.write(f"{emitter.variable(argument)} = {emitter.full(initial, emitter.layouts[argument.name])}")
    emitter.comment(op)


def carry(emitter: Emitter, targets: Sequence[Value], finals: Sequence[Value]) -> None:
    """What a region yields becomes the argument of the next iteration, or the result of the branch."""
    moves = [
        (emitter.variable(target), emitter.full(final, emitter.layouts[target.name]))
        for target, final in zip(targets, finals, strict=True)
        if not emitter.lifetimes.shared(final, target)
    ]
    names = [name for name, _ in moves]
    if any(name in value for name in names for _, value in moves):  # one needs what another overwrites
        emitter.write(f"{', '.join(names)} = {', '.join(value for _, value in moves)}")
    else:
        for name, value in moves:
            emitter.write(f"{name} = {value}")


def repeat(emitter: Emitter, op: Op) -> None:
    """`while` with the test in its head if that is an expression; else the test runs first in every iteration."""
    test, body = op.regions
    start(emitter, op, body)
    condition = test.ops[-1].operands[0]
    finals = body.ops[-1].operands
    if is_expression(emitter, test):
        for inner in test.ops[:-1]:
            emitter.texts[inner.result.name] = emitter.expression(inner)
        with emitter.block(f"while {emitter.scalar(condition)}:", op.regions):
            emitter.region(body)
            carry(emitter, body.arguments, finals)
        return
    running = emitter.scope.names.give(("running", id(op)), "running")
    emitter.write(f"{running} = tl.cast(True, tl.int1)")
    with emitter.block(f"while {running}:", op.regions):
        emitter.region(test)
        emitter.write(f"{running} = {emitter.scalar(condition)}")
        with emitter.block(f"if {running}:"):
            emitter.region(body)
            carry(emitter, body.arguments, finals)


def is_expression(emitter: Emitter, region: Region) -> bool:
    """Whether a region can be written in one place: few ops without effect, each used once."""
    *ops, end = region.ops
    uses = [value.name for inner in (*ops, end) for value in inner.operands]
    steps = [inner for inner in ops if not emitter.lifetimes.immediate(inner)]
    return len(steps) <= LARGEST_EXPRESSION and all(
        is_pointwise(inner) and uses.count(inner.result.name) == 1 for inner in steps
    )


def branch(emitter: Emitter, op: Op) -> None:
    then, otherwise = op.regions
    emitter.comment(op)
    before = set(emitter.pending)
    with emitter.block(f"if {emitter.scalar(op.operands[0])}:"):
        emitter.region(then)
        carry(emitter, op.results, then.ops[-1].operands)
    after, emitter.pending = emitter.pending, before
    with emitter.block("else:", optional=True):
        emitter.region(otherwise)
        carry(emitter, op.results, otherwise.ops[-1].operands)
    emitter.pending |= after


def let(emitter: Emitter, op: Op) -> None:
    """Name an integer, and make the offsets and masks that mention it."""
    (value,), name = op.operands, op.attributes["integer"]
    emitter.comment(op)
    text = emitter.full(value, ())
    if value.dtype.name not in ("i32", "i64"):
        text = f"tl.cast({text}, {'tl.int32' if value.dtype.bits < 32 else 'tl.int64'})"
    emitter.write(f"{emitter.scope.names['symbol', name]} = tl.maximum({text}, 0)")
    emitter.named.add(name)
    for line in emitter.scope.definitions(emitter.loops, emitter.named, name):
        emitter.write(line)


def check(emitter: Emitter, op: Op) -> None:
    emitter.comment(op)
    condition = emitter.full(op.operands[0], emitter.layouts[op.operands[0].name])
    emitter.write(f"tl.device_assert({condition}, {_quoted(op.attributes['message'])})")


def show(emitter: Emitter, op: Op) -> None:
    emitter.comment(op)
    values = []
    for value in op.operands:
        text = emitter.full_text(value, emitter.layouts[value.name])
        values.append(f"{text.within(ATOM)}.to(tl.int32)" if value.dtype.name == "bool" else text.code)
    emitter.write(f"tl.device_print({', '.join([_quoted(op.attributes['message']), *values])})")


def _quoted(message: str) -> str:
    """A literal as the formatter writes it. Triton prints ASCII only."""
    literal = json.dumps(message.encode("ascii", "backslashreplace").decode())
    if '"' not in message or "'" in message:
        return literal
    return "'" + literal[1:-1].replace('\\"', '"') + "'"


def accesses(regions: Sequence[Region]) -> set[tuple[str, str]]:
    """What regions do to memory: (load or store, buffer)."""
    return {(KINDS[op.name], op.attributes["buffer"]) for region in regions for op in walk(region) if op.name in KINDS}
