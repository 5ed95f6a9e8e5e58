from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kdsl.equivalence.verdict import Outcome, Verdict, VerdictReport
from kdsl.equivalence.verify import verify
from kdsl.lang.kernel import Kernel
from tests.equivalence import targets
from tests.equivalence.examples import (
    SMALL,
    extremes,
    half_written,
    leaky,
    rounding_sign,
    scaled,
    totals,
    with_examples,
)
from tests.equivalence.targets import FakeTarget
from tests.equivalence.test_verdict import VALIDATOR, VERSIONS

Judge = Callable[..., Verdict]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    """The row of a fake target for a kernel, on few examples."""

    def row(kernel: Kernel, target: FakeTarget, examples: int = 2, **options: Any) -> Any:
        monkeypatch.setattr("kdsl.equivalence.verify.target_names", lambda: ("fake",))
        monkeypatch.setattr("kdsl.equivalence.verify.find_target", lambda name: target)
        rows = verify(kernel, source="tests:kernel", targets=["fake"], examples=examples, **options)
        VALIDATOR.validate(VerdictReport(rows, VERSIONS).to_json())
        assert rows[0].target == "numpy"
        return rows[1] if len(rows) == 2 else rows[1:]

    yield row


# -- what is right ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(SMALL))
def test_code_that_does_what_the_oracle_does_is_verified(name: str, judge: Judge) -> None:
    target = FakeTarget()
    row = judge(SMALL[name], target, examples=3)
    assert (row.verdict, row.error_used_of_bound, row.undecided_fraction) == (Outcome.VERIFIED, 0.0, 0.0)
    assert (row.form, row.arch, row.holds) == ("whole", None, True)
    assert row.checks[1].startswith("3 examples: T in {f32, bf16}")
    assert target.emitted == 2  # once for each dtype


def test_the_oracle_is_judged_whether_asked_for_or_not() -> None:
    for targets_asked in ([], ["numpy"]):
        (row,) = verify(extremes, source="tests:extremes", targets=targets_asked, examples=3)
        assert (row.target, row.verdict, row.kernel) == ("numpy", Outcome.VERIFIED, "tests:extremes")
        assert row.seconds is not None
        assert row.seconds > 0
        assert any("same bits whatever lies beyond the edges" in check for check in row.checks)


def test_progress_names_the_kernel_the_target_and_the_example() -> None:
    told: list[str] = []
    verify(extremes, source="tests:extremes", targets=[], examples=2, progress=told.append)
    assert told == ["tests:extremes: numpy: example 1 of 2", "tests:extremes: numpy: example 2 of 2"]


def test_equal_seeds_judge_the_same_examples(judge: Judge) -> None:
    seen: list[list[bytes]] = []
    for seed in (7, 7, 8):
        seen.append([])

        def record(kernel: Any, arguments: Any) -> Any:
            seen[-1] += [value.tobytes() for value in arguments.values()]
            return FakeTarget().execute(kernel, arguments)

        judge(extremes, FakeTarget(record), seed=seed)
    assert seen[0] == seen[1] != seen[2]


# -- planted faults --------------------------------------------------------------------------------------------------

