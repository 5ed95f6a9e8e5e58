"""kdsl explain: the documentation of a diagnostic."""

from __future__ import annotations

from typing import Annotated

import typer

from kdsl import diagnostics


def explain(code: Annotated[str, typer.Argument(metavar="CODE", help="As in K0204.", show_default=False)]) -> None:
    """What a diagnostic means, and what to do about it."""
    try:
        text = diagnostics.explain(code.upper())
    except KeyError:
        from kdsl.diagnostic_codes import CODES

        raise typer.BadParameter(f"there is no {code}; the codes are {', '.join(CODES)}", param_hint="CODE") from None
    typer.echo(text, nl=False)
