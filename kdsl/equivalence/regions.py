"""How error bounds pass through ops with regions: the regions run on values and errors at once.

A loop or branch carries the errors beside the values. A combine (Welford, online softmax, a recurrence) does so too, in
the oracle's order: neighbours first. A target may group n lanes otherwise, and then a lane takes part in up to n - 1
combines, where the oracle has log2 n. So what each op of the region rounds counts n - 1 times (by the model's rule for
n - 1 roundings), and a sum rounds by the sizes of its operands, for in another order they may not cancel. For sums and
products that is at least the classical bound over all orders, gamma_(n-1) of the sum of sizes; for others it is a
model: that no order has intermediate results far larger than those that the oracle meets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kdsl.ir.dtypes import F64
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
    around = program.orders
    lanes = np.asarray(max(float(program.size(op.attributes["axis"])) - 1, 1.0))
    unit = 2.0**-60  # any that is small: only how often it counts matters
    program.orders = program.model.gamma(lanes, unit) / unit * (1 if around is None else around)
    twice = doubled(op)
    both = evaluate(program, twice, [program.values[value.name] for value in twice.operands])
    program.orders = around
    # No valid lane, no result: what is there means nothing, here and there alike.
    errors = [np.where(np.isnan(error), 0.0, error) for error in both[len(op.results) :]]
    return both[: len(op.results)], errors