FAULTS = {
    "mask dropped, softmax": ("softmax", targets.changed(targets.mask_dropped)),
    "mask dropped, layernorm": ("layernorm", targets.changed(targets.mask_dropped)),
    "mask dropped, matmul": ("matmul", targets.changed(targets.mask_dropped)),
    "mask dropped, attention": ("attention", targets.changed(targets.mask_dropped)),
    "index shifted, vector_add": ("vector_add", targets.index_shifted),
    "index shifted, matmul": ("matmul", targets.index_shifted),
    "last iteration skipped, matmul": ("matmul", targets.last_iteration_skipped),
    "last iteration skipped, attention": ("attention", targets.last_iteration_skipped),
    "bf16 accumulators, matmul": ("matmul", targets.bf16_accumulators),
    "bf16 accumulators, softmax": ("softmax", targets.bf16_accumulators),
    "one element wrong, layernorm": ("layernorm", targets.one_element_wrong),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_planted_fault_is_a_mismatch_that_names_the_example_and_the_element(fault: str, judge: Judge) -> None:
    name, execute = FAULTS[fault]
    row = judge(SMALL[name], FakeTarget(execute))
    assert row.verdict is Outcome.MISMATCH
    assert row.error_used_of_bound is not None
    assert row.error_used_of_bound > 1
    output = {"matmul": "c", "vector_add": "out", "attention": "out"}.get(name, "y")
    for part in ("T=", "inputs (seed 0)", f"differs from the oracle: {output}[", "expected"):
        assert part in (row.message or "")


def test_a_bias_within_the_hard_bound_is_a_mismatch_that_gives_the_share(judge: Judge) -> None:
    def biased(kernel: Any, arguments: Any) -> Any:
        """Sums that round are too small, as if their additions cut off."""
        (total,) = FakeTarget().execute(kernel, arguments).values()
        return {"total": np.where(total == np.rint(total), total, total * np.float32(1 - 300 * 2.0**-24))}

    wide = with_examples(totals, {"M": 300, "N": 1000})
    assert judge(wide, FakeTarget(), examples=1).checks[-1] == "outside the expected rounding error: 0 of 600 elements"
    row = judge(wide, FakeTarget(biased), examples=1)
    assert row.verdict is Outcome.MISMATCH
    assert row.error_used_of_bound is not None and row.error_used_of_bound < 1
    assert "of 600 elements are outside the expected rounding error, of which 1 in 10^4 may be" in str(row.message)
    assert "the furthest: total[" in str(row.message)


@pytest.mark.parametrize("execute", [targets.outputs_swapped, targets.forgets_an_output])
def test_outputs_that_are_swapped_or_missing_are_a_mismatch(execute: targets.Run, judge: Judge) -> None:
    assert judge(extremes, FakeTarget(execute)).verdict is Outcome.MISMATCH


def test_a_fault_of_the_kernels_own_is_a_mismatch_on_the_oracle() -> None:
    (row,) = verify(half_written, source="tests:half_written", targets=[], examples=1)
    assert row.verdict is Outcome.MISMATCH
    assert row.code == "K0605"
    assert "40 of 80 elements of out are never written, out[1, 0] first" in (row.message or "")


def test_code_that_leaves_out_what_the_kernel_leaves_out_is_a_mismatch_too(judge: Judge) -> None:
    """NaN was in both outputs before, so that what neither wrote looks equal."""
    row = judge(half_written, FakeTarget())
    assert row.verdict is Outcome.MISMATCH
    assert "never written" in str(row.message)


def test_code_that_changes_its_inputs_does_not_change_what_it_is_judged_by(judge: Judge) -> None:
    def destroys(kernel: Any, arguments: Any) -> Any:
        written = FakeTarget().execute(kernel, arguments)
        for value in arguments.values():
            value[...] = 0
        return written

    assert judge(extremes, FakeTarget(destroys)).verdict is Outcome.VERIFIED


# -- what is neither right nor wrong ---------------------------------------------------------------------------------


def test_results_that_only_rounding_decides_are_undecided(judge: Judge) -> None:
    row = judge(rounding_sign, FakeTarget())
    assert row.verdict is Outcome.UNDECIDED
    assert row.undecided_fraction >= 0.5  # of the generic inputs all
    assert not row.holds
    assert judge(leaky, FakeTarget()).verdict is Outcome.VERIFIED


def test_a_refusal_has_the_code_the_authors_line_and_what_to_do(judge: Judge) -> None:
    refuses = targets.refuses("K0301", problem="it has no stores", instead="use another target")
    row = judge(scaled, FakeTarget(refuses))
    lines, start = inspect.getsourcelines(scaled.function)
    assert (row.verdict, row.code, row.holds) == (Outcome.REFUSED, "K0301", False)
    assert row.file == __file__.replace("test_verify.py", "examples.py")
    assert row.line == start + len(lines) - 1
    assert row.message == "fake cannot do this: it has no stores; use another target"


def test_only_the_declared_refusal_holds(judge: Judge) -> None:
    refuses = targets.refuses("K0301", problem="it has no stores", instead="use another target")
    for code, execute, holds in (
        ("K0301", refuses, True),
        ("K0302", refuses, False),
        ("K0301", FakeTarget().execute, False),
    ):
        kernel = with_examples(scaled, {"N": 40, "scale": 0.5})
        kernel.refuses["fake"] = code
        assert judge(kernel, FakeTarget(execute)).holds is holds


def test_a_target_that_crashes_is_an_error_with_its_message_and_no_traceback(judge: Judge) -> None:
    row = judge(scaled, FakeTarget(targets.crashes))
    assert row.verdict is Outcome.ERROR
    assert "N=40" in row.message
    assert "RuntimeError: no such register" in row.message


def test_emitted_code_that_fails_to_run_is_an_error(judge: Judge) -> None:
    row = judge(scaled, FakeTarget(targets.refuses("K0307", problem="out of memory")))
    assert (row.verdict, row.code) == (Outcome.ERROR, "K0307")


def test_emitted_code_that_does_not_end_is_undecided(judge: Judge) -> None:
    row = judge(scaled, FakeTarget(targets.refuses("K0310", problem="no answer in 120 s")))
    assert (row.verdict, row.code) == (Outcome.UNDECIDED, "K0310")
    assert "does not end: no answer in 120 s" in (row.message or "")


def test_a_target_that_is_not_installed_is_a_refusal() -> None:
    rows = verify(scaled, source="tests:scaled", targets=["trainium"], examples=1)
    assert [(row.target, row.verdict, row.code) for row in rows[1:]] == [("trainium", Outcome.REFUSED, "K0309")]


def test_a_kernel_without_examples_is_refused_everywhere(judge: Judge) -> None:
    kernel = with_examples(scaled)
    row = judge(kernel, FakeTarget())
    assert (row.verdict, row.code) == (Outcome.REFUSED, "K0406")


# -- architectures ---------------------------------------------------------------------------------------------------


def test_each_architecture_that_is_named_has_a_row_and_its_compilers_answer(judge: Judge) -> None:
    accepted, rejected = judge(scaled, FakeTarget(), archs=["one", "two", "three"])
    assert (accepted.arch, accepted.verdict) == ("one", Outcome.VERIFIED)
    assert accepted.checks[-1] == "compiler for one, N=40"
    assert (rejected.arch, rejected.verdict, rejected.code) == ("two", Outcome.REFUSED, "K0306")
    assert "too large for it" in rejected.message


def test_a_mismatch_is_one_for_each_architecture_and_others_do_not_count(judge: Judge) -> None:
    rows = judge(scaled, FakeTarget(targets.one_element_wrong), archs=["two", "one"])
    assert [(row.arch, row.verdict) for row in rows] == [("one", Outcome.MISMATCH), ("two", Outcome.MISMATCH)]
    assert judge(scaled, FakeTarget(), archs=["elsewhere"]).arch is None
