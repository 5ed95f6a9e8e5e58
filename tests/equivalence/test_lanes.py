"""Bounds through ops along axes, regions and indexed memory: they hold the exact result, or say that they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from kdsl.equivalence.bounds import Bounded, hard_bounds
from kdsl.interpreter.accuracy import ACCURACY
from kdsl.ir.kernel import bind
from kdsl.ir.text import parse_kernel
from tests.ir.strategies import Case, kernels

HEAD = """kernel rows(x: in f32[N], w: in f32[N], y: inout f32[N], t: inout f32[]) {
  size N
  axis n < 64 where n < N
  axis m < 64 where m < N
  %x: f32[n] = load x[n]
  %w: f32[n] = load w[n]
  %e: f32[n] = exp %x
"""


def bounds(ops: str, x: Any, w: Any) -> Bounded:
    kernel = bind(parse_kernel(HEAD + ops + "}"), {"N": len(x)})
    given = {"x": x, "w": w, "y": np.zeros_like(x), "t": np.float32(0).reshape(())}
    return hard_bounds(kernel, given, ACCURACY)


def numbers(seed: int = 0, n: int = 50) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n).astype(np.float32), rng.uniform(0.5, 1, n).astype(np.float32)


def test_a_scan_s_bounds_hold_its_exact_sums_and_grow_along_it() -> None:
    x, w = numbers()
    found = bounds("%y: f32[n] = scan %e {axis = n, combine = add}\n store y[n] = %y\n", x, w)
    exact = np.cumsum(np.exp(x.astype(np.float64)))
    assert np.all(np.abs(found.values["y"] - exact) <= found.bounds["y"])
    assert 0 < found.bounds["y"][0] < found.bounds["y"][-1] < 1e-3


def test_a_scan_of_small_integers_is_exact() -> None:
    x, w = np.arange(50).astype(np.float32), np.ones(50, np.float32)
    found = bounds("%y: f32[n] = scan %x {axis = n, combine = add}\n store y[n] = %y\n", x, w)
    assert not found.bounds["y"].any()


RECURRENCE = """
  %a: f32[n], %y: f32[n] = scan_by %w, %SOURCE {axis = n} (%a1: f32[n], %b1: f32[n], %a2: f32[n], %b2: f32[n]) {
    %a3: f32[n] = mul %a1, %a2
    %c: f32[n] = mul %b1, %a2
    %b3: f32[n] = add %c, %b2
    yield %a3, %b3
  }
  store y[n] = %y
"""


@pytest.mark.parametrize("source", ["x", "e"])
def test_a_recurrence_s_bounds_hold_every_grouping(source: str) -> None:
    x, w = numbers(1)
    found = bounds(RECURRENCE.replace("SOURCE", source), x, w)
    state, exact, stepped = 0.0, [], []
    step = np.float32(0)
    values = x if source == "x" else np.exp(x)
    for a, b in zip(w, values, strict=True):
        wide = float(b) if source == "x" else np.exp(np.float64(x[len(exact)]))
        state = state * float(a) + wide
        step = step * a + b
        exact.append(state)
        stepped.append(step)
    for other in (exact, stepped):
        assert np.all(np.abs(found.values["y"] - np.array(other)) <= found.bounds["y"])
    assert np.all(found.bounds["y"] < 1e-2)


def test_a_combine_that_divides_is_undecided() -> None:
    text = """%y: f32 = reduce_by %w {axis = n} (%a: f32[n], %b: f32[n]) {
        %c: f32[n] = div %a, %b
        yield %c
      }
      store t[] = %y
    """
    assert np.isinf(bounds(text, *numbers()).bounds["t"])


def test_sorted_keys_move_by_the_largest_error_and_their_company_is_undecided() -> None:
    text = "%k: f32[n], %y: f32[n] = sort %SOURCE, %w {axis = n}\n store y[n] = %OUT\n"
    x, w = numbers()
    exact = bounds(text.replace("SOURCE", "x").replace("OUT", "y"), x, w)
    assert not exact.bounds["y"].any()
    keys = bounds(text.replace("SOURCE", "e").replace("OUT", "k"), x, w)
    assert np.all(np.abs(keys.values["y"] - np.sort(np.exp(x.astype(np.float64)))) <= keys.bounds["y"])
    assert np.isfinite(keys.bounds["y"]).all()
    assert np.isinf(bounds(text.replace("SOURCE", "e").replace("OUT", "y"), x, w).bounds["y"]).all()


BRANCH = """
  %s: f32 = reduce %SOURCE {axis = n, combine = add}
  %zero: f32 = constant {value = LIMIT}
  %c: bool = gt %s, %zero
  %y: f32 = if %c () {
    store y[n] = %w
    yield %s
  } () {
    %r: f32 = neg %s
    yield %r
  }
  store t[] = %y
"""


def test_a_branch_on_what_rounding_flips_is_undecided_with_all_that_it_writes() -> None:
    x, w = numbers()
    total = float(np.sum(np.exp(x)))
    clear = bounds(BRANCH.replace("SOURCE", "e").replace("LIMIT", "1.0"), x, w)
    assert 0 < clear.bounds["t"] < 1e-2 and not clear.bounds["y"].any()
    close = bounds(BRANCH.replace("SOURCE", "e").replace("LIMIT", repr(total)), x, w)
    assert np.isinf(close.bounds["t"]) and np.isinf(close.bounds["y"]).all()


def test_a_while_carries_errors_and_is_undecided_where_its_test_is() -> None:
    text = """
      %limit: f32 = constant {value = LIMIT}
      %s: f32 = reduce %e {axis = n, combine = add}
      %y: f32 = while %s (%a: f32) {
        %c: bool = lt %a, %limit
        yield %c
      } (%b: f32) {
        %d: f32 = add %b, %b
        yield %d
      }
      store t[] = %y
    """
    x, w = numbers()
    total = float(np.sum(np.exp(x)))
    clear = bounds(text.replace("LIMIT", repr(3 * total)), x, w)
    assert 0 < clear.bounds["t"] < 1e-2
    assert np.isinf(bounds(text.replace("LIMIT", repr(2 * float(clear.values["t"]) / 4)), x, w).bounds["t"])


def test_an_atomic_sum_of_small_integers_is_exact_and_of_others_undecided() -> None:
    text = "%i: i32 = constant {value = 0}\n atomic %x, %i {buffer = y, combine = add}\n"
    integers = np.arange(50).astype(np.float32)
    assert not bounds(text, integers, integers).bounds["y"].any()
    assert np.isinf(bounds(text, *numbers()).bounds["y"][0])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=kernels())
def test_no_kernel_is_past_the_bounds(case: Case) -> None:
    """Every op has a rule, and none gives a NaN."""
    found = hard_bounds(bind(case.kernel, case.sizes), case.arguments, ACCURACY)
    for name, bound in found.bounds.items():
        assert not np.isnan(bound).any() and np.all(bound >= 0), name
