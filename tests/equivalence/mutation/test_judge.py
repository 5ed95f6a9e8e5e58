"""What becomes of mutants: found, survived, equivalent, and none of them hidden."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import pytest

from kdsl.equivalence.mutation import judge as judging
from kdsl.equivalence.mutation import targets
from kdsl.equivalence.mutation.effort import Effort, effort_of, examples
from kdsl.equivalence.mutation.engine import mutants_of
from kdsl.equivalence.mutation.judge import Judge, Judged
from kdsl.equivalence.mutation.targets import instead, judge_on_target
from kdsl.equivalence.verdict import Outcome, Verdict
from kdsl.ir.kernel import Kernel as IRKernel
from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.lang.kernel import Kernel
from kdsl.runtime.examples import Binding
from kdsl.runtime.target import Source, Target
from tests.equivalence.examples import SMALL
from tests.equivalence.targets import FakeTarget

BLOCKS = """
kernel scale(x: in f32[N], y: out f32[N]) {
  size N
  tile BN = 8
  program b < cdiv(N, BN)
  axis n < BN where BN*b + n < N
  %x: f32[b, n] = load x[BN*b + n]
  %two: f32 = constant {value = 2.0}
  %y: f32[b, n] = mul %x, %two
  store y[BN*b + n] = %y
}
"""


def effort(default: list[int], thorough: list[int]) -> Effort:
    kernel = parse_kernel(BLOCKS)
    return Effort(*(examples([Binding(kernel, {}, {"N": n}) for n in sizes], 0) for sizes in (default, thorough)))


def judged(mutator: str, default: list[int], thorough: list[int]) -> dict[str, Judged]:
    """What becomes of a mutator's mutants, by what they say of themselves."""
    tried = effort(default, thorough)
    judge = Judge(tried)
    return {
        mutant.description.split(": ")[-1]: judge.judge(mutant)
        for mutant in mutants_of(tried.variants, [mutator]).mutants
    }


def test_a_mutant_that_gives_other_values_is_found_and_said_where() -> None:
    result = judged("op dropped", [20], [20])["x in place of mul"]
    assert (result.fate, result.killable) == ("found", True)
    assert result.shown.startswith("N=20, exact inputs: y[0] is ")


def test_a_mutant_that_fails_is_found() -> None:
    result = judged("index off by one", [20], [20])["index BN*b + n + 1 in place of BN*b + n in dimension 0"]
    assert result.fate == "found"
    assert "K0601" in result.shown


def test_a_mutant_that_no_input_tells_apart_is_equivalent() -> None:
    result = judged("one too many", [20], [20, 8, 3])["one program too many"]
    assert (result.fate, result.killable) == ("equivalent", False)


def test_a_mutant_that_only_more_effort_tells_apart_survives_and_is_killable() -> None:
    """One element does not show that all blocks are the first, whatever the tile sizes."""
    assert judged("last skipped", [1], [1, 20])["the last program skipped"].fate == "found"
    survivor = judged("stride wrong", [1], [1, 20])["index BN*b in place of BN*b + n in dimension 0"]
    assert (survivor.fate, survivor.killable) == ("survived", True)
    assert "N=20" in survivor.shown


def test_a_property_that_does_not_hold_finds_a_mutant() -> None:
    """With one block of eight lanes all is right; other tile sizes have several, and all of them are the first."""
    result = judged("stride wrong", [8], [20])["index n in place of BN*b + n in dimension 0"]
    assert result.fate == "found"
    assert "depends on tile sizes" in result.shown


def test_a_mutant_that_does_not_end_is_told_from_one_that_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "LIMIT", 0.05)
    with judging.failures() as failure:
        time.sleep(5)
    assert failure.shown is not None and "not through" in failure.shown


def test_most_mutants_of_a_small_kernel_are_found() -> None:
    tried = effort_of(SMALL["vector_add"], seed=0, count=4)
    judge = Judge(tried)
    fates = [judge.judge(mutant).fate for mutant in mutants_of(tried.variants).mutants]
    assert fates.count("found") >= 0.9 * len(fates)


# -- on a target ---------------------------------------------------------------------------------------------------


class Printing(FakeTarget):
    """Emits IR text."""

    def emit(self, kernel: IRKernel, tiles: Mapping[str, int], sizes: Mapping[str, int]) -> Source:
        return replace(super().emit(kernel, tiles, sizes), text=print_kernel(kernel))


def on_target(mutator: str, target: FakeTarget) -> list[str]:
    kernel = SMALL["vector_add"]
    tried = effort_of(kernel, seed=0, count=4)
    made = mutants_of(tried.variants, [mutator]).mutants
    return [judge_on_target(kernel, "tests:vector_add", tried, mutant, target, 0).fate for mutant in made]


def test_a_target_that_emits_the_mutant_is_found_out() -> None:
    assert on_target("neighbour", FakeTarget()) == ["found"]


def test_a_mutant_that_is_verified_wrongly_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def credulous(kernel: Kernel, target: Target, *, source: str, seed: int) -> Verdict:
        return Verdict(kernel=source, target=target.name, verdict=Outcome.VERIFIED)

    monkeypatch.setattr(targets, "verify_target", credulous)
    assert on_target("neighbour", Printing()) == ["verified"]
    assert on_target("one too many", Printing()) == ["equivalent", "equivalent"]


def test_a_variant_without_the_place_of_the_fault_is_emitted_as_it_was() -> None:
    tried = effort_of(SMALL["softmax"], seed=0, count=4)
    (mutant,) = mutants_of(tried.variants, ["rounding wrong"]).mutants
    emitted = {key: instead(tried, mutant)(kernel) for key, kernel in tried.variants.items()}
    changed = {key for key, kernel in tried.variants.items() if emitted[key] != kernel}
    assert changed == mutant.kernels.keys() != tried.variants.keys()
