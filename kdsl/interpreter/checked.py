"""The oracle's checked mode: finds what a kernel does that no target promises anything about.

raised, with the op's place, the program, the lane and the element
    K0601  an access out of bounds
    K0603  a value that means nothing is stored, or decides an address, a branch or an assertion
    K0604  a race between programs, or between lanes of a store
    K0605  an element of an output that is never written
    K0606  signed arithmetic that wraps around and decides an address or a branch
given as warnings
    K0607  a NaN or infinity that was born from finite numbers is stored, or decides an address or a branch

A value that means nothing does no harm where a mask or a select leaves it out: each lane carries a tag that says what
became of it, and tags are asked for only where something comes of them. Births cost a look at every result. So they are
looked for once a NaN or infinity has been stored, or from the start where floats decide what is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdsl.analysis.parallel import is_parallel
from kdsl.diagnostics import KdslError, fail
from kdsl.interpreter import causes
from kdsl.interpreter.batched import in_boxes, programs_in_a_box
from kdsl.interpreter.deciding import asked, deciding
from kdsl.interpreter.grid import Box, Order
from kdsl.interpreter.memory import Poison, take_arguments, worst
from kdsl.interpreter.races import Races, check_lanes
from kdsl.interpreter.shadow import Shadowed
from kdsl.interpreter.touching import Touched, touched
from kdsl.ir.kernel import Kernel, Op, Region, Value, walk
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS

# A tag is one of these plus the number of the op, or of the output. Where two meet the greater one counts.
_BORN, _GIVEN, _WRAPPED, _UNDEFINED, _UNWRITTEN = 1, 0x4000, 0x5000, 0x8000, 0xF000


def means_nothing(shadow: Array) -> Array:
    """Where the tags of a value or a tensor say that nobody gave it a meaning, or that nothing was written yet."""
    return shadow >= _UNDEFINED


@dataclass(frozen=True)
class CheckedRun:
    """The written buffers by name, as `kdsl.interpreter.run` gives them, and the warnings."""

    outputs: dict[str, Array]
    warnings: tuple[KdslError, ...]


def run(kernel: Kernel, arguments: Mapping[str, Any], poison: Poison = worst, order: Order = "forward") -> CheckedRun:
    """Run a bound kernel under all checks; arguments as for `kdsl.interpreter.run`, and its bits.

    Raises the fault that comes first, program after program: KdslError K0601 to K0606, and K0505.
    """
    facts = Facts(kernel, births=False)
    outputs = _run(facts, arguments, poison, order)
    if facts.suspicious and not facts.births:
        facts = Facts(kernel, births=True)
        outputs = _run(facts, arguments, poison, order)
    return CheckedRun(outputs, tuple(facts.warnings.values()))


class Facts:
    """What all programs of a run share: the kernel's ops by number, and what was found so far."""

    def __init__(self, kernel: Kernel, births: bool) -> None:
        self.kernel = kernel
        self.ops = list(walk(kernel.body))
        self.numbers = {id(op): number for number, op in enumerate(self.ops)}
        self.outputs = [buffer.name for buffer in kernel.written]
        self.deciding = deciding(kernel)
        makers = [op for op in self.ops if any(value.name in self.deciding for value in op.results)]
        self.births = births or any(value.dtype.is_float for op in makers for value in (*op.operands, *op.results))
        self.parallel = is_parallel(kernel)
        self.suspicious = False
        self.warnings: dict[tuple[int, int], KdslError] = {}  # by the tag, and the op that asked

    def shadows(self, memory: Mapping[str, Array]) -> dict[str, Array]:
        """Tags for the memory before the run: outputs are unwritten."""
        tags = [_UNWRITTEN + number if buffer.role == "out" else 0 for number, buffer in enumerate(self.kernel.written)]
        return {name: np.full(memory[name].shape, tag, np.uint16) for name, tag in zip(self.outputs, tags, strict=True)}


