"""The parts of the judge's judge. To add one: a class with a name and a `run`, and a line in `__main__.PARTS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Outcome:
    """A part's one line, and whether it is good enough."""

    summary: str
    ok: bool


Tell = Callable[[str], None]  # shows a line as soon as it is known


class Watch(Protocol):
    """Shows how far a part is while it takes what the processes give."""

    def __call__(self, what: str, items: Iterable[Item], total: int) -> Iterator[Item]: ...


class Part(Protocol):
    """One claim about the judge, measured."""

    name: str

    def run(self, seed: int, watch: Watch, tell: Tell) -> Outcome:
        """Measure it. What is drawn is drawn from the seed; details are told, the outcome is shown after them."""
