"""How verdicts look on a terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from kdsl.equivalence.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from kdsl.equivalence.explanation import Explanation

SMALLEST_SHARE = 0.005  # of a bound, for a row of its own
MESSAGE = 400  # characters that are shown; compilers write pages

STYLES = {
    Outcome.BUILT: "cyan",
    Outcome.COMPILED: "cyan",
    Outcome.VERIFIED: "green",
    Outcome.UNDECIDED: "yellow",
    Outcome.MISMATCH: "bold red",
    Outcome.REFUSED: "yellow",
    Outcome.ERROR: "bold red",
}


def verdict_table(rows: Sequence[Verdict]) -> Table:
    """One line for each verdict. A declared refusal is marked: "as declared", or with the code that did not come."""
    table = Table("kernel", "target", "arch", "form", "verdict", "of bound", "why")
    for row in rows:
        table.add_row(
            Text(row.kernel),  # Text: a message may hold brackets, which are not markup
            row.target,
            row.arch or "",
            row.form or "",
            Text(row.verdict, style=STYLES[row.verdict]),
            "" if row.error_used_of_bound is None else f"{row.error_used_of_bound:.2g}",
            Text(_reason(row)),
        )
    return table


def explanation_title(found: Explanation) -> str:
    """What the table of an explanation is about."""
    head = f"{found.kernel} on {found.target}, {found.inputs}: "
    if found.element is None:
        return head + "no element is decided"
    return head + f"{found.element} = {found.value:.6g}, hard bound {found.hard:.3g}, expected {found.expected:.3g}"


def explanation_table(found: Explanation) -> Table:
    """The lines that contribute to a bound, as shares of it; those of less than 0.5% together in the last row."""
    table = Table("of the bound", "line", "ops")
    for part in found.parts:
        if part.share >= SMALLEST_SHARE:
            place = f"{_nearby(part.file)}:{part.line}" if part.line else part.file
            table.add_row(f"{part.share:.1%}", Text(place), Text(", ".join(part.ops)))
    rest = sum(part.share for part in found.parts if part.share < SMALLEST_SHARE)
    if rest:
        table.add_row(f"{rest:.1%}", "all other lines", "")
    return table


def _reason(row: Verdict) -> str:
    file = _nearby(row.file) if row.file else None
    place = f"{file}:{row.line}" if file and row.line else file
    message = shorten(row.message, MESSAGE, placeholder=" ...") if row.message else None
    parts = [part for part in (row.code, place, message) if part]
    if row.declared_refusal is not None:
        parts.append("(as declared)" if row.holds else f"(declared {row.declared_refusal})")
    return " ".join(parts)


def _nearby(file: str) -> str:
    """A file below the working folder as the user would name it."""
    relative = os.path.relpath(file)
    return file if relative.startswith(os.pardir) else relative
