"""Races: elements that one program writes and another touches, and those that two lanes of one store differ about.

For programs that run one after the other, each element of a tensor that is written knows the programs that last wrote
it, read it and changed it by an atomic. Programs or lanes that write the same bits do no harm, nor do atomics among
themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kdsl.diagnostics import KdslError, fail
from kdsl.interpreter.grid import grid
from kdsl.interpreter.touching import Touched, touched
from kdsl.ir.kernel import Kernel, Op
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS

if TYPE_CHECKING:
    from kdsl.interpreter.program import Program

_NONE, _MANY = -1, -2
_DEEDS = {"read": "read", "write": "wrote", "atomic": "changed by an atomic"}


class Races:
    """The programs that touched each element so far, by their row-major number in the grid."""

    def __init__(self, kernel: Kernel, memory: Mapping[str, Array]) -> None:
        self.shape = tuple(len(points) for points in grid(kernel).values())
        self.axes = [axis.name for axis in kernel.program_axes]
        self.last = {
            buffer.name: {deed: np.full(memory[buffer.name].size, _NONE) for deed in _DEEDS}
            for buffer in kernel.written
        }

    def meet(self, program: Program, op: Op) -> None:
        """Take note of an access that is about to happen. Raises KdslError K0604."""
        last = self.last.get(op.attributes["buffer"])
        if last is None:
            return
        access, effect = touched(program, op), OPS[op.name].effect
        elements = access.elements[access.lanes]
        own = int(np.ravel_multi_index(tuple(program.program.values()), self.shape)) if self.shape else 0
        for deed, owners in last.items():
            if deed == effect != "write":
                continue
            others = owners[elements]
            meeting = (others != _NONE) & (others != own)
            if deed == effect:
                meeting &= _given(program, op, access) != _bits(program.memory[op.attributes["buffer"]])[elements]
            if meeting.any():
                first = int(meeting.argmax())
                who = self._named(int(others[first]))
                raise _race(program, op, int(elements[first]), f"{who} {_DEEDS[deed]}")
        before = last[effect][elements]
        alone = (before == _NONE) | (before == own) | (effect == "write")
        last[effect][elements] = np.where(alone, own, _MANY)

    def _named(self, number: int) -> str:
        if number == _MANY:
            return "several programs"
        places = zip(self.axes, np.unravel_index(number, self.shape), strict=True)
        return f"the program {', '.join(f'{name} = {place}' for name, place in places)}"


def check_lanes(program: Program, op: Op) -> None:
    """Raise KdslError K0604 if two lanes of a store write different bits to one element."""
    if op.name == "store" and _lanes_are_distinct(program, op):
        return
    access = touched(program, op)
    elements = access.elements[access.lanes]
    order = np.argsort(elements, kind="stable")
    ordered, given = elements[order], _given(program, op, access)[order]
    meeting = (ordered[1:] == ordered[:-1]) & (given[1:] != given[:-1])
    if meeting.any():
        raise _race(program, op, int(ordered[meeting.argmax()]), "another lane of the program writes otherwise")


def _lanes_are_distinct(program: Program, op: Op) -> bool:
    """Whether no two lanes of a box meet: each axis steps further than all faster ones reach."""
    steps: dict[str, int] = {}
    elements = 1
    for form, size in zip(
        op.attributes["index"][::-1], program.memory[op.attributes["buffer"]].shape[::-1], strict=True
    ):
        if form.affine is None:
            return False
        for name, factor in form.affine[1].items():
            steps[name] = steps.get(name, 0) + factor * elements
        elements *= size
    reach = 0
    for step, name in sorted((abs(step), name) for name, step in steps.items() if name in program.points):
        if program.size(name) > 1:
            if step <= reach:
                return False
            reach += step * (program.size(name) - 1)
    return all(name in steps for name in op.operands[0].axes if program.size(name) > 1)


def _given(program: Program, op: Op, access: Touched) -> Array:
    """The bits that the touched lanes store."""
    value = op.operands[0]
    array = program.align(program.values[value.name], value.axes, access.axes)
    return _bits(np.broadcast_to(array, access.lanes.shape)[access.lanes])


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")


def _race(program: Program, op: Op, element: int, other: str) -> KdslError:
    name = op.attributes["buffer"]
    shape = program.memory[name].shape
    places = f"[{', '.join(str(int(place)) for place in np.unravel_index(element, shape))}]" if shape else ""
    what = f"the {op.name.removesuffix('_at')}"
    return fail("K0604", op.location, what=what, element=name + places, other=other, place=program.at((), ()))
