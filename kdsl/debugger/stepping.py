"""A program that tells whoever listens, before the first op of each statement of the author's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdsl.interpreter.memory import Poison
from kdsl.interpreter.program import Program
from kdsl.ir.kernel import Kernel, Op, Region
from kdsl.ir.meaning import Array
from kdsl.ir.statement import Statement

CONTROL = ("for", "while", "if")
# Their regions run once for each pair of lanes, in an order that is nobody's business.
COMBINES = ("reduce_by", "scan_by")


@dataclass
class Turn:
    """A loop or branch that is open, and which turn of it runs, from 0."""

    op: Op
    number: int = -1


class SteppedProgram(Program):
    """One program; `reached` is called before each statement, and told whether it is a `breakpoint()`.

    The kernel's ops have to have statements: `elaborate(..., statements=True)`. A statement that calls a helper comes
    before those of the helper, a `while` before each of its tests.
    """

    def __init__(
        self,
        kernel: Kernel,
        memory: dict[str, Array],
        scalars: dict[str, Any],
        place: Mapping[str, int],
        poison: Poison,
        reached: Callable[[bool], None],
    ) -> None:
        super().__init__(kernel, memory, scalars, place, poison)
        self.reached = reached
        self.statement: Statement | None = None  # the one that runs, or ran last
        self.open: list[Turn] = []
        self.testing = False  # the condition of a while
        self._before: Statement | None = None  # the one that the next op comes after; once a turn ends, the loop
        self._combining = False

    @property
    def loops(self) -> list[Turn]:
        """The loops that are open, outermost first."""
        return [turn for turn in self.open if turn.op.name != "if"]

    @property
    def depth(self) -> int:
        """How many loops and calls of helpers are around the statement that runs."""
        return len(self.loops) + (self.statement.depth if self.statement is not None else 0)

    def evaluate(self, op: Op) -> list[Array]:
        if op.statement is not None and not self._combining and op.name != "while":
            self._enter(op.statement, op.name == "breakpoint")
        if op.name in CONTROL and not self._combining:
            # Left open where it faults: that is where the program is then.
            self.open.append(Turn(op))
            results = super().evaluate(op)
            self.open.pop()
            return results
        outer, self._combining = self._combining, self._combining or op.name in COMBINES
        results = super().evaluate(op)
        self._combining = outer
        return results

    def _enter(self, statement: Statement, is_breakpoint: bool) -> None:
        before, self._before = self._before, statement
        going = () if before is None else (before, *before.callers())
        for each in reversed((statement, *statement.callers())):
            if each not in going:
                self.statement = each
                self.reached(is_breakpoint and each is statement)
        self.statement = statement

    def run(self, region: Region, arguments: Sequence[Array]) -> list[Array]:
        if self.open and region is self.open[-1].op.regions[0]:  # of a while, the test
            self.open[-1].number += 1
        arrays = super().run(region, arguments)
        if self.open and not self._combining:
            self._before = self.open[-1].op.statement
        return arrays

    def test(self, region: Region, carried: Sequence[Array]) -> Array:
        outer, self.testing = self.testing, True
        running = super().test(region, carried)
        self.testing = outer
        return running
