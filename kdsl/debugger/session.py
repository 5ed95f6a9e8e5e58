"""A debugging session: what a user can ask for, without a user interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kdsl.debugger.names import look, mentioned
from kdsl.debugger.running import EVERYWHERE, NOWHERE, Runner, Stop
from kdsl.debugger.showing import Shown
from kdsl.debugger.stepping import COMBINES
from kdsl.diagnostics import KdslError, Location, fail
from kdsl.frontends.python.values import TensorRef
from kdsl.ir.kernel import Kernel, Region
from kdsl.ir.statement import Statement


class Session(Runner):
    """Steps, breakpoints and names. `sizes` are the kernel's sizes and tile sizes by name. Raises as Runner does."""

    def __init__(
        self, kernel: Kernel, arguments: Mapping[str, Any], sizes: Mapping[str, int], program: Sequence[int] = ()
    ) -> None:
        self.sizes = dict(sizes)
        self.lines: dict[tuple[str, int], Statement] = {}  # where it can stop
        for statement in _statements(kernel.body):
            for each in (statement, *statement.callers()):
                self.lines.setdefault((each.location.file, each.location.line), each)
        super().__init__(kernel, arguments, program)

    # -- going on --------------------------------------------------------------------------------------------------

    def step(self) -> Stop:
        """To the next statement, into loops and helpers."""
        return self.resume(EVERYWHERE)

    def next(self) -> Stop:
        """To the next statement, over the loop that starts here and the helpers that are called here."""
        program = self.program
        return self.resume(program.depth - 1 if program.testing else program.depth)

    def finish(self) -> Stop:
        """Out of the loop or helper, or to the end of the program."""
        return self.resume(self.program.depth - 1)

    def proceed(self) -> Stop:
        """To the next breakpoint, or to the end of the program."""
        return self.resume(NOWHERE)

    # -- looking ---------------------------------------------------------------------------------------------------

    @property
    def names(self) -> Mapping[str, Any]:
        """What each name stands for before the statement, in the front end's terms."""
        return self.stop.statement.names if self.stop.statement is not None else {}

    def look(self, text: str) -> Shown:
        """What an expression is: NAME, NAME[3, 0:4] or NAME.stop. Raises KdslError K0902, K0904."""
        return look(self.program, self.sizes, self.names, text)

    def values(self) -> dict[str, Shown]:
        """Every name that has a meaning."""
        found = {}
        for name in self.names:
            try:
                found[name] = self.look(name)
            except KdslError:  # it has lost its meaning
                continue
        return found

    def tensor(self, text: str) -> Shown:
        """A tensor as it is now: NAME or NAME[3, 0:4]. Raises KdslError K0902, K0904."""
        tensors = {buffer.name: TensorRef(buffer, ()) for buffer in self.kernel.buffers}
        return look(self.program, self.sizes, tensors, text)

    def around(self) -> dict[str, Shown]:
        """The names that the statement mentions."""
        statement = self.stop.statement
        if statement is None:
            return {}
        words = mentioned(statement)
        return {name: shown for name, shown in self.values().items() if name in words}

    # -- breakpoints by line ---------------------------------------------------------------------------------------

    def set_break(self, line: int) -> Location:
        """Stop at a line of the file shown from now on. Raises KdslError K0903 where nothing is computed there."""
        location = self._line(line).location
        self.breaks.add((location.file, location.line))
        return location

    def clear_break(self, line: int) -> Location:
        """Stop there no more. Raises KdslError K0903 where no breakpoint is set."""
        location = self._line(line).location
        try:
            self.breaks.remove((location.file, location.line))
        except KeyError:
            known = ", ".join(str(line) for file, line in sorted(self.breaks) if file == location.file) or "none"
            raise fail("K0903", None, place=line, what="has no breakpoint", known=known) from None
        return location

    def _line(self, line: int) -> Statement:
        file = self.file
        for statement in self.lines.values():
            if statement.location.file == file and statement.location.line <= line <= statement.last_line:
                return statement
        raise fail("K0903", None, place=line, what=f"of {file} computes nothing", known=self.stops())

    def stops(self) -> str:
        """The lines of the file shown at which it can stop, as text."""
        return ", ".join(str(line) for file, line in sorted(self.lines) if file == self.file)

    @property
    def file(self) -> str:
        """The file of the statement."""
        if self.stop.statement is not None:
            return self.stop.statement.location.file
        return self.kernel.location.file if self.kernel.location is not None else ""


def _statements(region: Region) -> Iterator[Statement]:
    """The statements of a region's ops, but for those of combines, in which it does not stop."""
    for op in region.ops:
        if op.statement is not None:
            yield op.statement
        for inner in op.regions if op.name not in COMBINES else ():
            yield from _statements(inner)
