"""Kernels over words under evaluation: the interpreter's frame, with what the ops mean on words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kdsl.analysis.parallel import is_parallel
from kdsl.equivalence.algebra.field import Field
from kdsl.equivalence.algebra.meanings import ALONG, MOVES, POINTWISE
from kdsl.equivalence.algebra.translate import touches_words
from kdsl.equivalence.algebra.words import UNDEFINED, Word
from kdsl.interpreter.batched import programs_in_a_box
from kdsl.interpreter.grid import boxes, grid
from kdsl.interpreter.memory import take_arguments, worst
from kdsl.interpreter.program import Program
from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Kernel, Op
from kdsl.ir.meaning import Array

LARGEST_STEPS = 200_000  # ops evaluated in a run: a while that asks an order drawn at random may not end


class Unclear(Exception):
    """Why a kernel has no result in the field, said of the kernel."""


def where(op: Op) -> str:
    """An op's name, and its place in the source if it has one."""
    return f"{op.name} at {op.location}" if op.location is not None else op.name


def run(kernel: Kernel, arguments: Mapping[str, Any], field: Field) -> dict[str, Array]:
    """What a bound kernel over words leaves in its written buffers; floats in arguments and results are words.

    Raises Unclear, and KdslError as the interpreter does.
    """

    def poison(dtype: DType, shape: tuple[int, ...]) -> Array:
        return np.full(shape, UNDEFINED) if isinstance(dtype, Word) else worst(dtype, shape)

    memory, scalars = take_arguments(kernel, arguments, poison)
    steps = 0
    together = programs_in_a_box(kernel) if is_parallel(kernel) else 1
    for box in boxes(grid(kernel), together):
        steps = _Program(field, steps, kernel, memory, scalars, box, poison).finish()
    return {buffer.name: memory[buffer.name] for buffer in kernel.written}


class _Program(Program):
    def __init__(self, field: Field, steps: int, *frame: Any) -> None:
        super().__init__(*frame)
        self.field, self.steps = field, steps

    def finish(self) -> int:
        """Run; gives how many steps have been taken."""
        self.run(self.kernel.body, [])
        return self.steps

    def evaluate(self, op: Op) -> list[Array]:
        self.steps += 1
        if self.steps > LARGEST_STEPS:
            raise Unclear(f"takes more than {LARGEST_STEPS} steps")
        if not touches_words(op):
            return super().evaluate(op)
        if op.name == "constant":
            return [np.full([1] * len(op.result.axes), op.attributes["value"])]
        if op.name in MOVES:
            return super().evaluate(op)
        operands = [self.values[value.name] for value in op.operands]
        if op.name in ALONG:
            return ALONG[op.name](self.field, self, op, operands)
        if op.name not in POINTWISE:
            raise Unclear(f"has an op without algebraic meaning: {where(op)}")
        aligned = [
            self.align(array, value.axes, op.result.axes) for array, value in zip(operands, op.operands, strict=True)
        ]
        result = np.asarray(POINTWISE[op.name](self.field, op, *aligned))
        self._note(op, aligned, result)
        return [result]

    def _note(self, op: Op, operands: Sequence[Array], result: Array) -> None:
        """Remember an op that makes an undefined number of defined ones."""
        if isinstance(op.result.dtype, Word) and (result == UNDEFINED).any():
            born = (result == UNDEFINED) & ~np.logical_or.reduce(
                np.broadcast_arrays(*(operand == UNDEFINED for operand in operands))
            )
            if born.any():
                self.field.notes[where(op)] = None

    def show(self, message: str, arrays: Sequence[Array]) -> None:
        """Words say nothing to an author."""
