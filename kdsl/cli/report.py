"""The verdicts of one command: collected, shown, written, turned into an exit status."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kdsl.cli import screen
from kdsl.cli.tables import verdict_table
from kdsl.diagnostics import fail
from kdsl.equivalence.verdict import Outcome, Verdict, VerdictReport
from kdsl.runtime.target import target_names
from kdsl.runtime.versions import versions

RAN = frozenset({Outcome.COMPILED, Outcome.VERIFIED, Outcome.UNDECIDED, Outcome.MISMATCH})


@dataclass
class Collected:
    """The rows of a command so far."""

    rows: list[Verdict] = field(default_factory=list)

    def exit_status(self) -> int:
        return VerdictReport(self.rows, {}).exit_status()

    def report(self) -> VerdictReport:
        """With the versions of the tool-chains that took part."""
        involved = {row.target for row in self.rows if row.arch is not None or row.verdict in RAN}
        return VerdictReport(self.rows, versions(name for name in target_names() if name in involved))


@contextlib.contextmanager
def reported(json: Path | None) -> Iterator[Collected]:
    """Whatever ends the work, what is known by then is shown, and written if a file is named.

    Raises KdslError K0409 if it cannot be written.
    """
    collected = Collected()
    try:
        yield collected
    finally:
        if collected.rows:
            screen.show_table(verdict_table(collected.rows))
        if json is not None:
            try:
                collected.report().write(json)
            except OSError as error:
                raise fail("K0409", None, path=json, problem=error.strerror or error) from error
