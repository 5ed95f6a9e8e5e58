"""That implementations as wrong as a table allows stay within the bounds, and that worse ones are found."""

from __future__ import annotations

import pytest

from bench.soundness import ROWS, Case, cases, perturbed, soundness
from kdsl.equivalence.bounds import error_bounds
from kdsl.equivalence.compare import compare
from kdsl.equivalence.inputs import draw_inputs
from kdsl.equivalence.perturbation import perturbed_run
from kdsl.interpreter.accuracy import ACCURACY
from kdsl.runtime.target import Accuracy

EVERY: dict[str, Case] = {case.name: case for case in cases()}


@pytest.mark.parametrize("name", list(EVERY))
def test_no_conforming_implementation_leaves_the_hard_bounds(name: str) -> None:
    for inputs in range(2):
        for found in perturbed(EVERY[name], ACCURACY, (1, inputs), 3):
            assert found.worst is None, str(found.worst)


def test_the_summary_counts_runs_and_says_whether_all_held() -> None:
    found = soundness(25, seed=3)
    assert (found.runs, found.holds, found.failures) == (25, True, ())
    assert str(found).endswith("soundness: 25 of 25 runs within the hard bounds")


@pytest.mark.parametrize("name", ["welford", "recurrence", "functions", "atomic"])
def test_an_implementation_worse_than_its_table_is_outside(name: str) -> None:
    assert name in ROWS
    case = EVERY[name]
    arguments = {**draw_inputs(case.kernel, "generic", (0,)), **case.fixed}
    bounded = error_bounds(case.kernel, arguments, ACCURACY)
    far_off = {(op, "*"): Accuracy(2.0**14) for op in ("mul", "exp", "log")}
    assert compare(perturbed_run(case.kernel, arguments, far_off, 1), bounded.values, bounded.bounds).error_used > 1


@pytest.mark.slow
def test_ten_thousand_runs_stay_within_the_hard_bounds() -> None:
    found = soundness(10_000, seed=0)
    assert found.holds, str(found)
