"""Programs whose values have a shadow each: an array of tags beside the array, one a lane, that says more about it.

A result's tags are its operands' tags joined, lane by lane: those of the lanes that the result depends on. Tags go
through memory, too. What the tags mean, where they start and what they are asked for, is a subclass's affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from kdsl.interpreter.causes import along
from kdsl.interpreter.memory import Poison
from kdsl.interpreter.program import Program
from kdsl.interpreter.touching import touched
from kdsl.ir.dtypes import BOOL, U16
from kdsl.ir.kernel import Kernel, Op, Region, Value
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS

PREFIX = "shadow of "
# Ops that give lanes of their operands, and compute nothing.
_MOVING = frozenset({"broadcast", "reshape", "flip", "concat", "join", "split", "relabel"})
_REGIONS = ("for", "if", "while")


class Shadowed(Program):
    """`join` brings two tags together; 0 is no tag. `shadows` are those of the memory, by tensor."""

    join: np.ufunc = np.maximum
    tag: np.dtype[Any] = np.dtype(np.uint16)
    companions = (PREFIX,)

    def __init__(
        self,
        kernel: Kernel,
        memory: dict[str, Array],
        scalars: dict[str, Any],
        place: Mapping[str, int | range],
        poison: Poison,
        shadows: dict[str, Array],
    ) -> None:
        super().__init__(kernel, memory, scalars, place, poison)
        self.shadows = shadows
        self.casting = True  # whether values have shadows at the moment

    def evaluate(self, op: Op) -> list[Array]:
        if not self.casting:
            return super().evaluate(op)
        self.before(op)
        if op.name in _REGIONS:
            both = super().evaluate(with_shadows(op))
            results, shadows = both[: len(op.results)], both[len(op.results) :]
        else:
            with self.uncast():  # the regions of a combine
                results = super().evaluate(op)
            shadows = self.after(op, results)
        for value, shadow in zip(op.results, shadows, strict=True):
            self.values[PREFIX + value.name] = shadow
        return results

    def before(self, op: Op) -> None:
        """Asked of each op before it is evaluated."""

    def started(self, op: Op, results: Sequence[Array]) -> list[Array]:
        """The tags that start at an op, over the axes of its results."""
        return [self.blank(value) for value in op.results]

    def after(self, op: Op, results: Sequence[Array]) -> list[Array]:
        """The tags of an op's results."""
        effect = OPS[op.name].effect
        read = effect in ("read", "atomic") and op.results
        passed = [self.loaded(op)] if read else self.passed(op)
        if effect in ("write", "atomic"):
            self.stored(op)
        return [self.joined(pair) for pair in zip(passed, self.started(op, results), strict=True)]

    # -- arrays of tags ------------------------------------------------------------------------------------------

    def shadow(self, value: Value) -> Array:
        return self.values[PREFIX + value.name]

    def blank(self, value: Value) -> Array:
        return np.zeros([1] * len(value.axes), self.tag)

    def joined(self, shadows: Iterable[Array]) -> Array:
        """Arrays of one rank as one; the smaller where one has no tag."""
        return reduce(lambda x, y: self.join(x, y) if x.any() and y.any() else y if y.any() else x, shadows)

    @contextmanager
    def uncast(self) -> Iterator[None]:
        """Ops inside are evaluated without shadows."""
        before, self.casting = self.casting, False
        try:
            yield
        finally:
            self.casting = before

    # -- how tags pass ---------------------------------------------------------------------------------------------

    def passed(self, op: Op) -> list[Array]:
        """The tags that the results have from their operands."""
        if not any(self.shadow(value).any() for value in op.operands):
            return [self.blank(value) for value in op.results]
        if op.name == "select":
            return [self._select(op)]
        if op.name in ("and", "or") and op.result.dtype == BOOL:
            return [self._logic(op)]
        if op.name in _MOVING:
            return self._moved(op)
        if op.name in ("scan", "scan_by"):
            return [self._scan(op)] * len(op.results)
        return [self.along(op, value) for value in op.results]

    def along(self, op: Op, result: Value) -> Array:
        """All tags of the lanes that are alike on the result's axes."""
        axis = op.attributes.get("axis")
        return (
            self.joined(
                along(self.join, self.shadow(value), value, result, axis, self)
                for value in op.operands
                if self.shadow(value).any()
            )
            if any(self.shadow(value).any() for value in op.operands)
            else self.blank(result)
        )

    def aligned(self, op: Op) -> list[Array]:
        """The operands' tags over the result's axes."""
        return [self.align(self.shadow(value), value.axes, op.results[0].axes) for value in op.operands]

    def _select(self, op: Op) -> Array:
        condition, yes, no = self.aligned(op)
        taken = self.align(self.values[op.operands[0].name], op.operands[0].axes, op.result.axes)
        return self.joined((condition, np.where(taken, yes, no)))

    def _logic(self, op: Op) -> Array:
        """An operand without a tag may decide alone."""
        shadow = self.joined(self.aligned(op))
        for value, own in zip(op.operands, self.aligned(op), strict=True):
            deciding = self.align(self.values[value.name], value.axes, op.result.axes) == (op.name == "or")
            shadow = np.where(deciding & (own == 0), np.zeros((), self.tag), shadow)
        return shadow

    def _scan(self, op: Op) -> Array:
        """Of a lane, the tags of those up to it."""
        shadow, place = self.joined(self.aligned(op)), op.results[0].axes.index(op.attributes["axis"])
        if op.attributes.get("reverse"):
            return np.flip(self.join.accumulate(np.flip(shadow, place), place), place)
        return np.asarray(self.join.accumulate(shadow, place))

    def _moved(self, op: Op) -> list[Array]:
        """What the op does to its operands, done to their tags."""
        evaluate, poison = OPS[op.name].evaluate, self.poison
        assert evaluate is not None, op.name
        self.poison = lambda dtype, shape: np.zeros(shape, self.tag)
        with self.uncast():
            results = evaluate(self, op, [self.shadow(value) for value in op.operands])
        self.poison = poison
        return results

    # -- memory ----------------------------------------------------------------------------------------------------

    def loaded(self, op: Op) -> Array:
        """The tags of the elements, and of the places if they are computed."""
        places = self.along(op, op.result)
        shadows = self.shadows.get(op.attributes["buffer"])
        if shadows is None or not shadows.any():
            return places
        bare = {name: value for name, value in op.attributes.items() if name != "fill"}
        read = replace(op, name="load" if "index" in op.attributes else "load_at", attributes=bare)
        values = [self.values[value.name] for value in op.operands[self.values_of(op) :]]
        (tags,) = self._on_shadows(replace(read, operands=op.operands[self.values_of(op) :]), values)
        return self.joined((tags, places))

    def stored(self, op: Op) -> None:
        """Elements take the tags of what is stored; an atomic joins them with what was there."""
        count = self.values_of(op)
        if OPS[op.name].effect == "write":
            places = [self.values[value.name] for value in op.operands[count:]]
            self._on_shadows(op, [self.shadow(op.operands[0]), *places])
            return
        access, shadows = touched(self, op), self.shadows[op.attributes["buffer"]]
        tags = self.joined(self.align(self.shadow(value), value.axes, access.axes) for value in op.operands[:count])
        tags = np.broadcast_to(tags, access.lanes.shape)[access.lanes]
        self.join.at(shadows.reshape(-1), access.elements[access.lanes], tags)

    def values_of(self, op: Op) -> int:
        """How many operands of an access are values; indices and a mask follow."""
        if "index" in op.attributes:
            return len(op.operands)
        rank = len(self.memory[op.attributes["buffer"]].shape)
        return len(op.operands) - rank - bool(op.attributes.get("masked"))

    def _on_shadows(self, op: Op, operands: list[Array]) -> list[Array]:
        """What a load or store does, done to the tags of the memory."""
        evaluate, memory, poison = OPS[op.name].evaluate, self.memory, self.poison
        assert evaluate is not None, op.name
        self.memory, self.poison = self.shadows, lambda dtype, shape: np.zeros(shape, self.tag)
        with self.uncast():
            results = evaluate(self, op, operands)
        self.memory, self.poison = memory, poison
        return results


def with_shadows(op: Op) -> Op:
    """An `if`, `for` or `while` whose regions carry shadows beside the values; a test yields its condition alone."""
    regions = []
    for place, region in enumerate(op.regions):
        *ops, final = region.ops
        if not (op.name == "while" and place == 0):
            final = replace(final, operands=_doubled(final.operands))
        regions.append(Region(_doubled(region.arguments), (*ops, final)))
    operands = op.operands if op.name == "if" else _doubled(op.operands)
    return replace(op, operands=operands, results=_doubled(op.results), regions=tuple(regions))


def _doubled(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return (*values, *(replace(value, name=PREFIX + value.name, dtype=U16) for value in values))
