"""What is wrong with a text, raised where it is found; `text.parse_module` makes a KdslError of it."""

from __future__ import annotations


class Problem(Exception):
    """The text says something that is not TTIR. `line` and `column` count from 1 in it, if known."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def shown(text: str) -> str:
    """A piece of hostile text, short enough for a message."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
