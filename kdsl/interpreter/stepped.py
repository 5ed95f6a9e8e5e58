"""Stepped evaluation: one program of the grid at a time, first axis outermost, ops in the order of the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kdsl.interpreter.grid import Order, points
from kdsl.interpreter.memory import Poison, take_arguments, worst
from kdsl.interpreter.program import Program, evaluate
from kdsl.ir.kernel import Kernel
from kdsl.ir.meaning import Array

__all__ = ["Poison", "Program", "points", "run", "take_arguments", "worst"]


def run(
    kernel: Kernel, arguments: Mapping[str, Any], poison: Poison = worst, order: Order = "forward"
) -> dict[str, Array]:
    """Run a bound kernel program by program; as `kdsl.interpreter.run`."""
    memory, scalars = take_arguments(kernel, arguments, poison)
    for point in points(kernel, order):
        evaluate(kernel, memory, scalars, point, poison)
    return {buffer.name: memory[buffer.name] for buffer in kernel.written}
