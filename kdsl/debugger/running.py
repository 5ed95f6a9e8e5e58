"""Running the programs of a grid one by one, stopped whenever it is asked for.

The programs run in a thread of their own, which waits while it is stopped: only one of the two threads ever runs.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kdsl.debugger.stepping import SteppedProgram
from kdsl.diagnostics import KdslError, fail
from kdsl.interpreter.checked import Facts
from kdsl.interpreter.memory import bound_extent, take_arguments, worst
from kdsl.interpreter.races import Races
from kdsl.ir.kernel import Kernel
from kdsl.ir.statement import Statement

Reason = Literal["line", "breakpoint", "interrupt", "end", "fault"]
EVERYWHERE, NOWHERE = sys.maxsize, -1
POLL = 0.1  # seconds; a signal that comes as a wait begins does not end that wait


@dataclass(frozen=True)
class Stop:
    """Where a program has stopped: before `statement`, at its end, or at a fault in the statement.

    `program` is its place in the grid; `loops` names each open loop with its turn, from 0, and the number of its turns,
    None for a while. `warnings` are those since the last stop: NaNs and infinities that were born and reached memory.
    """

    reason: Reason
    program: tuple[int, ...]
    statement: Statement | None
    loops: tuple[tuple[str, int, int | None], ...] = ()
    fault: KdslError | None = None
    warnings: tuple[KdslError, ...] = ()


class _Abandoned(BaseException):
    """Unwinds a program that nobody will go on with."""


class Runner:
    """The programs of a bound kernel under the oracle's checks; it starts stopped at the first line of `program`.

    Earlier programs of a grid that is not parallel run first, as what they wrote may matter. Raises KdslError: K0901
    for a program that is not in the grid, K0905 for a grid without programs, K0505 for arguments that do not fit.
    """

    def __init__(self, kernel: Kernel, arguments: Mapping[str, Any], program: Sequence[int] = ()) -> None:
        self.kernel, self.arguments = kernel, dict(arguments)
        self._thread: threading.Thread | None = None
        self._running: SteppedProgram | None = None
        self.grid = tuple(bound_extent(axis.extent) for axis in kernel.program_axes)
        if not math.prod(self.grid):
            raise fail("K0905", kernel.location, kernel=kernel.name, grid=" x ".join(map(str, self.grid)))
        self.breaks: set[tuple[str, int]] = set()  # lines, by file
        self.go_to(program or (0,) * len(self.grid))

    @property
    def program(self) -> SteppedProgram:
        """The program that is stopped."""
        assert self._running is not None
        return self._running

    @property
    def is_parallel(self) -> bool:
        return self.facts.parallel

    def go_to(self, program: Sequence[int]) -> Stop:
        """To the first statement of another program, or of this one again, on the arguments as they were."""
        place = tuple(program)
        if len(place) != len(self.grid) or any(not 0 <= at < size for at, size in zip(place, self.grid, strict=True)):
            raise no_program(self.kernel, shown(place))
        self.close()
        self.memory, scalars = take_arguments(self.kernel, self.arguments, worst)
        self.facts = Facts(self.kernel, births=True)
        self.shadows = self.facts.shadows(self.memory)
        self.first = place
        self._stopped, self._resumed = threading.Event(), threading.Event()
        self._closing, self._interrupted, self._ahead = False, False, False
        self._failure: BaseException | None = None
        self._over: str | None = None
        self._warned = 0
        self._thread = threading.Thread(target=self._work, args=(scalars,), daemon=True)
        self._thread.start()
        return self.resume(EVERYWHERE)

    def close(self) -> None:
        """Abandon the program that runs."""
        if self._thread is not None:
            self._closing = True
            self._resumed.set()
            self._thread.join(timeout=1)
            self._thread = None

    def history(self) -> str:
        """Which other programs have run, so what the tensors hold."""
        here, first = _number(self.stop.program, self.grid), _number(self.first, self.grid)
        if not self.is_parallel:
            return f"the {here} programs before it have run" if here else "it is the first program of the grid"
        if here == first:
            return "no other program has run: in this grid none needs another"
        return f"of the others, those from {shown(self.first)} on have run: in this grid none needs another"

    def resume(self, deepest: int) -> Stop:
        """Let the program run until it stops: at statements inside at most that many loops and calls.

        An interrupt stops it at its next statement; a second one is raised.
        """
        if self._over is not None:
            raise fail("K0906", None, why=self._over)
        self._deepest, self._interrupted = deepest, False
        self._stopped.clear()
        self._resumed.set()
        while not self._stopped.is_set():
            try:
                self._stopped.wait(POLL)
            except KeyboardInterrupt:
                if self._interrupted:
                    raise
                self._interrupted = True
        if self._failure is not None:
            raise self._failure
        return self.stop

    # -- in the program's thread -----------------------------------------------------------------------------------

    def _work(self, scalars: Mapping[str, Any]) -> None:
        try:
            self._wait()
            with np.errstate(all="ignore"):
                self._run_programs(dict(scalars))
        except _Abandoned:
            pass
        except BaseException as failure:
            self._failure = failure
            self._stopped.set()

    def _run_programs(self, scalars: dict[str, Any]) -> None:
        names = [axis.name for axis in self.kernel.program_axes]
        races = None if self.is_parallel else Races(self.kernel, self.memory)
        for place in self._programs():
            self._ahead = _number(place, self.grid) < _number(self.first, self.grid)
            axes = dict(zip(names, place, strict=True))
            self._running = SteppedProgram(
                self.facts, self.memory, scalars, axes, worst, self.shadows, races, reached=self._reached
            )
            fault = None
            try:
                self._running.run(self.kernel.body, [])
            except KdslError as error:
                fault = error
            if fault is not None:
                self._over = "it has stopped at a fault"
                self._pause("fault", fault)
            elif not self._ahead:
                last = all(at == size - 1 for at, size in zip(place, self.grid, strict=True))
                self._over = "that was the last program of the grid" if last else None
                self._pause("end")

    def _programs(self) -> Iterator[tuple[int, ...]]:
        """The programs to run, the first axis outermost."""
        start = _number(self.first, self.grid) if self.is_parallel else 0
        return (_place(number, self.grid) for number in range(start, math.prod(self.grid)))

    def _reached(self, is_breakpoint: bool) -> None:
        if self._closing:
            raise _Abandoned
        assert self.program.statement is not None
        place = self.program.statement.location
        if self._interrupted:
            self._pause("interrupt")
        elif self._ahead:
            return
        elif is_breakpoint or (place.file, place.line) in self.breaks:
            self._pause("breakpoint")
        elif self.program.depth <= self._deepest:
            self._pause("line")

    def _pause(self, reason: Reason, fault: KdslError | None = None) -> None:
        program = self.program
        self._ahead = False  # whoever stops in an earlier program goes on from there
        statement = program.statement
        if statement is not None and reason == "end":  # the names are the kernel's again, not those of a helper
            statement = [statement, *statement.callers()][-1]
        warnings = tuple(self.facts.warnings.values())[self._warned :]
        self._warned += len(warnings)
        self.stop = Stop(reason, tuple(program.program.values()), statement, program.turns(), fault, warnings)
        self._resumed.clear()
        self._stopped.set()
        self._wait()

    def _wait(self) -> None:
        self._resumed.wait()
        if self._closing:
            raise _Abandoned


def read_place(kernel: Kernel, text: str) -> tuple[int, ...]:
    """A place in the grid of a kernel from text such as `3,0`. Raises KdslError K0901 for other text."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise no_program(kernel, text) from None


def no_program(kernel: Kernel, text: str) -> KdslError:
    """The diagnostic for what is no place in the grid of a bound kernel."""
    grid = ", ".join(f"{axis.name} of {axis.extent}" for axis in kernel.program_axes)
    last = shown([bound_extent(axis.extent) - 1 for axis in kernel.program_axes])
    return fail("K0901", None, program=text or "''", kernel=kernel.name, grid=grid, last=last)


def shown(place: Sequence[int]) -> str:
    """A place in the grid, as commands take it: `3,0`."""
    return ",".join(map(str, place))


def _number(place: Sequence[int], grid: Sequence[int]) -> int:
    number = 0
    for at, size in zip(place, grid, strict=True):
        number = number * size + at
    return number


def _place(number: int, grid: Sequence[int]) -> tuple[int, ...]:
    place = []
    for size in reversed(grid):
        number, at = divmod(number, size)
        place.append(at)
    return tuple(reversed(place))
