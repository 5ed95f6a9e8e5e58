"""What a user sees: results on standard output; progress, diagnostics and notices on standard error.

On a terminal there is colour and one moving line; in a pipe there are plain lines, nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import io
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@functools.cache
def _stderr() -> Console:
    """One for all, so that a diagnostic and the moving line do not write over each other."""
    from rich.console import Console

    return Console(stderr=True)


def say(text: str) -> None:
    """A line on standard error."""
    sys.stderr.write(f"{text}\n")  # in one piece: several threads say how far they are
    sys.stderr.flush()


def show_diagnostic(rendered: str) -> None:
    """A rendered diagnostic, on standard error."""
    if not sys.stderr.isatty():
        say(rendered)
        return
    from rich.text import Text

    text = Text(rendered)
    text.highlight_regex(r"^error\[K\d+\]", "bold red")
    text.highlight_regex(r"(?m)(?<=\| )\s*\^+$", "red")
    text.highlight_regex(r"(?m)^  --> .*$", "blue")
    text.highlight_regex(r"(?m)^  help:", "bold cyan")
    _stderr().print(text, soft_wrap=True)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that says what is being done now."""
    if not sys.stderr.isatty():
        yield _say_stages()
        return
    from rich.markup import escape

    with _stderr().status("") as status:
        yield lambda text: status.update(escape(text))


def _say_stages() -> Callable[[str], None]:
    """Says each stage once: a log wants no line for each of its examples, which a moving line would count."""
    said: set[str] = set()

    def say_stage(text: str) -> None:
        stage, _, _ = text.partition(": example ")
        if stage not in said:
            said.add(stage)
            say(stage)

    return say_stage


def show_table(table: Table) -> None:
    """The table on standard output: as wide as the terminal, or as wide as it is."""
    from rich.console import Console
    from rich.measure import Measurement

    if sys.stdout.isatty():
        Console().print(table)
        return
    table.box, table.pad_edge = None, False
    wide = Console(file=io.StringIO(), width=1 << 20, color_system=None)
    width = Measurement.get(wide, wide.options, table).maximum
    plain = Console(file=io.StringIO(), width=width, color_system=None)
    plain.print(table)
    assert isinstance(plain.file, io.StringIO)
    for line in plain.file.getvalue().splitlines():
        print(line.rstrip())
