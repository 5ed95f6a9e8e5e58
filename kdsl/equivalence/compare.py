"""Comparing a target's arrays with the oracle's, under error bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kdsl.ir.meaning import Array

UNDECIDED_ALLOWED = 0.01  # the share of elements that may hang on a comparison that rounding can flip
OUTSIDE_ALLOWED = 1e-4  # the share of elements that may be outside the expected bound


class OutputError(Exception):
    """An output that is missing, or has another shape or dtype than the kernel says: no question of accuracy."""


@dataclass(frozen=True)
class Difference:
    """The element of an array that differs most, and by how much it may."""

    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    bound: float

    def __str__(self) -> str:
        place = f"{self.output}[{', '.join(map(str, self.index))}]"
        allowed = f"may differ by {self.bound:.3g}" if self.bound else "must be equal"
        return f"{place} is {self.got:.9g}, expected {self.expected:.9g} ({allowed})"


@dataclass(frozen=True)
class Comparison:
    """`error_used`: the largest |difference| / hard bound over the decided elements; above 1 there is a `worst` one.

    0/0 is 0, x/0 is infinite. `undecided` counts elements without a finite bound, `elements` all. `outside` counts
    those outside the expected bound, of which `unexpected` is the furthest, by `expected_used`.
    """

    error_used: float = 0.0
    undecided: int = 0
    elements: int = 0
    worst: Difference | None = None
    outside: int = 0
    expected_used: float = 0.0
    unexpected: Difference | None = None

    @property
    def undecided_fraction(self) -> float:
        return self.undecided / self.elements if self.elements else 0.0

    @property
    def outside_fraction(self) -> float:
        return self.outside / self.elements if self.elements else 0.0

    @property
    def likely(self) -> bool:
        """Whether no more elements are outside the expected bound than chance explains: one for each 10^4 begun."""
        return self.outside <= math.ceil(OUTSIDE_ALLOWED * self.elements)


def compare(
    actual: Mapping[str, Array],
    expected: Mapping[str, Array],
    bounds: Mapping[str, Array],
    likely: Mapping[str, Array] | None = None,
) -> Comparison:
    """Compare all outputs under hard bounds and, where they are given, expected ones.

    NaN matches NaN and infinities match by sign, whatever the bound, unless it is infinite. Raises OutputError.
    """
    limits = {name: (bounds[name], (likely or {}).get(name)) for name in expected}
    return merge(compare_array(name, actual.get(name), expected[name], *limits[name]) for name in expected)


def compare_array(
    name: str, actual: Array | None, expected: Array, bound: Array, likely: Array | None = None
) -> Comparison:
    """Compare one output. Raises OutputError."""
    if actual is None:
        raise OutputError(f"the output {name} is missing")
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        got, wanted = (f"{array.dtype}{list(array.shape)}" for array in (actual, expected))
        raise OutputError(f"the output {name} is {got}, expected {wanted}")
    lost = np.isinf(bound)
    if not lost.size:
        return Comparison()

    def furthest(used: Array, limit: Array) -> tuple[float, Difference | None]:
        index = tuple(int(place) for place in np.unravel_index(int(np.argmax(used)), used.shape))
        difference = Difference(name, index, float(actual[index]), float(expected[index]), float(limit[index]))
        return float(used[index]), difference if used[index] > 1 else None

    used, worst = furthest(np.where(lost, 0.0, _error_used(actual, expected, bound)), bound)
    found = Comparison(used, int(np.count_nonzero(lost)), lost.size, worst)
    if likely is None:
        return found
    shares = np.where(lost, 0.0, _error_used(actual, expected, likely))
    used, unexpected = furthest(shares, likely)
    return replace(found, outside=int(np.count_nonzero(shares > 1)), expected_used=used, unexpected=unexpected)


def identical(actual: Mapping[str, Array], expected: Mapping[str, Array]) -> Comparison:
    """Compare bit for bit; all NaNs are one, for their signs and payloads mean nothing."""
    return merge(_identical(name, actual[name], expected[name]) for name in expected)


def _identical(name: str, actual: Array, expected: Array) -> Comparison:
    bits = f"u{expected.dtype.itemsize}"
    got, wanted = (np.ascontiguousarray(array).view(bits).reshape(array.shape) for array in (actual, expected))
    differs = np.asarray((got != wanted) & ((actual == actual) | (expected == expected)))
    if not differs.any():
        return Comparison(elements=differs.size)
    index = tuple(int(place) for place in np.unravel_index(int(np.argmax(differs)), differs.shape))
    worst = Difference(name, index, float(actual[index]), float(expected[index]), 0.0)
    return Comparison(float("inf"), 0, differs.size, worst)


def merge(comparisons: Iterable[Comparison]) -> Comparison:
    """All comparisons as one; the first of the worst elements is kept."""
    total = Comparison()
    for other in comparisons:
        worse = other if other.worst is not None and other.error_used > total.error_used else total
        rarer = other if other.unexpected is not None and other.expected_used > total.expected_used else total
        total = Comparison(
            max(total.error_used, other.error_used),
            total.undecided + other.undecided,
            total.elements + other.elements,
            worse.worst,
            total.outside + other.outside,
            max(total.expected_used, other.expected_used),
            rarer.unexpected,
        )
    return total


def _error_used(actual: Array, expected: Array, bound: Array) -> Array:
    got, wanted = actual.astype(np.float64), expected.astype(np.float64)
    same = (actual == expected) | ((got != got) & (wanted != wanted))
    with np.errstate(all="ignore"):
        difference = np.abs(got - wanted)
        ratio = np.where(bound == 0, np.inf, difference / bound)
    # A NaN or infinity on one side only is no finite number of bounds away.
    return np.where(same, 0.0, np.where(np.isfinite(difference), ratio, np.inf))
