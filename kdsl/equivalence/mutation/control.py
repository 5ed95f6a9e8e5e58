"""Mutators of loops, grids and branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from kdsl.equivalence.mutation.changes import Change, InPlace, on_ops, put_axis, through
from kdsl.ir.dtypes import BF16, F32
from kdsl.ir.expr import Expr, symbol
from kdsl.ir.kernel import Kernel, Op, map_expressions

_POINT = {"program": "program", "loop": "iteration", "tile": "lane"}


def last_skipped(kernel: Kernel) -> Iterator[Change]:
    """The last iteration of a loop, program of a grid or lane of a tile is not run."""
    for axis in kernel.axes:
        what = f"the last {_POINT[axis.kind]} skipped"
        yield Change(axis, what, put_axis(kernel, axis, replace(axis, extent=axis.extent - 1)))


def one_too_many(kernel: Kernel) -> Iterator[Change]:
    """An axis has one point more."""
    for axis in kernel.axes:
        what = f"one {_POINT[axis.kind]} too many"
        yield Change(axis, what, put_axis(kernel, axis, replace(axis, extent=axis.extent + 1)))


def first_skipped(kernel: Kernel) -> Iterator[Change]:
    """The first iteration of a loop, program of a grid or lane of a tile is not run."""
    for axis in kernel.axes:
        moved = map_expressions(kernel, partial(Expr.substitute, values={axis.name: symbol(axis.name) + 1}))
        skipped = replace(moved.axis(axis.name), extent=axis.extent - 1)
        yield Change(axis, f"the first {_POINT[axis.kind]} skipped", put_axis(moved, axis, skipped))


@on_ops("for", "while")
def update_lost(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """A value is carried on as it was."""
    body = op.regions[-1]
    final = body.ops[-1]
    for place, argument in enumerate(body.arguments):
        operands = (*final.operands[:place], argument, *final.operands[place + 1 :])
        yield f"carried value {place} not updated", _ending(op, [replace(final, operands=operands)])


@on_ops("for", "while")
def accumulator_narrowed(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """A value that is carried in f32 is kept in bf16 from one iteration to the next."""
    final = op.regions[-1].ops[-1]
    for place, value in enumerate(final.operands):
        if value.dtype == F32:
            yield f"carried value {place} in bf16", _ending(op, through(final, place, BF16))


def _ending(op: Op, final: list[Op]) -> Op:
    """The loop with other ops at the end of its body."""
    *tests, body = op.regions
    return replace(op, regions=(*tests, replace(body, ops=(*body.ops[:-1], *final))))


@on_ops("if")
def branches_swapped(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """Each branch runs where the other one should."""
    yield "branches swapped", replace(op, regions=op.regions[::-1])
