"""Bounds through ops along axes and regions: they hold the exact result, or say that they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

from kdsl.equivalence.bounds import Bounded, error_bounds, hard_bounds
from kdsl.equivalence.compare import compare
from kdsl.equivalence.perturbation import perturbed_run
from kdsl.interpreter.accuracy import ACCURACY
from kdsl.ir.kernel import bind
from kdsl.ir.text import parse_kernel
from kdsl.runtime.target import Accuracy, AccuracyTable
from tests.ir.strategies import Case, kernels

# A target that rounds nothing but single operations to nearest.
COARSE: AccuracyTable = {
    **ACCURACY,
    **{(op, "*"): Accuracy(3.0, 2.0**-126) for op in ("exp", "log", "div", "rsqrt", "erf", "tanh", "sin", "pow")},
    **{(op, "f32"): Accuracy(2.0, addition=1.0) for op in ("dot", "reduce", "scan")},
}

# Kernels are too large to shrink in a test's time.
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)

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


def test_sorted_keys_lie_between_those_of_the_ends_of_their_intervals() -> None:
    text = "%k: f32[n], %y: f32[n] = sort %SOURCE, %w {axis = n}\n store y[n] = %k\n"
    x, w = numbers()
    assert not bounds(text.replace("SOURCE", "x"), x, w).bounds["y"].any()
    keys = bounds(text.replace("SOURCE", "e"), x, w)
    exact = np.sort(np.exp(x.astype(np.float64)))
    assert np.all(np.abs(keys.values["y"] - exact) <= keys.bounds["y"])
    # Each by its own size: at most 16 ulp of it.
    assert np.all(keys.bounds["y"] <= 16 * np.spacing(exact.astype(np.float32)))


def test_what_is_sorted_along_is_undecided_where_keys_are_close_and_only_there() -> None:
    text = "%k: f32[n], %y: f32[n] = sort %SOURCE, %w {axis = n DESCENDING}\n store y[n] = %y\n"
    x, w = np.array([3, 1, 2, 1, 0], np.float32), np.arange(5).astype(np.float32)
    for descending in ("", ", descending = true"):
        chosen = text.replace(" DESCENDING", descending)
        assert not bounds(chosen.replace("SOURCE", "x"), x, w).bounds["y"].any()  # exact ties go by lane
        # Both lanes with exp(1) may come first.
        found = bounds(chosen.replace("SOURCE", "e"), x, w).bounds["y"]
        lost = [False, True, True, False, False] if not descending else [False, False, True, True, False]
        assert np.isinf(found).tolist() == lost and not found[~np.isinf(found)].any()


def test_a_topk_lane_is_undecided_where_one_that_is_left_out_may_take_its_place() -> None:
    text = """
      %v: f32[k], %i: i32[k] = topk %SOURCE {axis = n, target = k}
      %f: f32[k] = cast %i
      store y[k] = %f
    """
    head = HEAD.replace("axis m < 64 where m < N", "axis k < 2")
    w = np.ones(5, np.float32)

    def lanes(source: str, x: list[float]) -> Any:
        kernel = bind(parse_kernel(head + text.replace("SOURCE", source) + "}"), {"N": 5})
        given = {"x": np.array(x, np.float32), "w": w, "y": np.zeros(5, np.float32), "t": np.zeros((), np.float32)}
        return hard_bounds(kernel, given, ACCURACY).bounds["y"][:2]

    assert lanes("x", [5, 1, 2, 2, 0]).tolist() == [0, 0]
    assert lanes("e", [5, 1, 3, 2, 0]).tolist() == [0, 0]
    assert lanes("e", [5, 1, 2, 2, 0]).tolist() == [0, np.inf]
    assert lanes("e", [2, 1, 2, 1, 0]).tolist() == [np.inf, np.inf]


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


def test_a_named_integer_that_is_undecided_leaves_all_that_follows_undecided() -> None:
    head = HEAD.replace("  size N", "  size N\n  integer count")
    text = (
        head.replace("where m < N", "where m < count")
        + """
      %best: i32 = reduce %e {axis = n, combine = argmax}
      let %best {integer = count}
      %one: f32 = constant {value = 1.0}
      %ones: f32[m] = broadcast %one {axes = [m]}
      %s: f32 = reduce %ones {axis = m, combine = add}
      store t[] = %s
    }"""
    )
    kernel = bind(parse_kernel(text), {"N": 4})
    for x, lost in (([1, 2, 3, 0], False), ([1, 2, 2, 0], True)):
        given = {"x": np.array(x, np.float32), "w": np.ones(4, np.float32)}
        given |= {"y": np.zeros(4, np.float32), "t": np.zeros((), np.float32)}
        assert np.isinf(hard_bounds(kernel, given, ACCURACY).bounds["t"]) == lost


def test_a_stored_condition_is_decided_or_not() -> None:
    text = """kernel positive(x: in f32[N], y: out bool[N]) {
      size N
      program n < N
      %x: f32[n] = load x[n]
      %l: f32[n] = log1p %x
      %c: bool[n] = cast %l
      store y[n] = %c
    }"""
    found = hard_bounds(bind(parse_kernel(text), {"N": 2}), {"x": np.array([0, 1], np.float32)}, COARSE)
    assert found.bounds["y"].tolist() == [np.inf, 0]


@settings(max_examples=25, deadline=None, phases=QUICK, suppress_health_check=list(HealthCheck))
@given(case=kernels())
def test_random_kernels_perturbed_stay_within_their_bounds(case: Case) -> None:
    """Every op has a rule, and none gives a NaN."""
    kernel = bind(case.kernel, case.sizes)
    found = error_bounds(kernel, case.arguments, COARSE)
    for name, bound in found.bounds.items():
        assert not np.isnan(bound).any() and np.all(bound >= found.expected[name]), name
    for seed in range(2):
        compared = compare(perturbed_run(kernel, case.arguments, COARSE, seed), found.values, found.bounds)
        assert compared.worst is None, str(compared.worst)
