"""How error bounds pass through memory: errors are kept beside the elements of each tensor that is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kdsl.equivalence import rounding
from kdsl.equivalence.lanes import Rule, blank, exact_or_lost
from kdsl.ir.kernel import Op, Region, walk
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS
from kdsl.runtime.target import accuracy_of

if TYPE_CHECKING:
    from kdsl.equivalence.bounds import BoundedProgram


@dataclass
class Tally:
    """Of each element of a tensor: how many terms atomics added, the sum of their sizes and of its own at first, and
    how much of its error is what their additions round."""

    counts: Array
    sizes: Array
    rounded: Array


def tallies(body: Region, memory: Mapping[str, Array]) -> dict[str, Tally]:
    """For each tensor that an atomic changes."""
    names = {op.attributes["buffer"] for op in walk(body) if op.name == "atomic"}
    shapes = {name: memory[name].shape for name in names}
    return {
        name: Tally(np.zeros(shape), np.abs(memory[name].astype(np.float64)), np.zeros(shape))
        for name, shape in shapes.items()
    }


def spoil(program: BoundedProgram, ops: Sequence[Op]) -> None:
    """What these ops, or those in their regions, may write is undecided: by any program, before or after."""
    for op in walk(Region((), tuple(ops))):
        if OPS[op.name].effect in ("write", "atomic"):
            program.spoiled.add(op.attributes["buffer"])
            program.error_memory[op.attributes["buffer"]][...] = np.inf


def _load(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    if op.attributes["buffer"] not in program.error_memory:
        return blank(op, 0.0)
    fill = {"fill": 0.0} if "fill" in op.attributes else {}
    with program.on_errors():
        return [program.in_f64(op, **fill)]


def _store(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    with program.on_errors():
        program.on_all(op, [program.error(op.operands[0])])
    return []


def _load_at(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    lost = exact_or_lost(program, op, op.operands)[0]
    if op.attributes["buffer"] not in program.error_memory:
        return [lost]
    if "fill" in op.attributes:
        op = replace(op, attributes={**op.attributes, "fill": 0.0})
    with program.on_errors():
        (error,) = program.on_all(op, [program.values[value.name] for value in op.operands])
    return [error + lost]


def _store_at(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    value, *places = op.operands
    if program.inexact(places, ()):
        spoil(program, [op])
        return []
    with program.on_errors():
        program.on_all(op, [program.error(value), *(program.values[place.name] for place in places)])
    return []


def _atomic(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """What an element held before depends on who came first; what it ends as does not, rounding aside."""
    value, *places = op.operands
    combine = op.attributes.get("combine")
    ordered = combine in (None, "exchange")  # a swap: the order decides
    if ordered or program.inexact(places, ()) or (not value.dtype.is_float and program.inexact([value], ())):
        spoil(program, [op])
    elif value.dtype.is_float:
        together = "add" if combine == "add" else "maximum"
        _run(program, op, program.error_memory, program.error(value), together)
        if combine == "add":
            _add(program, op)
    return blank(op, np.inf)


def _add(program: BoundedProgram, op: Op) -> None:
    """A sum in any order, of which each addition rounds to the tensor's own dtype, on both sides."""
    name, value = op.attributes["buffer"], program.values[op.operands[0].name].astype(np.float64)
    tally, errors, dtype = program.tallies[name], program.error_memory[name], op.operands[0].dtype
    _run(program, op, {name: tally.counts}, np.ones_like(value), "add")
    _run(program, op, {name: tally.sizes}, np.abs(value), "add")
    memory = program.memory[name].astype(np.float64)
    tally.sizes[...] = np.maximum(tally.sizes, np.abs(memory))  # a store may have come between
    carried = errors - tally.rounded
    amount = program.model.summed(
        accuracy_of(program.model.accuracy, "atomic", dtype), tally.sizes, tally.sizes + carried, tally.counts, dtype
    )
    steps = rounding.grid(value), rounding.grid(memory)
    step = None if None in steps else min(step for step in steps if step is not None)
    exact = rounding.sums_exactly(tally.sizes, step, dtype) & (carried == 0) | (tally.counts == 0)
    rounded = program.own(op, np.where(exact, 0.0, amount))
    errors[...] = np.where(np.isnan(carried + rounded), np.inf, carried + rounded)
    tally.rounded[...] = np.where(np.isinf(errors), 0.0, rounded)


def _run(program: BoundedProgram, op: Op, memory: dict[str, Array], value: Array, combine: str) -> None:
    """The same atomic on other memory."""
    changed = replace(op, attributes={**op.attributes, "combine": combine}, results=())
    with program.on_errors(memory):
        program.on_all(changed, [value, *(program.values[place.name] for place in op.operands[1:])])


RULES: dict[str, Rule] = {
    **dict.fromkeys(("atomic", "atomic_cas"), _atomic),
    "load": _load,
    "store": _store,
    "load_at": _load_at,
    "store_at": _store_at,
}
