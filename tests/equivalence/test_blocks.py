"""Sizes past a target's tiles."""

from __future__ import annotations

from kdsl.equivalence.blocks import past_tiles
from kdsl.runtime.examples import bound_examples
from tests.equivalence.examples import SMALL


def test_dimensions_that_are_cut_take_two_tiles_and_one_element_the_first_three() -> None:
    (bound, _) = bound_examples(SMALL["matmul"])
    assert past_tiles(bound.kernel, {"BM": 8, "BN": 128, "BK": 16}, bound.sizes) == {"M": 25, "N": 257, "K": 33}


def test_a_loop_up_to_a_limit_of_its_program_covers_both_dimensions_that_it_depends_on() -> None:
    (bound, _) = bound_examples(SMALL["attention"])
    past = past_tiles(bound.kernel, {"BL": 8, "BS": 64}, bound.sizes)
    assert past == {"B": 1, "H": 2, "L": 193, "S": 129, "D": 16}


def test_a_kernel_without_tiles_keeps_its_sizes() -> None:
    (bound, _) = bound_examples(SMALL["softmax"])
    assert past_tiles(bound.kernel, {}, bound.sizes) == bound.sizes
