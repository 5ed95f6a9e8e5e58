"""How verdicts look on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from kdsl.equivalence.verdict import Outcome, Verdict

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


def _reason(row: Verdict) -> str:
    place = f"{row.file}:{row.line}" if row.file and row.line else row.file
    parts = [part for part in (row.code, place, row.message) if part]
    if row.declared_refusal is not None:
        parts.append("(as declared)" if row.holds else f"(declared {row.declared_refusal})")
    return " ".join(parts)
