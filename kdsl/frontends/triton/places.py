"""Locations: `loc("acc"(#loc7))` is the place in the author's source that `#loc7` names, and the name `acc`.

Where a function was inlined, a location is a call site: the place in that function, and the place of the call. The
author's place is the innermost that is not in Triton's own library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kdsl.diagnostics import Location
from kdsl.frontends.triton.constants import string
from kdsl.frontends.triton.module import Place
from kdsl.frontends.triton.problems import Problem, shown

DEEPEST = 64  # aliases, names and call sites within one another
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|#\w+|\w+|[\[\](),:]|<[^<>]*>')
_LIBRARY = re.compile(r"[\\/]triton[\\/]language[\\/]")


class Places:
    """The locations of one text, by its aliases {"#loc7": "loc(...)"}."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases
        self._frames: dict[str, tuple[Place, ...]] = {}
        self._places: dict[str, Place | None] = {}

    def find(self, text: str) -> Place | None:
        """The author's place that `loc(...)` stands for; None if it is not known. Raises Problem."""
        if text not in self._places:
            frames = self._read(text, 0)
            own = [frame for frame in frames if not _LIBRARY.search(frame.location.file)]
            self._places[text] = own[0] if own else frames[-1] if frames else None
        return self._places[text]

    def _read(self, text: str, depth: int) -> tuple[Place, ...]:
        """The places within one another that `loc(...)` stands for, the innermost first."""
        reader = _Reader(text, self, depth)
        if (reader.take(), reader.take()) != ("loc", "("):
            raise Problem(f"expected a location, got {shown(text)}")
        frames = reader.location(depth)
        if reader.take() != ")" or reader.take():
            raise Problem(f"expected the end of a location in {shown(text)}")
        return frames

    def alias(self, name: str, depth: int) -> tuple[Place, ...]:
        """The places of an alias, read once."""
        if name not in self._frames:
            if name not in self._aliases:
                raise Problem(f"the location {shown(name)} is not defined")
            self._frames[name] = self._read(self._aliases[name], depth + 1)
        return self._frames[name]


class _Reader:
    def __init__(self, text: str, places: Places, depth: int) -> None:
        self.text = text
        self.tokens = _TOKEN.findall(text)
        self.position = 0
        self.places = places

    def take(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1] if self.position <= len(self.tokens) else ""

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def expect(self, token: str) -> None:
        if (got := self.take()) != token:
            raise Problem(f"expected {token!r} in {shown(self.text)}, got {shown(got)}")

    def location(self, depth: int) -> tuple[Place, ...]:
        if depth > DEEPEST:
            raise Problem("locations are nested too deeply, or define each other")
        token = self.take()
        if token == "unknown":
            return ()
        if token.startswith("#"):
            return self.places.alias(token, depth)
        if token == "callsite":
            self.expect("(")
            callee = self.location(depth + 1)
            self.expect("at")
            frames = callee + self.location(depth + 1)
            self.expect(")")
            if len(frames) > DEEPEST:
                raise Problem("a location has too many call sites")
            return frames
        if token == "fused":
            if self.peek().startswith("<"):
                self.take()
            return self.first_of_several(depth)
        if token.startswith('"'):
            return self.named(string(token), depth)
        raise Problem(f"expected a location, got {shown(token)} in {shown(self.text)}")

    def first_of_several(self, depth: int) -> tuple[Place, ...]:
        self.expect("[")
        found = [self.location(depth + 1)]
        while self.peek() == ",":
            self.take()
            found.append(self.location(depth + 1))
        self.expect("]")
        return next((frames for frames in found if frames), ())

    def named(self, name: str, depth: int) -> tuple[Place, ...]:
        """`"file":line:column`, `"file":line:column to :column`, `"name"(location)` or `"name"`."""
        if self.peek() == ":":
            line, column = self.number(), self.number()
            end_column = None
            if self.peek() == "to":
                self.take()
                if self.peek() == ":":
                    end_column = self.number()
                else:  # on a later line, which `Location` does not hold
                    self.take()
                    self.number()
            return (Place(Location(name, line, column, end_column)),)
        if self.peek() != "(":
            return ()
        self.take()
        frames = self.location(depth + 1)
        self.expect(")")
        if not frames:
            return ()
        inner, *outer = frames
        return (Place(inner.location, (name, *inner.names)), *outer)

    def number(self) -> int:
        self.expect(":")
        token = self.take()
        if not (token.isdecimal() and len(token) < 10):
            raise Problem(f"expected a line or a column in {shown(self.text)}, got {shown(token)}")
        return int(token)
