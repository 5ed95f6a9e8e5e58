"""Batched evaluation: the programs of a parallel grid in boxes, op by op for all programs of a box at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from kdsl.diagnostics import KdslError
from kdsl.interpreter.grid import Order, boxes, grid
from kdsl.interpreter.memory import Poison, bound_extent, take_arguments, worst
from kdsl.interpreter.program import evaluate
from kdsl.ir.kernel import Kernel, Value, walk
from kdsl.ir.meaning import Array

# The largest value of a box. What fits a core's second-level cache several times over is faster than larger boxes, and
# programs that are near each other take as many turns of a loop.
BOX_BYTES = 1 << 20


def run(
    kernel: Kernel, arguments: Mapping[str, Any], poison: Poison = worst, order: Order = "forward"
) -> dict[str, Array]:
    """Run a bound kernel box by box; as `kdsl.interpreter.run`. The grid must be parallel: `kdsl.analysis.parallel`."""
    memory, scalars = take_arguments(kernel, arguments, poison)
    for count, box in enumerate(boxes(grid(kernel, order), programs_in_a_box(kernel))):
        try:
            evaluate(kernel, memory, scalars, box, poison)
        except KdslError:
            faulty = count
            break
    else:
        return {buffer.name: memory[buffer.name] for buffer in kernel.written}
    _run_to_fault(kernel, arguments, poison, order, faulty)


def programs_in_a_box(kernel: Kernel) -> int:
    """How many programs a box may hold so that no value exceeds BOX_BYTES; at least one."""
    values = (value for op in walk(kernel.body) for value in op.results)
    arguments = (value for op in walk(kernel.body) for region in op.regions for value in region.arguments)
    largest = max((_bytes(kernel, value) for value in (*values, *arguments)), default=1)
    return max(1, BOX_BYTES // max(1, largest))


def _bytes(kernel: Kernel, value: Value) -> int:
    lanes = math.prod(bound_extent(kernel.axis(name).extent) for name in kernel.tile_axes(value))
    return lanes * value.dtype.numpy.itemsize


def _run_to_fault(kernel: Kernel, arguments: Mapping[str, Any], poison: Poison, order: Order, faulty: int) -> NoReturn:
    """Raise the fault that stepped evaluation meets first; it is in the box of that number.

    Ops before the one that failed have stored for all programs of that box, so the run starts again.
    """
    memory, scalars = take_arguments(kernel, arguments, poison)
    for count, box in enumerate(boxes(grid(kernel, order), programs_in_a_box(kernel))):
        for part in boxes(box, 1) if count == faulty else [box]:
            evaluate(kernel, memory, scalars, part, poison)
    raise AssertionError("a fault that only batched evaluation meets")
