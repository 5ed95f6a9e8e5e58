from __future__ import annotations

import pytest

from bench.usefulness import LARGEST_RATIO, Row, median_ratio, table, usefulness


def row(observed: float, expected: float) -> Row:
    return Row("softmax", "M=3", "cpu", observed, expected, 2 * expected, 0.0)


def test_the_median_leaves_out_rows_without_any_error() -> None:
    rows = [row(1.0, 10.0), row(0.0, 10.0), row(1.0, 30.0), row(1.0, 1000.0)]
    assert median_ratio(rows) == 30
    assert table(rows).splitlines()[-1] == "usefulness: median ratio 30.0, at most 100"
    assert " - " not in table(rows[:1]) and table(rows).splitlines()[2].endswith("-")


@pytest.mark.slow
def test_expected_bounds_are_within_100_times_the_largest_error() -> None:
    rows = usefulness(seed=0)
    assert median_ratio(rows) <= LARGEST_RATIO, table(rows)
    assert all(each.outside <= 1e-4 for each in rows), table(rows)
