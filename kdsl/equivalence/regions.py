"""How error bounds pass through ops with regions: the regions run on values and errors at once.

A loop or branch carries the errors beside the values. A combine (Welford, online softmax, a recurrence) does so too, in
the oracle's order: neighbours first. A target may group n lanes otherwise, and then a lane takes part in up to n - 1
combines, where the oracle has log2 n. So what each op of the region rounds counts n - 1 times (by the model's rule for
n - 1 roundings), and a sum rounds by the sizes of its operands, for in another order they may not cancel. For sums and
products that is at least the classical bound over all orders, gamma_(n-1) of the sum of sizes; for others it is a
model: that no order has intermediate results far larger than those that the oracle meets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kdsl.ir.dtypes import BOOL, F64
from kdsl.ir.kernel import Op, Region, Value
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS

if TYPE_CHECKING:
    from kdsl.equivalence.bounds import BoundedProgram

ERROR_OF = "error of "  # before the name of a value: that of its errors
COMBINED = frozenset({"reduce_by", "scan_by"})


def doubled(op: Op) -> Op:
    """An op whose regions carry the errors beside the values; a test of a while yields its condition alone."""
    regions = []
    for place, region in enumerate(op.regions):
        *ops, final = region.ops
        if not (op.name == "while" and place == 0):
            final = replace(final, operands=_with_errors(final.operands))
        arguments = _with_errors(region.arguments)
        if op.name in COMBINED:  # of the one side, then of the other
            half = len(region.arguments) // 2
            arguments = (*_with_errors(region.arguments[:half]), *_with_errors(region.arguments[half:]))
        regions.append(Region(arguments, (*ops, final)))
    operands = op.operands if op.name == "if" else _with_errors(op.operands)
    return replace(op, operands=operands, results=_with_errors(op.results), regions=tuple(regions))


def error_of(value: Value) -> Value:
    """The value that holds a value's errors."""
    return replace(value, name=ERROR_OF + value.name, dtype=F64)


def _with_errors(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return (*values, *map(error_of, values))


def combined(program: BoundedProgram, op: Op) -> tuple[list[Array], list[Array]]:
    """The results and their errors of a combine by a region."""
    evaluate = OPS[op.name].evaluate
    assert evaluate is not None
    twice, around = doubled(op), (program.orders, program.smooth)
    lanes = np.asarray(max(float(program.terms(op, op.regions[0].arguments[0].axes).max(initial=0)) - 1, 1.0))
    unit = 2.0**-60  # any that is small: only how often it counts matters
    program.orders = program.model.gamma(lanes, unit) / unit * (1 if program.orders is None else program.orders)
    if {inner.name for inner in op.regions[0].ops} <= _SMOOTH | _DECIDING:
        program.smooth = twice.regions[0]
    both = evaluate(program, twice, [program.values[value.name] for value in twice.operands])
    program.orders, program.smooth = around
    # No valid lane, no result: what is there means nothing, here and there alike.
    errors = [np.where(np.isnan(error), 0.0, error) for error in both[len(op.results) :]]
    return both[: len(op.results)], errors


# Functions of which a small change of an operand makes a small change.
_SMOOTH = frozenset({"constant", "yield", "add", "sub", "mul", "div", "fma", "neg", "abs", "maximum", "minimum"})
_SMOOTH |= frozenset({"precise_div", "precise_sqrt", "maxnum", "minnum", "exp", "exp2", "log", "log2", "sqrt", "rsqrt"})


# Smooth but for where rounding can flip a comparison.
_DECIDING = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "select"})


def joined(program: BoundedProgram, region: Region, arguments: Sequence[Array]) -> list[Array]:
    """One combine of smooth functions: what it rounds, and how far it moves if its arguments move by their errors, each
    alone, to first order. Op by op, m1 + (m2 - m1) / 2 would count the error of m1 three times, and n lanes n^2 times.
    Where a comparison may flip, the errors pass op by op.
    """
    count = len(arguments) // 4
    sides = [list(arguments[place : place + count]) for place in range(0, len(arguments), count)]
    (left, left_error, right, right_error), exact = sides, [np.zeros_like(error) for error in sides[1]]
    program.smooth = None
    op_by_op = program.run(region, arguments)
    flips = np.asarray(sum(_flips(program, region)))
    both = program.run(region, [*left, *exact, *right, *exact])
    program.smooth = region
    results, errors = both[: len(both) // 2], both[len(both) // 2 :]
    names = (*region.arguments[:count], *region.arguments[2 * count : 3 * count])
    given = [array.astype(np.float64) for array in (*left, *right)]
    here = _in_f64(program, region, names, given)
    moved = [[np.zeros_like(value) for value in here] for _ in given]
    for place, error in enumerate((*left_error, *right_error)):
        for end in (given[place] - error, given[place] + error) if error.any() else ():
            there = _in_f64(program, region, names, [*given[:place], end, *given[place + 1 :]])
            moved[place] = [np.fmax(far, np.abs(a - b)) for far, a, b in zip(moved[place], here, there, strict=True)]
    errors = [error + sum(column) for error, column in zip(errors, zip(*moved, strict=True), strict=True)]
    errors = [
        np.where(np.isnan(error), np.inf, np.where(flips > 0, slow, error))
        for error, slow in zip(errors, op_by_op[len(results) :], strict=True)
    ]
    return [*results, *errors]


def _flips(program: BoundedProgram, region: Region) -> Iterator[Array]:
    """For each comparison, over the axes of the arguments, how close it is to one that rounding can flip; 0 is far."""
    axes = region.arguments[0].axes
    conditions = (value for op in region.ops for value in op.results if value.dtype == BOOL)
    return (program.align(program.error(value), value.axes, axes) for value in conditions)


def _in_f64(program: BoundedProgram, region: Region, names: Sequence[Value], arrays: Sequence[Array]) -> list[Array]:
    """What the ops of a region give of its arguments in f64: of the values that it yields, without their errors."""

    def wide(values: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(value if value.dtype == BOOL else replace(value, dtype=F64) for value in values)

    ops = [replace(op, operands=wide(op.operands), results=wide(op.results)) for op in region.ops]
    ops[-1] = replace(ops[-1], operands=ops[-1].operands[: len(names) // 2])
    with program.unbounded():
        return program.run(Region(wide(names), tuple(ops)), arrays)
