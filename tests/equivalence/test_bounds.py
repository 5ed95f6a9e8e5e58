from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.equivalence.bounds import Bounded, hard_bounds
from kdsl.equivalence.compare import compare
from kdsl.equivalence.inputs import draw_inputs
from kdsl.equivalence.perturbation import perturbed_run
from kdsl.interpreter import run
from kdsl.ir.kernel import Kernel, bind
from kdsl.ir.text import parse_kernel
from kdsl.runtime.examples import bound_examples
from kdsl.runtime.target import Accuracy, AccuracyTable
from tests.equivalence.examples import SMALL, leaky, rounding_sign

# What a device is like: approximate functions, one with an absolute error, everything else rounded correctly.
LOOSE: AccuracyTable = {
    ("exp", "f32"): Accuracy(2.5, 2.0**-126),
    ("rsqrt", "f32"): Accuracy(2.0),
    ("div", "f32"): Accuracy(2.0),
    ("erf", "f32"): Accuracy(16.0),
}
CASES = [(name, place) for name in SMALL for place in (0, 1)]


def case(name: str, place: int, kind: Any = "generic", seed: int = 0) -> tuple[Kernel, dict[str, Any]]:
    example = bound_examples(SMALL[name])[place]
    kernel = bind(example.kernel, example.sizes, example.tiles)
    return kernel, draw_inputs(kernel, kind, (seed,), example.scalars)


@pytest.mark.parametrize(("name", "place"), CASES)
def test_the_values_are_the_oracles_own(name: str, place: int) -> None:
    kernel, arguments = case(name, place)
    expected, bounded = run(kernel, arguments), hard_bounds(kernel, arguments, LOOSE)
    for output, array in expected.items():
        assert array.tobytes() == bounded.values[output].tobytes()


@pytest.mark.parametrize(("name", "place"), CASES)
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_no_conforming_implementation_leaves_the_bounds(name: str, place: int, share: float) -> None:
    for seed in range(8 if share else 1):
        kernel, arguments = case(name, place, seed=seed)
        bounded = hard_bounds(kernel, arguments, LOOSE)
        found = compare(perturbed_run(kernel, arguments, LOOSE, seed, share), bounded.values, bounded.bounds)
        assert found.worst is None, str(found.worst)
        assert found.undecided == 0


@pytest.mark.parametrize("name", list(SMALL))
def test_bounds_are_within_10000_times_the_observed_error(name: str) -> None:
    kernel, arguments = case(name, 0)
    bounded = hard_bounds(kernel, arguments, {})
    exact = perturbed_run(kernel, arguments, {}, 0, 0.0)
    for output, array in bounded.values.items():
        observed = np.abs(array.astype(np.float64) - exact[output]).max()
        assert np.median(bounded.bounds[output]) <= 1e4 * max(observed, 2.0**-24)


@pytest.mark.parametrize(("name", "place"), [("vector_add", 0), ("vector_add", 1), ("softmax", 1), ("attention", 1)])
def test_exact_inputs_demand_equal_bits(name: str, place: int) -> None:
    kernel, arguments = case(name, place, "exact")
    assert all((bound == 0).all() for bound in hard_bounds(kernel, arguments, LOOSE).bounds.values())


def test_an_exact_sum_of_products_demands_equal_bits_and_an_inexact_one_does_not() -> None:
    kernel = text_kernel(
        """
        kernel product(a: in f32[4, 1024], b: in f32[1024, 4], c: out f32[4, 4]) {
          axis m < 4
          axis n < 4
          axis k < 1024
          %a: f32[m, k] = load a[m, k]
          %b: f32[n, k] = load b[k, n]
          %c: f32[m, n] = dot %a, %b {axis = k, precision = ieee}
          store c[m, n] = %c
        }
        """
    )
    integers = draw_inputs(kernel, "exact", (0,))
    assert not hard_bounds(kernel, integers, {}).bounds["c"].any()
    assert hard_bounds(kernel, draw_inputs(kernel, "generic", (0,)), {}).bounds["c"].all()
    # Too large to be exact in every order.
    integers["a"] *= 2.0**12
    integers["a"] += 1
    assert hard_bounds(kernel, integers, {}).bounds["c"].all()


def test_a_result_that_only_rounding_decides_is_undecided() -> None:
    bounded, _ = of(rounding_sign)
    assert np.isinf(bounded.bounds["out"]).all()


