"""Commands of a debugger, as text in and text out."""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Iterable

from kdsl.debugger.running import Stop, read_place, shown
from kdsl.debugger.session import Session
from kdsl.debugger.showing import in_full, one_line
from kdsl.diagnostics import Location, fail

AROUND = 5  # lines that `list` shows before and after


class Commands:
    """Runs command lines on a session; `ended` says that the user has had enough.

    `width` is how many characters a line of text may have.
    """

    def __init__(self, session: Session, width: int = 100) -> None:
        self.session, self.width = session, width
        self.ended = False
        self._again = ""  # what an empty line does

    def run(self, line: str) -> str:
        """What a command line says; an empty one goes on as before. Raises KdslError for what does not fit."""
        line = line.strip() or self._again
        word, _, argument = line.partition(" ")
        name = SHORT.get(word, word)
        if name not in COMMANDS:
            return f"there is no command {word}\n{self.help('')}" if word else ""
        self._again = line if name in REPEATED else ""
        return COMMANDS[name](self, argument.strip())

    def complete(self, text: str) -> list[str]:
        """Words that the text may be the beginning of: commands, and names that have a value."""
        return sorted(word for word in (*COMMANDS, *self.session.names) if word.startswith(text))

    # -- going on --------------------------------------------------------------------------------------------------

    def step(self, argument: str) -> str:
        """to the next statement, into loops and helpers"""
        return self.stopped(self.session.step())

    def next(self, argument: str) -> str:
        """to the next statement, over a loop that starts here and helpers"""
        return self.stopped(self.session.next())

    def finish(self, argument: str) -> str:
        """out of this loop or helper, or to the end of the program"""
        return self.stopped(self.session.finish())

    def proceed(self, argument: str) -> str:
        """to the next breakpoint, or the end of the program; from there, into the next program"""
        return self.stopped(self.session.proceed())

    def program(self, argument: str) -> str:
        """[3,0]: start another program (this one again), the arguments as they were"""
        place = read_place(self.session.kernel, argument) if argument else self.session.stop.program
        stop = self.session.go_to(place)
        return f"{self.session.history()}\n{self.stopped(stop)}"

    def quit(self, argument: str) -> str:
        """leave"""
        self.ended = True
        return ""

    # -- looking ---------------------------------------------------------------------------------------------------

    def where(self, argument: str) -> str:
        """the place in the grid, in loops and in the source"""
        stop = self.session.stop
        lines = [f"program {self._program(stop)}; {self.session.history()}"]
        lines += [
            f"{axis}: turn {number} of {trips}" if trips is not None else f"{axis}: turn {number}"
            for axis, number, trips in stop.loops
        ]
        if stop.statement is not None:
            lines += [f"called at {_place(each.location)}" for each in reversed(list(stop.statement.callers()))]
        return "\n".join([*lines, self.stopped(stop)])

    def print(self, argument: str) -> str:
        """NAME, NAME[3, 0:4] or NAME.start: a tile, size, index variable or tensor"""
        return in_full(argument, self.session.look(argument), self.width)

    def memory(self, argument: str) -> str:
        """NAME[3, 0:4]: part of a tensor as it is now"""
        return in_full(argument, self.session.tensor(argument), self.width)

    def values(self, argument: str) -> str:
        """every name, in a line"""
        found = self.session.values()
        widths = max(map(len, found), default=0), max((len(each.what) for each in found.values()), default=0)
        return "\n".join(
            f"{name:{widths[0]}}  {each.what:{widths[1]}}  {one_line(each)}" for name, each in found.items()
        )

    def list(self, argument: str) -> str:
        """the source around"""
        statement, file = self.session.stop.statement, self.session.file
        if statement is None:
            return ""
        here = range(statement.location.line, statement.last_line + 1)
        last = min(here.stop + AROUND, len(linecache.getlines(file)) + 1)
        return self._source(range(max(1, here.start - AROUND), last), here)

    # -- breakpoints -----------------------------------------------------------------------------------------------

    def set_break(self, argument: str) -> str:
        """LINE: stop there; without one, which there are"""
        if not argument:
            places = [_place(Location(file, line)) for file, line in sorted(self.session.breaks)]
            return "\n".join(places) or "there are none"
        return f"stops at {_place(self.session.set_break(self._line(argument)))}"

    def clear(self, argument: str) -> str:
        """LINE: stop there no more"""
        return f"stops no more at {_place(self.session.clear_break(self._line(argument)))}"

    def help(self, argument: str) -> str:
        """this list"""
        letters = {name: letter for letter, name in SHORT.items() if letter != "?"}
        return "\n".join(
            f"  {letters.get(name, ''):2} {name:9} {command.__doc__}" for name, command in COMMANDS.items()
        )

    # -- where it has stopped --------------------------------------------------------------------------------------

    def stopped(self, stop: Stop) -> str:
        """Why and where, with the source line; at a fault, the values that the statement mentions."""
        why = {
            "breakpoint": ", at a breakpoint",
            "interrupt": ", interrupted",
            "end": " has ended",
            "fault": ", a fault",
        }
        place = f" at {_place(stop.statement.location)}" if stop.statement is not None and stop.reason != "end" else ""
        turns = "".join(f", {axis} {number}" for axis, number, _ in stop.loops)
        lines = [f"program {self._program(stop)}{turns}{why.get(stop.reason, '')}{place}"]
        if stop.fault is not None:
            lines.append(stop.fault.render())
            lines += [in_full(name, each, self.width) for name, each in self.session.around().items()]
        elif stop.statement is not None and stop.reason != "end":
            here = range(stop.statement.location.line, stop.statement.last_line + 1)
            lines.append(self._source(here, here))
        lines += [f"warning: {warning.message}" for warning in stop.warnings]
        return "\n".join(lines)

    def _line(self, text: str) -> int:
        if not text.isdecimal():
            raise fail("K0903", None, place=text or "''", what="is no line number", known=self.session.stops())
        return int(text)

    def _source(self, lines: Iterable[int], here: range) -> str:
        """Lines of the file shown, with an arrow where it stands, and a star where it will stop."""
        file, text = self.session.file, []
        for line in lines:
            mark = "->" if line in here else "* " if (file, line) in self.session.breaks else "  "
            text.append(f"{line:5} {mark} {linecache.getline(file, line).rstrip()}")
        return "\n".join(text)

    def _program(self, stop: Stop) -> str:
        names = (axis.name for axis in self.session.kernel.program_axes)
        return f"{shown(stop.program)} ({', '.join(f'{n} {at}' for n, at in zip(names, stop.program, strict=True))})"


def _place(location: Location) -> str:
    """FILE:LINE, the file as the user would name it."""
    near = os.path.relpath(location.file)
    return f"{location.file if near.startswith(os.pardir) else near}:{location.line}"


COMMANDS: dict[str, Callable[[Commands, str], str]] = {
    "step": Commands.step, "next": Commands.next, "finish": Commands.finish, "continue": Commands.proceed,
    "program": Commands.program, "where": Commands.where, "list": Commands.list, "print": Commands.print,
    "values": Commands.values, "memory": Commands.memory, "break": Commands.set_break, "clear": Commands.clear,
    "help": Commands.help, "quit": Commands.quit,
}  # fmt: skip
SHORT = {
    "s": "step", "n": "next", "f": "finish", "c": "continue", "w": "where", "l": "list", "p": "print", "v": "values",
    "m": "memory", "b": "break", "h": "help", "?": "help", "q": "quit",
}  # fmt: skip
REPEATED = frozenset({"step", "next", "finish", "continue"})
