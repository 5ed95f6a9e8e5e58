"""Stepped evaluation: one program of the grid at a time, first axis outermost, ops in the order of the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kdsl.interpreter.memory import Poison, take_arguments, worst
from kdsl.interpreter.program import Order, Program, boxes, evaluate, grid
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


def points(kernel: Kernel, order: Order = "forward") -> Iterator[dict[str, int]]:
    """The programs of a bound kernel's grid: a place on each program axis, the first axis outermost."""
    for box in boxes(grid(kernel, order), 1):
        yield {name: place for name, (place,) in box.items()}
