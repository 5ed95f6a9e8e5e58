"""Ends of integer values: whatever the operands between theirs, the results of NumPy lie between the result's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kdsl.equivalence.interval_rules import NEGATED, RULES, SWAPPED, compared
from kdsl.ir.ops import OPS

BINARY = (
    *("add", "sub", "mul", "floordiv", "floormod", "truncdiv", "maximum", "minimum", "maxnum", "minnum"),
    *("and", "or", "xor", "shl", "shr"),
)
ENDS = [(-7, -2), (-3, 4), (0, 0), (0, 5), (1, 3), (2, 9)]


@pytest.mark.parametrize("name", BINARY)
def test_results_of_two_operands_lie_between_the_ends(name: str) -> None:
    function = OPS[name].pointwise
    assert function is not None
    known = 0
    for left, right in itertools.product(ENDS, ENDS):
        ends = RULES[name](left, right)
        if ends is None:
            continue
        known += 1
        x, y = np.meshgrid(np.arange(left[0], left[1] + 1), np.arange(right[0], right[1] + 1))
        results = function(x.astype(np.int64), y.astype(np.int64))
        assert ends[0] <= results.min()
        assert results.max() <= ends[1]
    assert known >= 6


@pytest.mark.parametrize("name", ["neg", "abs", "not"])
def test_results_of_one_operand_lie_between_the_ends_and_reach_them(name: str) -> None:
    function = OPS[name].pointwise
    assert function is not None
    for ends in ENDS:
        results = function(np.arange(ends[0], ends[1] + 1, dtype=np.int64))
        assert RULES[name](ends) == (results.min(), results.max())


@pytest.mark.parametrize("name", list(NEGATED))
def test_a_comparison_narrows_to_the_numbers_for_which_it_may_hold(name: str) -> None:
    holds = OPS[name].pointwise
    assert holds is not None
    for other in ENDS:
        low, high = compared(name, other)
        for number in range(-12, 13):
            others = np.arange(other[0], other[1] + 1)
            possible = bool(holds(np.int64(number), others).any())
            assert possible <= (low <= number <= high)
            if name != "ne":
                assert possible == (low <= number <= high)


def test_comparisons_are_negated_and_swapped_as_numbers_say() -> None:
    x, y = np.meshgrid(np.arange(3), np.arange(3))
    holds = {name: OPS[name].pointwise for name in NEGATED}
    for name, function in holds.items():
        negated, swapped = holds[NEGATED[name]], holds[SWAPPED[name]]
        assert function is not None and negated is not None and swapped is not None
        assert (function(x, y) != negated(x, y)).all()
        assert (function(x, y) == swapped(y, x)).all()