def _run(facts: Facts, arguments: Mapping[str, Any], poison: Poison, order: Order) -> dict[str, Array]:
    kernel = facts.kernel
    memory: dict[str, Array] = {}
    shadows: dict[str, Array] = {}

    def start() -> Any:
        fresh, scalars = take_arguments(kernel, arguments, poison)
        memory.update(fresh)
        shadows.update(facts.shadows(memory))
        races = None if facts.parallel else Races(kernel, memory)

        def evaluate(box: Box) -> None:
            with np.errstate(all="ignore"):
                Checked(facts, memory, scalars, box, poison, shadows, races).run(kernel.body, [])

        return evaluate

    in_boxes(kernel, order, programs_in_a_box(kernel) if facts.parallel else 1, start)
    for name in facts.outputs:
        _check_written(kernel, name, memory[name], shadows[name])
    return {name: memory[name] for name in facts.outputs}


def _check_written(kernel: Kernel, name: str, array: Array, shadow: Array) -> None:
    missing = np.flatnonzero(shadow >= _UNWRITTEN)
    if len(missing):
        first = _element(name, array.shape, int(missing[0]))
        counts = {"count": len(missing), "total": array.size}
        raise fail("K0605", kernel.location, name=name, first=first, **counts)


def _element(name: str, shape: tuple[int, ...], number: int) -> str:
    return f"{name}[{', '.join(str(int(place)) for place in np.unravel_index(number, shape))}]" if shape else name


