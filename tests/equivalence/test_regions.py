"""Combines by a region: the bounds hold for every grouping of the lanes, and are of use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.soundness import HEAD, RECURRENCE, WELFORD
from kdsl.equivalence.bounds import Bounded, error_bounds
from kdsl.interpreter.accuracy import ACCURACY
from kdsl.ir.kernel import bind
from kdsl.ir.text import parse_kernel

Array = Any


def bounded(ops: str, x: Array, w: Array) -> Bounded:
    kernel = bind(parse_kernel(HEAD.replace("n < 32", "n < 2048") + ops + "}"), {"N": len(x)})
    given = {"x": x, "w": w, "y": np.zeros_like(x), "t": np.zeros((), np.float32), "i": np.zeros(len(x), np.int32)}
    return error_bounds(kernel, given, ACCURACY)


def numbers(n: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n).astype(np.float32), rng.uniform(0.5, 1, n).astype(np.float32)


def one_after_the_other(values: Array) -> np.float32:
    """Welford's sum of squared deviations in f32, lane by lane (Welford 1962)."""
    mean, square = np.float32(0), np.float32(0)
    for count, value in enumerate(values, start=1):
        away = value - mean
        mean = mean + away / np.float32(count)
        square = square + away * (value - mean)
    return square


@pytest.mark.parametrize("shift", [0.0, 3.0])
@pytest.mark.parametrize("n", [7, 1000])
def test_welford_layernorm_is_decided_and_its_bounds_hold_other_groupings(n: int, shift: float) -> None:
    x, w = numbers(n)
    x = x + np.float32(shift)
    found = bounded(WELFORD, x, w)
    products = x.astype(np.float64) * w
    rounded = (x * w).astype(np.float32)
    for other in (np.sum((products - products.mean()) ** 2), one_after_the_other(rounded)):
        assert abs(found.values["t"] - other) <= found.bounds["t"]
    exact = (products - products.mean()) / products.std()
    assert np.all(np.abs(found.values["y"] - exact) <= found.bounds["y"])
    assert found.bounds["y"].max() < 0.05 and found.expected["y"].max() < 0.005


def test_a_guard_that_is_certain_leaves_a_combine_as_tight_as_without_it() -> None:
    guard = """    %some: bool[n] = gt %c3, %nothing
    %ratio: f32[n] = div %c2, %c3
    %r: f32[n] = select %some, %ratio, %nothing
"""
    guarded = WELFORD.replace("    %r: f32[n] = div %c2, %c3\n", guard)
    guarded = guarded.replace("    %c3: f32[n]", "    %nothing: f32[n] = constant {value = 0.0}\n    %c3: f32[n]")
    x, w = numbers(300)
    plain, found = bounded(WELFORD, x, w), bounded(guarded, x, w)
    assert found.values["t"] == plain.values["t"]
    assert found.bounds["t"] == pytest.approx(plain.bounds["t"])


@pytest.mark.parametrize("n", [1, 50])
def test_a_recurrence_s_bounds_hold_every_grouping(n: int) -> None:
    x, w = numbers(n, 1)
    found = bounded(RECURRENCE, x, w)
    state, step, exact, stepped = 0.0, np.float32(0), [], []
    for a, b in zip(w, x, strict=True):
        state = state * float(a) + np.exp(np.float64(b))
        step = step * a + np.exp(b)
        exact.append(state)
        stepped.append(step)
    for other in (exact, stepped):
        assert np.all(np.abs(found.values["y"] - np.array(other)) <= found.bounds["y"])
    assert np.all(found.bounds["y"] < 2e-2) and np.all(found.expected["y"] < 6e-3)


def test_a_combine_of_small_integers_is_exact_in_every_grouping() -> None:
    text = """%y: f32 = reduce_by %x {axis = n} (%a: f32[n], %b: f32[n]) {
        %c: f32[n] = add %a, %b
        yield %c
      }
      store t[] = %y
    """
    x = np.arange(50).astype(np.float32)
    assert bounded(text, x, x).bounds["t"] == 0
    # Exact for the oracle, but not in an order that adds the small ones to a large one first.
    large = np.array([2.0**24, -(2.0**24), 1, 1], np.float32)
    other = np.float32(2.0**24) + np.float32(1) + np.float32(1) - np.float32(2.0**24)
    found = bounded(text, large, large)
    assert abs(found.values["t"] - other) == 2 <= found.bounds["t"]


def test_an_argmax_by_a_region_is_undecided_only_in_a_near_tie() -> None:
    text = """
      %lane: i32[n] = index {form = n}
      %v: f32, %j: i32 = reduce_by %p, %lane {axis = n} (%a: f32[n], %i1: i32[n], %b: f32[n], %i2: i32[n]) {
        %first: bool[n] = ge %a, %b
        %c: f32[n] = select %first, %a, %b
        %k: i32[n] = select %first, %i1, %i2
        yield %c, %k
      }
      %f: f32 = cast %j
      store t[] = %f
    """
    w = np.full(4, 0.7, np.float32)
    assert bounded(text, np.array([0.1, 0.2, 0.4, 0.3], np.float32), w).bounds["t"] == 0
    assert np.isinf(bounded(text, np.array([0.1, 0.4, 0.4, 0.3], np.float32), w).bounds["t"])
