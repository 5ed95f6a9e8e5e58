"""Which elements of its tensor each lane of a load, store or atomic touches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdsl.interpreter.program import Program
from kdsl.ir.kernel import Op
from kdsl.ir.meaning import Array
from kdsl.ir.type_rules import form_axes


@dataclass(frozen=True)
class Touched:
    """Over `axes`: which lanes touch memory (bool), and the row-major number of the element (i64), any where none."""

    axes: tuple[str, ...]
    lanes: Array
    elements: Array


def touched(program: Program, op: Op) -> Touched:
    """What an access in a program, or a box of programs, touches; elements outside the tensor become its ends."""
    axes = _axes(program, op)
    lanes = program.valid(axes, axes) & program.active(axes)
    if "index" in op.attributes:
        lanes = lanes & program.holds(op.attributes.get("bounds", ()), axes)
        places = [program.form(form, axes) for form in op.attributes["index"]]
    else:
        shape = program.memory[op.attributes["buffer"]].shape
        arrays = [program.align(program.values[value.name], value.axes, axes) for value in op.operands]
        masks = [arrays.pop()] if op.attributes.get("masked") else []
        lanes = np.logical_and.reduce(np.broadcast_arrays(lanes, *masks))
        places = [array.astype(np.int64) for array in arrays[len(arrays) - len(shape) :]]
    return Touched(axes, *np.broadcast_arrays(lanes, _elements(program, op, places, len(axes))))


def _axes(program: Program, op: Op) -> tuple[str, ...]:
    """Of a load those of its result; an atomic happens once in each program."""
    kernel, attributes = program.kernel, op.attributes
    forms = [*attributes.get("index", ()), *attributes.get("bounds", ())]
    named = {*form_axes(kernel, forms), *(name for value in (*op.operands, *op.results) for name in value.axes)}
    if op.name in ("atomic", "atomic_cas"):
        named |= set(program.program_axes)
    return kernel.with_validity(named)


def _elements(program: Program, op: Op, places: list[Array], rank: int) -> Array:
    elements = np.zeros([1] * rank, np.int64)
    for place, size in zip(places, program.memory[op.attributes["buffer"]].shape, strict=True):
        elements = elements * size + np.clip(place, 0, max(size - 1, 0))
    return elements
