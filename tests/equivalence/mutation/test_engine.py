"""Mutants: their names, what is left out, and one fault in all variants of a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdsl.equivalence.mutation.effort import effort_of, variant
from kdsl.equivalence.mutation.engine import mutants_of
from kdsl.equivalence.trials import draw_trials
from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.ir.verify import verify
from tests.equivalence.examples import SMALL

COPY = """
kernel copy(x: in f32[N, N], y: out f32[N, N]) {
  size N
  axis i < N
  axis j < N
  %x: f32[i, j] = load x[i, j]
  store y[i, j] = %x
}
"""


@pytest.mark.parametrize("name", ["vector_add", "softmax"])
def test_mutants_are_well_formed_have_names_of_their_own_and_are_no_original(name: str) -> None:
    variants = {variant(trial): trial.kernel for trial in draw_trials(SMALL[name], 4, seed=0)}
    made = mutants_of(variants).mutants
    assert len({mutant.id for mutant in made}) == len(made) > 40
    for mutant in made:
        for key, kernel in mutant.kernels.items():
            assert verify(kernel) is kernel
            assert print_kernel(kernel) != print_kernel(variants[key])


def test_a_name_stays_from_run_to_run_whatever_other_mutators_there_are() -> None:
    kernel = parse_kernel(COPY)
    (mutant, _) = mutants_of({"": kernel}, ["index transposed"]).mutants
    assert mutant.description == "index transposed: load x: dimensions 0 and 1 swapped"
    assert mutant.id == "298da80be6"
    assert mutant in mutants_of({"": kernel}).mutants


def test_a_description_names_the_op_and_the_authors_line() -> None:
    variants = effort_of(SMALL["softmax"], seed=0, count=2).variants
    (swapped, *_) = mutants_of(variants, ["operands swapped"]).mutants
    source = Path(SMALL["softmax"].function.__code__.co_filename).read_text().splitlines()
    (line,) = (number for number, text in enumerate(source, 1) if "shifted =" in text)
    assert swapped.description.startswith(f"operands swapped: sub at softmax.py:{line}:")


def test_a_fault_is_one_mutant_for_all_dtypes_and_constants_that_have_its_place() -> None:
    variants = {variant(trial): trial.kernel for trial in draw_trials(SMALL["softmax"], 4, seed=0)}
    assert len(variants) == 2
    made = {mutant.mutator: mutant for mutant in mutants_of(variants).mutants}
    assert made["combine wrong"].kernels.keys() == variants.keys()
    assert [dict(key)["T"] for key in made["rounding wrong"].kernels] == [dict(min(variants))["T"]]


def test_what_is_not_well_formed_or_was_there_is_left_out_and_counted() -> None:
    made = mutants_of(
        {"": parse_kernel(COPY)}, ["stride wrong", "race planted", "index transposed", "index transposed"]
    )
    # A stride of 0 in the store leaves an axis of the value without a place: two, one for each axis.
    assert (made.discarded, made.repeated) == (2, 2)
