"""The judge's judge: its seed, its draws, its lines, and that it falls short when a part does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.judge import __main__ as program
from bench.judge import mutation
from bench.judge.mutation import draw, score
from bench.judge.parts import Outcome, Tell, Watch
from bench.judge.planted import FAULTS, Fault, Planting
from kdsl.equivalence.mutation.judge import Fate, Judged
from kdsl.equivalence.mutation.targets import JudgedOnTarget, TargetFate
from kdsl.equivalence.trials import draw_trials
from kdsl.runtime.loading import load
from kdsl.runtime.target import find_target


@pytest.mark.parametrize(
    ("found", "killable", "line"),
    [
        (412, 415, "mutation score: 99.2% (412 of 415 killable)"),
        (9999, 10000, "mutation score: 99.9% (9999 of 10000 killable)"),
        (415, 415, "mutation score: 100.0% (415 of 415 killable)"),
        (0, 0, "mutation score: 0.0% (0 of 0 killable)"),
    ],
)
def test_the_score_is_never_rounded_up(found: int, killable: int, line: str) -> None:
    assert score(found, killable) == line


@pytest.mark.parametrize("target", FAULTS)
def test_each_fault_has_a_place_in_what_the_target_emits(target: str) -> None:
    kernels = {each.kernel.name: each.kernel for each in load("kernels")}
    plantings = [Planting(fault) for fault in FAULTS[target]]
    for name, kernel in kernels.items():
        trials = {repr(trial.bindings): trial for trial in draw_trials(kernel, 8, seed=0)}
        for trial in trials.values():
            source = find_target(target).emit(trial.kernel, trial.tiles, trial.sizes)
            for planting in plantings:
                if planting.fault.kernel == name:
                    planting(source)
    assert [str(planting.fault) for planting in plantings if not planting.planted] == []


def test_a_planting_says_whether_there_was_a_place() -> None:
    (kernel,) = (each.kernel for each in load("kernels") if each.kernel.name == "vector_add")
    (trial,) = draw_trials(kernel, 1, seed=0)
    source = find_target("cpu").emit(trial.kernel, trial.tiles, trial.sizes)
    nowhere, somewhere = (
        Planting(Fault("vector_add", "", "no such text", "")),
        Planting(Fault("vector_add", "", "x", "z")),
    )
    assert nowhere(source).text == source.text
    assert somewhere(source).text == source.text.replace("x", "z")
    assert (nowhere.planted, somewhere.planted) == (0, 1)


def test_as_many_killable_mutants_are_drawn_for_each_target_and_the_same_from_the_same_seed() -> None:
    fates = ("found", "survived", "equivalent")
    results = [("kernels:k", Judged(f"{place:04}", "", fates[place % 3])) for place in range(90)]
    tasks = draw(results, seed=1)
    assert Counter(task.target for task in tasks) == {"gpu": 20, "tpu": 20, "cpu": 20}
    assert len({(task.target, task.mutant) for task in tasks}) == 60
    assert not any(int(task.mutant) % 3 == 2 for task in tasks)
    assert draw(results, seed=1) == tasks != draw(results, seed=2)


def run_mutation(
    monkeypatch: pytest.MonkeyPatch, fates: Sequence[Fate], on_targets: TargetFate
) -> tuple[Outcome, list[str]]:
    """The part, told what becomes of the mutants."""
    answers: dict[object, Callable[[Any], object]] = {
        mutation.count_mutants: lambda task: (task[0], len(fates), 0, 0),
        mutation.judge_mutants: lambda task: [
            (task.label, Judged(str(place), f"mutant {place}", fates[place], "other bits"))
            for place in range(task.start, min(task.stop, len(fates)))
        ],
        mutation.judge_mutant_on_target: lambda task: JudgedOnTarget(task.mutant, "", task.target, on_targets, "why"),
    }
    monkeypatch.setattr(mutation, "labels", lambda: ["kernels:k"])
    monkeypatch.setattr(mutation, "in_processes", lambda work, items: map(answers[work], items))
    told: list[str] = []
    return mutation.Mutation().run(1, lambda what, items, total: iter(items), told.append), told


def test_survivors_and_equivalent_mutants_are_listed_and_few_survivors_are_borne(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome, told = run_mutation(monkeypatch, [*["found"] * 99, "survived", "equivalent"], "found")
    assert (outcome.summary, outcome.ok) == ("mutation score: 99.0% (99 of 100 killable)", True)
    assert "survived: kernels:k: mutant 99 [99]: other bits" in told
    assert "equivalent: kernels:k: mutant 100 [100]: other bits" in told


def test_more_survivors_fall_short(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not run_mutation(monkeypatch, [*["found"] * 98, "survived"], "found")[0].ok


@pytest.mark.parametrize(
    ("fate", "ok"), [("found", True), ("verified", False), ("undecided", False), ("refused", False)]
)
def test_no_mutant_may_be_verified_on_a_target_and_some_are_found(
    monkeypatch: pytest.MonkeyPatch, fate: TargetFate, ok: bool
) -> None:
    outcome, told = run_mutation(monkeypatch, ["found"] * 30, fate)
    assert outcome.ok is ok
    assert any(line.startswith(f"{fate} on tpu") for line in told) is (fate != "found")


def test_the_seed_is_the_one_given_or_the_variables_or_the_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert program.chosen_seed(5) == (5, "as given")
    monkeypatch.setenv(program.SEED_VARIABLE, "17")
    assert program.chosen_seed(None) == (17, "from KDSL_JUDGE_SEED")


def test_without_a_commit_the_seed_is_fixed_and_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(program.SEED_VARIABLE, raising=False)
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    seed, origin = program.chosen_seed(None)
    assert (seed, origin) == (program.WITHOUT_GIT, "fixed, as there is no commit to take it from")


@dataclass
class Stub:
    """A part that finds what it is told to."""

    name: str
    ok: bool

    def run(self, seed: int, watch: Watch, tell: Tell) -> Outcome:
        tell("a detail")
        return Outcome(f"{self.name} {seed}", self.ok)


@pytest.mark.parametrize(("oks", "status"), [((True, True), 0), ((False, True), 1), ((True, False), 1)])
def test_all_parts_run_and_one_that_falls_short_makes_the_status_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], oks: tuple[bool, ...], status: int
) -> None:
    monkeypatch.setattr(program, "PARTS", tuple(Stub(f"part{place}", ok) for place, ok in enumerate(oks)))
    monkeypatch.setattr("sys.argv", ["judge", "--seed", "3"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == status
    assert (lines[0], lines[3], lines[-1]) == ("seed 3, as given", "part0 3", "part1 3")
    assert sum("FALLS SHORT" in line for line in lines) == oks.count(False)


def test_watching_passes_all_items_on() -> None:
    assert list(program.watch("counting", iter([1, 2, 3]), 3)) == [1, 2, 3]