class Checked(Shadowed):
    """A program, or a box of programs, under the checks."""

    def __init__(
        self,
        facts: Facts,
        memory: dict[str, Array],
        scalars: dict[str, Any],
        place: Mapping[str, int | range],
        poison: Poison,
        shadows: dict[str, Array],
        races: Races | None,
    ) -> None:
        super().__init__(facts.kernel, memory, scalars, place, poison, shadows)
        self.facts, self.races = facts, races

    # -- where tags start ------------------------------------------------------------------------------------------

    def started(self, op: Op, results: Sequence[Array]) -> list[Array]:
        number = self.facts.numbers[id(op)]
        shadows = super().started(op, results)
        if op.name in ("load", "load_at"):
            shadows = [self.tagged(causes.skipped(self, op), op.result, _UNDEFINED + number)]
        elif op.name in causes.UNDEFINED:
            with self.uncast():
                found = causes.undefined(self, op, results)
            shadows = [self.tagged(where, v, _UNDEFINED + number) for where, v in zip(found, op.results, strict=True)]
        elif len(op.results) == 1 and op.result.dtype.kind == "int" and op.result.name in self.facts.deciding:
            shadows = [self.tagged(causes.wrapped(self, op, results[0]), op.result, _WRAPPED + number)]
        if not self.facts.births:
            return shadows
        return [
            self.joined((shadow, self._births(op, value, result, number)))
            for shadow, value, result in zip(shadows, op.results, results, strict=True)
        ]

    def _births(self, op: Op, value: Value, result: Array, number: int) -> Array:
        if "buffer" in op.attributes or op.name == "argument":
            return self.tagged(causes.no_number(value, result), value, _GIVEN)
        return self.tagged(causes.born(self, op, value, result), value, _BORN + number)

    def tagged(self, where: Array, value: Value, tag: int) -> Array:
        """The tag in those of the lanes that count."""
        where = causes.counting(self, where, value)
        return np.where(where, np.uint16(tag), np.uint16(0)) if where.any() else self.blank(value)

    def after(self, op: Op, results: Sequence[Array]) -> list[Array]:
        shadows = super().after(op, results)
        if self.facts.births:  # a finite number shows nothing of the infinity that it came from
            for place, (value, result) in enumerate(zip(op.results, results, strict=True)):
                if value.dtype.is_float and shadows[place].any():
                    healed = (shadows[place] < _WRAPPED) & np.isfinite(result)
                    shadows[place] = np.where(healed, np.uint16(0), shadows[place])
        return shadows

    # -- where they are asked for ------------------------------------------------------------------------------------

    def before(self, op: Op) -> None:
        writes = OPS[op.name].effect in ("write", "atomic")
        wanted = () if op.name == "while" else asked(self.kernel, op)
        wanted += op.operands if writes else ()
        if any(self.shadow(value).any() for value in wanted):
            for value in dict.fromkeys(wanted):
                self._ask(op, value)
        if writes and not (self.facts.births or self.facts.suspicious):
            self.facts.suspicious = self._stores_no_number(op)
        if op.name in ("store", "store_at"):
            check_lanes(self, op)
        if self.races is not None and "buffer" in op.attributes:
            self.races.meet(self, op)

    def test(self, region: Region, carried: Sequence[Array]) -> Array:
        condition = super().test(region, carried)
        (value,) = region.ops[-1].operands
        if self.casting and self.shadow(value).any():
            makers = [op for op in region.ops if value in op.results]
            self._ask((makers or list(region.ops))[-1], value)
        return condition

    def _stores_no_number(self, op: Op) -> bool:
        value = op.operands[0]
        where = causes.no_number(value, self.values[value.name])
        if not where.any():
            return False
        access = touched(self, op)
        return bool((self.align(where, value.axes, access.axes) & access.lanes).any())

    def _ask(self, op: Op, value: Value) -> None:
        """Raise the fault, or note the warning, that a lane of the value carries where it counts."""
        access = touched(self, op) if "buffer" in op.attributes else None
        masks = bool(op.attributes.get("masked")) and value == op.operands[-1]
        axes = self.kernel.with_validity(value.axes) if access is None else access.axes
        # Whether a lane is touched hangs on the mask itself.
        counts = self.valid(axes, axes) & self.active(axes) if access is None or masks else access.lanes
        tags = np.where(counts, self.align(self.shadow(value), value.axes, axes), 0)
        if tags.any():
            lane = np.unravel_index(int(np.argmax(tags)), tags.shape)
            self._report(op, value, access, int(tags[lane]), axes, [int(place) for place in lane])

    def _report(
        self, op: Op, value: Value, access: Touched | None, tag: int, axes: Sequence[str], lane: Sequence[int]
    ) -> None:
        place = self.at(axes, lane)
        what = _deed(self.kernel, op, value)
        if access is not None:
            buffer = op.attributes["buffer"]
            number = int(np.broadcast_to(access.elements, access.lanes.shape)[tuple(lane)])
            what += f" {_element(buffer, self.memory[buffer].shape, number)}"
        if tag >= _UNWRITTEN:
            cause = f"nothing was written to this element of {self.facts.outputs[tag - _UNWRITTEN]} before"
            raise fail("K0603", op.location, what=what, cause=cause, place=place)
        if tag >= _UNDEFINED:
            raise fail("K0603", op.location, what=what, cause=_cause(self.facts.ops[tag - _UNDEFINED]), place=place)
        if tag >= _WRAPPED:
            source = self.facts.ops[tag - _WRAPPED]
            fields = {"what": source.name, "value": what, "dtype": source.result.dtype}
            raise fail("K0606", source.location, place=place, **fields)
        if tag < _GIVEN:
            source = self.facts.ops[tag - _BORN]
            fields = {"value": "a NaN or infinity", "cause": _named(source), "what": what}
            found = fail("K0607", source.location, place=place, **fields)
            self.facts.warnings.setdefault((tag, self.facts.numbers[id(op)]), found)


def _deed(kernel: Kernel, op: Op, value: Value) -> str:
    """What an op does with a value, as the subject of a sentence."""
    if op.name in ("if", "assert"):
        return f"the condition of an {op.name}"
    if op.name == "let":
        return "the limit of a loop or an index"
    if "buffer" not in op.attributes:
        return "the condition of a while"
    if value not in asked(kernel, op):
        return f"the {op.name.removesuffix('_at')} of"
    masks = bool(op.attributes.get("masked")) and value == op.operands[-1]
    return f"the {'mask' if masks else 'index'} of the {op.name.removesuffix('_at')} of"


def _cause(op: Op) -> str:
    if op.name in ("load", "load_at"):
        return f"the load of {op.attributes['buffer']}{_where(op)} left this lane out and has no fill"
    return f"{_named(op)} gives nothing there"


def _named(op: Op) -> str:
    return f"{op.name}{_where(op)}"


def _where(op: Op) -> str:
    return f" in line {op.location.line}" if op.location is not None else ""
