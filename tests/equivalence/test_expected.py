"""The expected bound: below the hard one, rarely left by roundings, and left at once by a systematic error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.equivalence.bounds import Bounded, error_bounds
from kdsl.equivalence.rounding import gamma, likely_gamma
from kdsl.interpreter.accuracy import ACCURACY
from kdsl.ir.kernel import Kernel, bind
from kdsl.ir.text import parse_kernel
from kdsl.runtime.target import Accuracy, AccuracyTable

SUM = """kernel total(x: in f32[M, N], y: out f32[M]) {
  size M
  size N
  axis m < M
  axis n < N
  %x: f32[m, n] = load x[m, n]
  %y: f32[m] = reduce %x {axis = n, combine = add}
  store y[m] = %y
}"""
DOT = """kernel product(x: in f32[M, N], w: in f32[N], y: out f32[M]) {
  size M
  size N
  axis m < M
  axis n < N
  %x: f32[m, n] = load x[m, n]
  %w: f32[n] = load w[n]
  %y: f32[m] = dot %x, %w {axis = n, precision = ieee}
  store y[m] = %y
}"""


def of(text: str, accuracy: AccuracyTable = ACCURACY, **arguments: Any) -> Bounded:
    rows, columns = arguments["x"].shape
    kernel: Kernel = bind(parse_kernel(text), {"M": rows, "N": columns})
    return error_bounds(kernel, arguments, accuracy)


@pytest.mark.parametrize("n", [16, 257, 1024])
def test_sums_in_a_random_order_leave_it_in_less_than_1_case_in_10000(n: int) -> None:
    rng = np.random.default_rng(n)
    outside = cases = 0
    for draw in (rng.standard_normal, rng.random):
        x = draw((4000, n)).astype(np.float32)
        found = of(SUM, x=x)
        got = np.zeros(len(x), np.float32)
        for column in rng.permutation(n):  # one after the other: the order with the largest error
            got += x[:, column]
        outside += int(np.sum(np.abs(got.astype(np.float64) - found.values["y"]) > found.expected["y"]))
        cases += len(x)
        assert np.all(found.expected["y"] <= found.bounds["y"])
    assert outside <= 1e-4 * cases


def test_it_grows_as_the_root_of_the_number_of_terms_and_the_hard_one_as_the_number() -> None:
    few, many = (of(SUM, x=np.full((1, n), 0.1, np.float32)) for n in (65, 1025))
    ratio = float(many.values["y"][0] / few.values["y"][0])
    assert many.bounds["y"] / few.bounds["y"] / ratio == pytest.approx(16, rel=0.01)
    assert many.expected["y"] / few.expected["y"] / ratio == pytest.approx(4, rel=0.01)


def test_a_bias_that_the_hard_bound_allows_is_outside() -> None:
    x = np.random.default_rng(0).random((100, 1024)).astype(np.float32)
    found = of(SUM, x=x)
    total = np.zeros(len(x), np.float32)
    for column in x.T:  # additions that cut off, as those of an accumulator without guard bits
        exact = total.astype(np.float64) + column
        total = exact.astype(np.float32)
        total = np.where(total > exact, np.nextafter(total, np.float32(0)), total)
    error = np.abs(total.astype(np.float64) - found.values["y"])
    assert np.all(error > found.expected["y"])


def test_a_target_whose_additions_cut_off_may_be_biased() -> None:
    rng = np.random.default_rng(0)
    arguments = {"x": rng.random((20, 1024)).astype(np.float32), "w": rng.random(1024).astype(np.float32)}
    nearest = of(DOT, {}, **arguments)
    cut_off = of(DOT, {("dot", "f32"): Accuracy(0.5, addition=1.0)}, **arguments)
    magnitude = arguments["x"].astype(np.float64) @ arguments["w"]
    # n ulp on the target, on the oracle as before: 2.25 sqrt(n) half ulp.
    assert cut_off.expected["y"] == pytest.approx((1024 + 36) * 2.0**-23 * magnitude, rel=1e-3)
    assert nearest.expected["y"] == pytest.approx(2 * 36 * 2.0**-23 * magnitude, rel=1e-3)


def test_an_error_of_each_term_counts_once() -> None:
    rng = np.random.default_rng(0)
    arguments = {"x": rng.random((20, 1024)).astype(np.float32), "w": rng.random(1024).astype(np.float32)}
    plain, worse = of(DOT, {}, **arguments), of(DOT, {("dot", "f32"): Accuracy(2.5)}, **arguments)
    magnitude = arguments["x"].astype(np.float64) @ arguments["w"]
    assert worse.bounds["y"] - plain.bounds["y"] == pytest.approx(2 * 2.0**-23 * magnitude, rel=1e-3)


@pytest.mark.parametrize("text", [SUM, DOT])
def test_lanes_past_the_edge_are_no_terms(text: str) -> None:
    arguments = {"x": np.random.default_rng(0).random((2, 70)).astype(np.float32)}
    if text is DOT:
        arguments["w"] = arguments["x"][0]
    padded = of(text.replace("axis n < N", "axis n < 512 where n < N"), **arguments)
    whole = of(text, **arguments)
    assert padded.bounds["y"] == pytest.approx(whole.bounds["y"])
    assert padded.expected["y"] == pytest.approx(whole.expected["y"])


def test_roundings_of_which_there_are_few_may_all_have_one_sign() -> None:
    few = np.arange(6.0)
    assert likely_gamma(few, 2.0**-24).tolist() == gamma(few, 2.0**-24).tolist()
    assert likely_gamma(np.array(100.0), 2.0**-24) == pytest.approx(22.5 * 2.0**-24, rel=1e-5)
