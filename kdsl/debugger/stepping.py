"""A checked program that tells whoever listens, before the first op of each statement of the author's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kdsl.interpreter.checked import Checked
from kdsl.ir.kernel import Op, Region
from kdsl.ir.meaning import Array
from kdsl.ir.statement import Statement

CONTROL = ("for", "while", "if")
# Their regions run once for each pair of lanes, in an order that is nobody's business.
COMBINES = ("reduce_by", "scan_by")


@dataclass
class Turn:
    """A loop or branch that is open. `tested` counts the tests of a while."""

    op: Op
    tested: int = 0


class SteppedProgram(Checked):
    """One program; `reached` is called before each statement, and told whether it is a `breakpoint()`.

    The kernel's ops have to have statements: `elaborate(..., statements=True)`. A statement that calls a helper comes
    before those of the helper, a `while` before each of its tests.
    """

    def __init__(self, *given: Any, reached: Callable[[bool], None]) -> None:
        super().__init__(*given)
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

    def turns(self) -> tuple[tuple[str, int, int | None], ...]:
        """For each open loop its axis, the turn that runs, from 0, and the number of turns; of a while no number."""
        found: list[tuple[str, int, int | None]] = []
        for turn in self.loops:
            if turn.op.name == "while":
                found.append(("while", turn.tested - 1, None))
            else:
                axis = turn.op.attributes["axis"]
                found.append((axis, self.points[axis][0], int(self.trips(axis).max())))
        return tuple(found)

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
        arrays = super().run(region, arguments)
        if self.open and not self._combining:
            self._before = self.open[-1].op.statement
        return arrays

    def test(self, region: Region, carried: Sequence[Array]) -> Array:
        outer, self.testing = self.testing, True
        self.open[-1].tested += 1
        running = super().test(region, carried)
        self.testing = outer
        return running
