"""From a failing example to a small one: smaller sizes first, then plainer elements, as long as it still fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kdsl.diagnostics import KdslError
from kdsl.equivalence.cases import MOST_ELEMENTS, Case
from kdsl.equivalence.inputs import draw_for, without_extremes
from kdsl.runtime.examples import Binding

SEEDS = 3  # that are tried at each size
PLAIN = (0, 1)  # what elements are replaced by


def shrink(case: Case, seconds: float) -> tuple[Case, str]:
    """A case that fails, no larger than the given one which does, found within that time; and what fails of it."""
    search = _Search(case, time.monotonic() + seconds)
    search.sizes()
    if search.best.elements <= MOST_ELEMENTS:
        search.elements()
    return search.best, search.problem or case.problem() or "no difference any more"


class _Search:
    def __init__(self, case: Case, deadline: float) -> None:
        self.best, self.deadline = case, deadline
        self.problem: str | None = None

    def fails(self, case: Case) -> bool:
        """Whether the case still fails; then it is the best one. What does not even run is no counter-example."""
        if time.monotonic() > self.deadline:
            return False
        try:
            problem = case.problem()
        except (KdslError, ZeroDivisionError):
            return False
        if problem is not None:
            self.best, self.problem = case, problem
        return problem is not None

    def sizes(self) -> None:
        again = True
        while again:
            again = any(self.size(name) for name in list(self.best.trial.sizes))

    def size(self, name: str) -> bool:
        """Whether a smaller size of that name fails, too."""
        now = self.best.trial.sizes[name]
        for smaller in dict.fromkeys((1, 2, now // 2, now - 1)):
            if 1 <= smaller < now and self.resized(name, smaller):
                return True
        return False

    def resized(self, name: str, size: int) -> bool:
        """Whether the case fails at that size, for inputs drawn from its seed or another: other ones fit it."""
        trial = replace(self.best.trial, sizes={**self.best.trial.sizes, name: size})
        first, second = self.best.seed
        return any(self.redrawn(trial, (first, second + more)) for more in range(SEEDS))

    def redrawn(self, trial: Binding, seed: tuple[int, int]) -> bool:
        try:
            drawn = draw_for(trial, trial.tiles, self.best.kind, seed)
        except (KdslError, ZeroDivisionError):
            return False
        arguments = drawn if self.best.target is None else without_extremes(drawn)
        return self.fails(replace(self.best, trial=trial, seed=seed, arguments=arguments))

    def elements(self) -> None:
        for name, value in list(self.best.arguments.items()):
            if np.ndim(value) and np.size(value):
                for number in PLAIN:
                    self.plainer(name, number)

    def plainer(self, name: str, number: int) -> None:
        """Replace runs of elements by a number, all of them first, then halves of halves."""
        size = np.size(self.best.arguments[name])
        for start, stop in _runs(size):
            array: Any = np.array(self.best.arguments[name])
            part = array.reshape(-1)[start:stop]
            if not np.isin(part.astype(np.float64), PLAIN[: PLAIN.index(number) + 1]).all():
                part[...] = number
                self.fails(replace(self.best, arguments={**self.best.arguments, name: array}))


def _runs(size: int) -> Iterator[tuple[int, int]]:
    length = size
    while length:
        for start in range(0, size, length):
            yield start, min(start + length, size)
        length //= 2
