"""Comparing a target's arrays with the oracle's, under error bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from kdsl.ir.meaning import Array

UNDECIDED_ALLOWED = 0.01  # the share of elements that may hang on a comparison that rounding can flip


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
    """`error_used`: the largest |difference| / bound over the decided elements; above 1 there is a `worst` element.

    0/0 is 0, x/0 is infinite. `undecided` counts elements without a finite bound, `elements` all.
    """

    error_used: float = 0.0
    undecided: int = 0
    elements: int = 0
    worst: Difference | None = None

    @property
    def undecided_fraction(self) -> float:
        return self.undecided / self.elements if self.elements else 0.0


def compare(actual: Mapping[str, Array], expected: Mapping[str, Array], bounds: Mapping[str, Array]) -> Comparison:
    """Compare all outputs. NaN matches NaN and infinities match by sign, whatever the bound, unless it is infinite.

    Raises OutputError.
    """
    return merge(compare_array(name, actual.get(name), expected[name], bounds[name]) for name in expected)


def compare_array(name: str, actual: Array | None, expected: Array, bound: Array) -> Comparison:
    """Compare one output. Raises OutputError."""
    if actual is None:
        raise OutputError(f"the output {name} is missing")
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        got, wanted = (f"{array.dtype}{list(array.shape)}" for array in (actual, expected))
        raise OutputError(f"the output {name} is {got}, expected {wanted}")
    used = np.where(np.isinf(bound), 0.0, _error_used(actual, expected, bound))
    undecided = int(np.count_nonzero(np.isinf(bound)))
    if not used.size:
        return Comparison()
    index = tuple(int(place) for place in np.unravel_index(int(np.argmax(used)), used.shape))
    worst = None
    if used[index] > 1:
        values = float(actual[index]), float(expected[index])
        worst = Difference(name, index, *values, float(bound[index]))
    return Comparison(float(used[index]), undecided, used.size, worst)


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
        total = Comparison(
            max(total.error_used, other.error_used),
            total.undecided + other.undecided,
            total.elements + other.elements,
            worse.worst,
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
