"""A condition and its bounds hold on the same lanes, counted out."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest

from kdsl.analysis.conditions import Conditions, negated
from kdsl.analysis.validity import slacks
from kdsl.ir.kernel import Bound, walk
from kdsl.ir.text import parse_kernel

PLACES = range(-6, 7)
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
}


def conditions(compare: str) -> Conditions:
    text = f"""kernel compared(x: in i32[4]) {{
      axis i < 4
      axis j < 4
      %a: i32[i] = index {{form = 2*i}}
      %b: i32[j] = index {{form = j + 1}}
      %c: bool[i, j] = {compare} %a, %b
      %two: i32 = constant {{value = 2}}
      %d: bool[i] = {compare} %a, %two
      %both: bool[i, j] = and %c, %d
      %x: i32[i] = load x[i]
      %loaded: bool[i] = {compare} %a, %x
      %mixed: bool[i, j] = and %c, %loaded
    }}"""
    found = Conditions()
    for op in walk(parse_kernel(text).body):
        found.note(op)
    return found


def holds(bounds: tuple[Bound, ...] | None, i: int, j: int) -> bool:
    assert bounds is not None
    return all(slack.evaluate({"i": i, "j": j}) >= 0 for bound in bounds for slack in slacks(bound))


@pytest.mark.parametrize("name", COMPARE)
def test_a_comparison_of_forms_is_a_bound(name: str) -> None:
    found, compare = conditions(name), COMPARE[name]
    for i in PLACES:
        for j in PLACES:
            assert holds(found.bounds("c"), i, j) == compare(2 * i, j + 1)
            assert holds(found.bounds("both"), i, j) == (compare(2 * i, j + 1) and compare(2 * i, 2))
            if name != "eq":
                assert holds(negated(found.bounds("c")), i, j) != compare(2 * i, j + 1)


def test_what_is_no_single_end_has_no_negation_and_what_is_loaded_no_bound() -> None:
    found = conditions("eq")
    assert negated(found.bounds("c")) is None
    assert negated(conditions("lt").bounds("both")) is None
    assert found.bounds("loaded") is found.bounds("mixed") is negated(None) is None
