"""The author's statements, for a debugger: where an op comes from, and what the names there stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kdsl.diagnostics import Location


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement, met once: an unrolled loop has one for each turn. Compares by identity.

    `last_line` is where it ends, or where its body starts. `names` is what each name stands for before the statement
    (IR values, and what the front end has for sizes, index variables, tensors), `caller` the statement that called the
    helper in which this one is.
    """

    location: Location
    last_line: int
    names: Mapping[str, Any]
    caller: Statement | None = None

    @property
    def depth(self) -> int:
        """How many calls of helpers are around it."""
        return sum(1 for _ in self.callers())

    def callers(self) -> Iterator[Statement]:
        """The statements that called, innermost first."""
        caller = self.caller
        while caller is not None:
            yield caller
            caller = caller.caller
