"""Batched evaluation: the programs of a parallel grid in boxes, op by op for all programs of a box at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from kdsl.diagnostics import KdslError
from kdsl.interpreter.grid import Box, Order, boxes, grid
from kdsl.interpreter.memory import Poison, bound_extent, take_arguments, worst
from kdsl.interpreter.program import evaluate
from kdsl.ir.kernel import Kernel, Value, walk
from kdsl.ir.meaning import Array

# The largest value of a box. What fits a core's second-level cache several times over is faster than larger boxes, and
# programs that are near each other take as many turns of a loop.
BOX_BYTES = 1 << 20

Evaluate = Callable[[Box], None]


def run(
    kernel: Kernel, arguments: Mapping[str, Any], poison: Poison = worst, order: Order = "forward"
) -> dict[str, Array]:
    """Run a bound kernel box by box; as `kdsl.interpreter.run`. The grid must be parallel: `kdsl.analysis.parallel`."""
    memory: dict[str, Array] = {}

    def start() -> Evaluate:
        fresh, scalars = take_arguments(kernel, arguments, poison)
        memory.update(fresh)
        return lambda box: evaluate(kernel, memory, scalars, box, poison)

    in_boxes(kernel, order, programs_in_a_box(kernel), start)
    return {buffer.name: memory[buffer.name] for buffer in kernel.written}


def in_boxes(kernel: Kernel, order: Order, most: int, start: Callable[[], Evaluate]) -> None:
    """Evaluate the grid in boxes of at most `most` programs. `start` begins with fresh memory.

    Raises the fault that stepped evaluation meets first: ops before the one that failed have stored for all programs of
    its box, so the run starts again and takes that box program by program.
    """
    evaluate, faulty = start(), -1
    for count, box in enumerate(boxes(grid(kernel, order), most)):
        try:
            evaluate(box)
        except KdslError:
            if most == 1:
                raise
            faulty = count
            break
    else:
        return
    evaluate = start()
    for count, box in enumerate(boxes(grid(kernel, order), most)):
        for part in boxes(box, 1) if count == faulty else [box]:
            evaluate(part)
    raise AssertionError("a fault that only batched evaluation meets")


def programs_in_a_box(kernel: Kernel) -> int:
    """How many programs a box may hold so that no value exceeds BOX_BYTES; at least one."""
    values = (value for op in walk(kernel.body) for value in op.results)
    arguments = (value for op in walk(kernel.body) for region in op.regions for value in region.arguments)
    largest = max((_bytes(kernel, value) for value in (*values, *arguments)), default=1)
    return max(1, BOX_BYTES // max(1, largest))


def _bytes(kernel: Kernel, value: Value) -> int:
    lanes = math.prod(bound_extent(kernel.axis(name).extent) for name in kernel.tile_axes(value))
    return lanes * value.dtype.numpy.itemsize