def test_an_undecided_choice_between_arms_that_meet_is_their_hull() -> None:
    bounded, arguments = of(leaky)
    size = np.abs(arguments["x"] * arguments["y"])
    assert (bounded.bounds["out"] <= 8 * 2.0**-23 * size).all()


def test_a_cast_rounds_exactly_so_an_error_that_reaches_no_boundary_is_gone() -> None:
    kernel = text_kernel(
        """
        kernel narrow(x: in f32[n_size], y: out bf16[n_size]) {
          size n_size
          axis n < n_size
          %x: f32[n] = load x[n]
          %z: f32[n] = mul %x, %x
          %y: bf16[n] = cast %z
          store y[n] = %y
        }
        """,
        n_size=3,
    )
    # The second square lies next to the middle of 1 and its neighbour in bf16, 1 + 2**-7.
    middle = np.float32(np.sqrt(1 + 2.0**-8))
    inputs = {"x": np.array([1.1, middle, 2.0], np.float32)}
    assert hard_bounds(kernel, inputs, {}).bounds["y"].tolist() == pytest.approx([0, 2.0**-7, 0])


def test_argmax_is_undecided_only_where_an_inexact_lane_comes_near_the_best() -> None:
    kernel = text_kernel(
        """
        kernel best(x: in f32[3, 4], y: in f32[3, 4], i: out i32[3]) {
          axis m < 3
          axis n < 4
          %x: f32[m, n] = load x[m, n]
          %y: f32[m, n] = load y[m, n]
          %p: f32[m, n] = mul %x, %y
          %i: i32[m] = reduce %p {axis = n, combine = argmax}
          store i[m] = %i
        }
        """
    )
    x = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, 0.3, 0.3, 0.2], [1, 2, 2, 0]], np.float32)
    y = np.full((3, 4), [[0.7], [0.7], [1.0]], np.float32)
    # A clear winner; a tie of rounded products; a tie of exact ones, which the lowest lane wins on every target.
    assert hard_bounds(kernel, {"x": x, "y": y}, {}).bounds["i"].tolist() == [0, np.inf, 0]


def test_infinities_that_come_from_infinities_are_decided_and_overflows_of_inexact_values_are_not() -> None:
    kernel = text_kernel(
        """
        kernel scale(x: in f32[3], y: in f32[3], z: out f32[3]) {
          axis n < 3
          %x: f32[n] = load x[n]
          %y: f32[n] = load y[n]
          %p: f32[n] = mul %y, %y
          %z: f32[n] = add %p, %x
          %w: f32[n] = add %z, %x
          store z[n] = %w
        }
        """
    )
    x, y = np.array([-np.inf, 2e38, np.nan], np.float32), np.array([0.1, 0.1, 0.1], np.float32)
    bounded = hard_bounds(kernel, {"x": x, "y": y}, {})
    assert bounded.values["z"][0] == -np.inf
    assert bounded.values["z"][1] == np.inf
    assert bounded.bounds["z"].tolist() == [0, np.inf, 0]


def test_errors_pass_through_memory_that_a_program_reads_back() -> None:
    kernel = text_kernel(
        """
        kernel twice(x: inout f32[4]) {
          axis n < 4
          %x: f32[n] = load x[n]
          %y: f32[n] = mul %x, %x
          store x[n] = %y
          %z: f32[n] = load x[n]
          %w: f32[n] = neg %z
          store x[n] = %w
        }
        """
    )
    x = np.array([0.1, 0.7, 2.0, 3.0], np.float32)
    bounds = hard_bounds(kernel, {"x": x}, {}).bounds["x"]
    assert (bounds > 0).tolist() == [True, True, False, False]


def of(kernel: Any) -> tuple[Bounded, dict[str, Any]]:
    (example,) = bound_examples(kernel)
    bound = bind(example.kernel, example.sizes, example.tiles)
    arguments = draw_inputs(bound, "generic", (0,), example.scalars)
    return hard_bounds(bound, arguments, {}), arguments


def text_kernel(text: str, **sizes: int) -> Kernel:
    return bind(parse_kernel(text), sizes)


def test_an_implementation_that_is_worse_than_its_table_leaves_the_bounds() -> None:
    kernel, arguments = case("vector_add", 0)
    bounded = hard_bounds(kernel, arguments, {})
    worse = perturbed_run(kernel, arguments, {("add", "f32"): Accuracy(8.0)}, 0, 1.0)
    assert compare(worse, bounded.values, bounded.bounds).error_used > 1
