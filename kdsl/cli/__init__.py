"""The command `kdsl`. One file a command; what they share is in options.py, screen.py and tables.py.

Exit status: 0 all holds, 1 something is refused or undecided, 2 wrong usage, 3 a mismatch, 4 an error of kdsl's own,
130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.main import get_command

import kdsl
from kdsl.cli import screen
from kdsl.cli.build import build
from kdsl.cli.debug import debug
from kdsl.cli.diff import diff
from kdsl.cli.explain import explain
from kdsl.cli.show import show
from kdsl.cli.targets import targets
from kdsl.cli.verify import verify
from kdsl.diagnostics import KdslError
from kdsl.runtime import unexpected

# Plain help and usage errors: they must read the same in a terminal, a log and a pipe.
app = typer.Typer(name="kdsl", no_args_is_help=True, add_completion=False, rich_markup_mode=None)
for command in (targets, build, verify, diff, show, debug, explain):
    app.command()(command)

# Mistakes in the command line rather than in a kernel.
USAGE = frozenset({"K0401", "K0402", "K0403", "K0404", "K0405", "K0408", "K0409", "K0503", "K0504", "K0901", "K0907"})


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kdsl {kdsl.__version__}")
        raise typer.Exit()


@app.callback()
def _kdsl(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Tile kernels written once: built for GPU, TPU and x86, and judged by a NumPy oracle."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (None: the process's own) and return the exit status."""
    try:
        get_command(app)(args=arguments, prog_name="kdsl")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if status == 130:
            screen.say("kdsl: interrupted")
        return status
    except KdslError as error:
        screen.show_diagnostic(error.render())
        return 2 if error.code in USAGE else 1
    except Exception as error:
        sys.stdout.flush()
        screen.say(f"kdsl: {unexpected.summary(error)}")
        return 4
    return 0
