"""Counter-examples: small ones are found, kept as files that run, and tried first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kdsl
from kdsl import InOut, Tensor, Tile, f32
from kdsl.diagnostics import KdslError
from kdsl.equivalence.cases import Case, save, saved
from kdsl.equivalence.inputs import draw_for
from kdsl.equivalence.shrink import shrink
from kdsl.equivalence.verdict import Outcome
from kdsl.equivalence.verify import verify
from kdsl.lang.kernel import Kernel
from kdsl.runtime.examples import bound_examples
from tests.equivalence import targets
from tests.equivalence.examples import SMALL, scaled
from tests.equivalence.targets import FakeTarget


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


@kdsl.kernel
@kdsl.example(M=6, N=40)
def racing(x: Tensor[M, N, f32], y: InOut[N, f32], *, B: Tile = 8) -> None:
    """Every row is stored to the same place: a race."""
    for m, n in kdsl.grid(M, N.tiles(B)):
        y[n] = x[m, n]


def wrong_above_two(kernel: Any, arguments: Any) -> Any:
    """Wrong where an element of x is above 2, in rows of at least 3."""
    results = FakeTarget().execute(kernel, arguments)
    for array in results.values():
        if array.shape[-1] >= 3:
            array[(arguments["x"] > 2) & (np.arange(array.shape[-1]) >= 2)] += 1
    return results


def case_of(kernel: Kernel, target: FakeTarget | None, place: int = 0) -> Case:
    trial = bound_examples(kernel)[place]
    return Case(kernel, target, trial, "exact", (0, 0), draw_for(trial, {}, "exact", (0, 0)))


def test_a_case_shrinks_to_the_smallest_sizes_and_the_plainest_elements_that_fail() -> None:
    case, problem = shrink(case_of(scaled, FakeTarget(wrong_above_two)), seconds=20)
    assert case.trial.sizes == {"N": 3}
    x = case.arguments["x"]
    assert x[:2].tolist() == [0, 0]
    assert x[2] > 2
    assert problem.startswith("differs from the oracle: out[2] is")


def test_a_race_shrinks_to_two_programs_and_one_element() -> None:
    case, problem = shrink(case_of(racing, None), seconds=20)
    assert case.trial.sizes == {"M": 2, "N": 1}
    assert "race: the store touches y[0]" in problem
    assert len(set(case.arguments["x"].ravel().tolist())) == 2
    assert 0 in case.arguments["x"]


def test_no_time_leaves_the_case_as_it_is() -> None:
    case, problem = shrink(case_of(racing, None), seconds=0)
    assert case.trial.sizes == {"M": 6, "N": 40}
    assert "race: the store touches y[0]" in problem


@pytest.mark.parametrize("place", [0, 1])
def test_a_case_reads_back_as_it_was_written(place: int, tmp_path: Path) -> None:
    case = case_of(SMALL["softmax"], None, place)
    x = np.array(case.arguments["x"])
    x[0, :5] = [np.nan, np.inf, -np.inf, -0.0, 1e-40]
    case = Case(case.kernel, None, case.trial, "special", (0, 3), {"x": x})
    save(tmp_path, "a/b:softmax", case, "differs")
    ((file, again),) = saved(tmp_path, "a/b:softmax", None)
    assert file.suffix == ".py"
    assert again.arguments["x"].dtype == (np.float32, ml_dtypes.bfloat16)[place]
    assert again.arguments["x"].tobytes() == x.tobytes()
    assert (again.trial.sizes, dict(again.trial.bindings)) == (case.trial.sizes, dict(case.trial.bindings))
    assert (again.kind, again.seed, again.target) == ("special", (0, 3), None)
    assert not list(saved(tmp_path, "a/b:other", None))


def test_large_inputs_are_drawn_again_from_the_seed(tmp_path: Path) -> None:
    case = case_of(SMALL["matmul"], None)
    save(tmp_path, "label", case, "differs")
    ((file, again),) = saved(tmp_path, "label", None)
    assert "arrays" not in file.read_text()
    assert all(again.arguments[name].tobytes() == array.tobytes() for name, array in case.arguments.items())


@pytest.mark.parametrize("text", ["CASE = open('x')", "CASE = {}", "nothing", "def", "CASE = {'kernel': 1}"])
def test_a_file_that_is_no_case_is_refused_and_not_run(text: str, tmp_path: Path) -> None:
    save(tmp_path, "label", case_of(scaled, None), "differs").write_text(text)
    with pytest.raises(KdslError) as failure:
        list(saved(tmp_path, "label", None))
    assert failure.value.code == "K0412"


def test_verify_keeps_a_counter_example_and_tries_it_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = FakeTarget(wrong_above_two)
    monkeypatch.setattr("kdsl.equivalence.verify.target_names", lambda: ("fake",))
    for module in ("verify", "cases"):
        monkeypatch.setattr(f"kdsl.equivalence.{module}.find_target", lambda name: target)

    def row() -> Any:
        return verify(
            scaled, source="tests:scaled", targets=["fake"], examples=1, shrink_seconds=10, save_failures=tmp_path
        )[1]

    first = row()
    assert first.verdict is Outcome.MISMATCH
    assert first.counterexample is not None
    assert "counterexample" not in first.to_json()
    (file,) = tmp_path.iterdir()
    assert file.read_text() == first.counterexample
    again = row()
    assert again.verdict is Outcome.MISMATCH
    assert f"{file}: a saved counter-example still fails" in again.message
    target.execute = FakeTarget().execute
    mended = row()
    assert mended.verdict is Outcome.VERIFIED
    assert f"{file.name} holds now" in mended.checks


def test_a_kept_file_runs_on_its_own(tmp_path: Path) -> None:
    case, problem = shrink(case_of(racing, None), seconds=10)
    file = save(tmp_path, "racing", case, problem)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, cwd=root, env={"PYTHONPATH": str(root)}, check=True
    )
    assert "race: the store touches y[0]" in done.stdout


def test_outputs_that_are_missing_count_as_failing() -> None:
    case, problem = shrink(case_of(scaled, FakeTarget(targets.forgets_an_output)), seconds=10)
    assert case.trial.sizes == {"N": 1}
    assert "missing" in problem
