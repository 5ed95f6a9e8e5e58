"""Diagnostics: what a user is told, with a code, the place in their source, and what to do.

Each kind of mistake is one row of `kdsl/diagnostic_codes.py`. `fail(code, location, ...)` makes the exception; `render`
shows it with the source line and a caret; `explain` is the longer text behind `kdsl explain K0123`.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    """A place in a user's file. Lines and columns count from 1; `end_column` is one past the last character."""

    file: str
    line: int
    column: int = 1
    end_column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Code:
    """A kind of mistake: a message with {fields}, a hint that says what to do, and a page of explanation."""

    message: str
    hint: str
    explanation: str


class KdslError(Exception):
    """A mistake in what the user gave, or a refusal: it names the code, the place, the reason and the way out."""

    def __init__(self, code: str, location: Location | None, **fields: object) -> None:
        from kdsl.diagnostic_codes import CODES

        self.code = code
        self.location = location
        self.message = CODES[code].message.format(**fields)
        self.hint = CODES[code].hint.format(**fields)
        super().__init__(self.message)

    def render(self) -> str:
        """The diagnostic as shown on a terminal: position, message, source line with a caret, hint."""
        lines = [f"error[{self.code}]: {self.message}"]
        if self.location is not None:
            lines.append(f"  --> {self.location}")
            source = linecache.getline(self.location.file, self.location.line).rstrip("\n")
            if source:
                lines += _excerpt(self.location, source)
        lines.append(f"  help: {self.hint}")
        lines.append(f"  (kdsl explain {self.code})")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


def _excerpt(location: Location, source: str) -> list[str]:
    number = str(location.line)
    end = location.end_column if location.end_column is not None else location.column + 1
    carets = "^" * max(1, min(end, len(source) + 1) - location.column)
    # Tabs are kept so that the caret stands under the character that it means.
    indent = "".join("\t" if character == "\t" else " " for character in source[: location.column - 1])
    return [f"  {number} | {source}", f"  {' ' * len(number)} | {indent}{carets}"]


def fail(code: str, location: Location | None, **fields: object) -> KdslError:
    """The exception for a code; `raise fail(...)` reads as what it is."""
    return KdslError(code, location, **fields)


def explain(code: str) -> str:
    """The documentation of a code. Raises KeyError for a code that does not exist."""
    from kdsl.diagnostic_codes import CODES

    entry = CODES[code]
    return f"{code}: {entry.message}\n\n{entry.explanation.strip()}\n\nWhat to do: {entry.hint}\n"
