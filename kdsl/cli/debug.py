"""kdsl debug: stepping through the programs of a kernel at a prompt."""

from __future__ import annotations

import contextlib
import shutil
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdsl.cli import screen
from kdsl.cli.options import SettingsOption, SourceArgument, parse_tiles, pick_example
from kdsl.diagnostics import KdslError, fail

if TYPE_CHECKING:
    from kdsl.debugger import Commands
    from kdsl.runtime.loading import Loaded

PROMPT = "(kdsl) "
WIDTH = 100  # of lines where there is no terminal


def debug(
    source: SourceArgument,
    program: Annotated[
        str, typer.Option("--program", metavar="P[,P]", help="Its place in the grid.", show_default="the first")
    ] = "",
    example: Annotated[int, typer.Option("--example", min=1, metavar="N", help="Which example to run.")] = 1,
    settings: SettingsOption = None,
    inputs: Annotated[
        Literal["exact", "generic", "special", "cancelling", "shifted"],
        typer.Option("--inputs", help="Small integers, normal numbers, with NaNs and extremes, or sums that cancel."),
    ] = "exact",
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="S", help="What the inputs are drawn from.")] = 0,
) -> None:
    """Stop at the lines of a kernel and at its breakpoints, show tiles, step. `help` there lists the commands."""
    from kdsl.debugger import Commands
    from kdsl.debugger.start import start

    each = _only_kernel(source)
    chosen = pick_example(each.kernel, example)
    session = start(each.kernel, chosen, parse_tiles(settings or ()), inputs, (seed, example - 1), program)
    commands = Commands(session, shutil.get_terminal_size().columns - 1 if sys.stdout.isatty() else WIDTH)
    _show(f"{each.label}, {chosen}; {inputs} inputs, seed {seed}; `help` lists the commands\n{commands.where('')}")
    try:
        _converse(commands)
    finally:
        session.close()


def _only_kernel(source: str) -> Loaded:
    from kdsl.runtime.loading import load

    first, *others = load(source)
    if others:
        known = ", ".join(dict.fromkeys(each.kernel.name for each in (first, *others)))
        name = first.kernel.name
        raise fail("K0907", None, path=source, count=len(others) + 1, first=name, known=known)
    return first


def _converse(commands: Commands) -> None:
    """Read commands until the user leaves. Ctrl-C at the prompt drops the line, Ctrl-D leaves."""
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if at_terminal:
        _edit_lines(commands)
    while not commands.ended:
        try:
            line = input(PROMPT if at_terminal else "")
        except EOFError:
            if at_terminal:
                print()
            return
        except KeyboardInterrupt:
            print("\n`quit` or Ctrl-D leaves")
            continue
        try:
            _show(commands.run(line))
        except KdslError as error:
            screen.show_diagnostic(error.render())


def _edit_lines(commands: Commands) -> None:
    """Give the prompt a history and completion where Python has them."""
    with contextlib.suppress(ImportError):
        import readline

        def complete(text: str, number: int) -> str | None:
            words = commands.complete(text)
            return words[number] if number < len(words) else None

        readline.set_completer(complete)
        readline.parse_and_bind("tab: complete")


def _show(text: str) -> None:
    if not text:
        return
    if not sys.stdout.isatty():
        print(text, flush=True)
        return
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)
    styled.highlight_regex(r"(?m)^ *\d+ ->.*$", "bold")
    styled.highlight_regex(r"error\[K\d+\]", "bold red")
    Console().print(styled, soft_wrap=True)
