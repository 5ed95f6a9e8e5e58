"""Ops with regions, asserts and prints, each against Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from kdsl.diagnostics import KdslError
from kdsl.interpreter import run
from kdsl.ir.text import parse_kernel
from tests.ir.running import run_text

# -- reductions and scans by a region ------------------------------------------------------------------------------

RECURRENCE = """kernel recurrence(a: in i32[M, N], b: in i32[M, N], y: inout i32[M, N], z: inout i32[M, 2]) {
  size M
  size N
  axis m < 3 where m < M
  axis n < 8 where LOW <= n < N
  %a: i32[m, n] = load a[m, n]
  %b: i32[m, n] = load b[m, n]
  %ys: i32[m, n], %y: i32[m, n] = scan_by %a, %b {axis = n, reverse = REVERSE} \
(%a1: i32[m, n], %b1: i32[m, n], %a2: i32[m, n], %b2: i32[m, n]) {
    %a3: i32[m, n] = mul %a1, %a2
    %c: i32[m, n] = mul %b1, %a2
    %b3: i32[m, n] = add %c, %b2
    yield %a3, %b3
  }
  store y[m, n] = %y
  %za: i32[m], %zb: i32[m] = reduce_by %a, %b {axis = n} \
(%a4: i32[m, n], %b4: i32[m, n], %a5: i32[m, n], %b5: i32[m, n]) {
    %a6: i32[m, n] = mul %a4, %a5
    %d: i32[m, n] = mul %b4, %a5
    %b6: i32[m, n] = add %d, %b5
    yield %a6, %b6
  }
  store z[m, 0] = %za where 0 < N - LOW
  store z[m, 1] = %zb where 0 < N - LOW
}
"""


@pytest.mark.parametrize("low", [0, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3, 7, 8])
def test_a_linear_recurrence_is_a_scan_by_a_combine_that_does_not_commute(n: int, reverse: bool, low: int) -> None:
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-3, 4, (2, n)).astype(np.int32) for _ in range(2))
    y, z = np.zeros((2, n), np.int32), np.zeros((2, 2), np.int32)
    text = RECURRENCE.replace("LOW", str(low)).replace("REVERSE", str(reverse).lower())
    got = run_text(text, {"M": 2, "N": n}, a=a, b=b, y=y, z=z)
    expected, last = np.zeros((2, n), np.int32), np.zeros((2, 2), np.int32)
    for row in range(2):
        for places, is_scan in ((range(low, n)[:: -1 if reverse else 1], True), (range(low, n), False)):
            state, factor = 0, 1
            for place in places:
                state, factor = state * int(a[row, place]) + int(b[row, place]), factor * int(a[row, place])
                if is_scan:
                    expected[row, place] = state
                else:
                    last[row] = factor, state
    np.testing.assert_array_equal(got["y"], expected)
    np.testing.assert_array_equal(got["z"], last)


def test_an_argmax_by_a_region_gives_the_lower_lane_of_equals() -> None:
    text = """kernel argmax(x: in f32[N], y: out i32[]) {
      size N
      axis n < 16 where n < N
      %x: f32[n] = load x[n]
      %i: i32[n] = index {form = n}
      %v: f32, %y: i32 = reduce_by %x, %i {axis = n} (%v1: f32[n], %i1: i32[n], %v2: f32[n], %i2: i32[n]) {
        %better: bool[n] = gt %v2, %v1
        %v3: f32[n] = select %better, %v2, %v1
        %i3: i32[n] = select %better, %i2, %i1
        yield %v3, %i3
      }
      store y[] = %y
    }"""
    for n in (1, 5, 11, 16):
        x = np.random.default_rng(n).integers(0, 3, n).astype(np.float32)
        assert run_text(text, {"N": n}, x=x)["y"] == x.tolist().index(max(x.tolist()))


def test_welford_by_a_region_gives_mean_and_variance_of_a_ragged_row() -> None:
    text = """kernel welford(x: in f32[M, N], mean: out f32[M], m2: out f32[M]) {
      size M
      size N
      program m < M
      axis n < 64 where n < N
      %x: f32[m, n] = load x[m, n]
      %zero: f32 = constant {value = 0.0}
      %one: f32 = constant {value = 1.0}
      %mean: f32[m], %m2: f32[m], %count: f32[m] = reduce_by %x, %zero, %one {axis = n} \
(%a: f32[m, n], %p: f32[m, n], %k: f32[m, n], %b: f32[m, n], %q: f32[m, n], %l: f32[m, n]) {
        %d: f32[m, n] = sub %b, %a
        %both: f32[m, n] = add %k, %l
        %share: f32[m, n] = div %l, %both
        %step: f32[m, n] = mul %d, %share
        %c: f32[m, n] = add %a, %step
        %sum: f32[m, n] = add %p, %q
        %dd: f32[m, n] = mul %d, %d
        %e: f32[m, n] = mul %dd, %k
        %f: f32[m, n] = mul %e, %share
        %r: f32[m, n] = add %sum, %f
        yield %c, %r, %both
      }
      store mean[m] = %mean
      store m2[m] = %m2
    }"""
    x = np.random.default_rng(0).normal(3, 2, (4, 41)).astype(np.float32)
    got = run_text(text, {"M": 4, "N": 41}, x=x)
    np.testing.assert_allclose(got["mean"], x.astype(float).mean(1), rtol=1e-6)
    np.testing.assert_allclose(got["m2"] / 41, x.astype(float).var(1), rtol=1e-5)


def test_a_reduction_by_a_region_of_no_valid_lane_is_poison() -> None:
    text = """kernel none(y: out f32[]) {
      axis n < 4 where n < 0
      %x: f32[n] = poison {axes = [n]}
      %y: f32 = reduce_by %x {axis = n} (%a: f32[n], %b: f32[n]) {
        %c: f32[n] = add %a, %b
        yield %c
      }
      store y[] = %y
    }"""
    held = run(parse_kernel(text), {}, lambda dtype, shape: np.full(shape, 3.5, dtype.numpy))
    assert held["y"] == 3.5


# -- branches and loops --------------------------------------------------------------------------------------------


def test_a_branch_runs_one_side_and_its_stores_alone() -> None:
    text = """kernel choose(x: in i32[4], y: inout i32[4, 2], z: inout i32[4]) {
      program p < 4
      axis n < 2
      %x: i32[p] = load x[p]
      %zero: i32 = constant {value = 0}
      %positive: bool[p] = gt %x, %zero
      %n: i32[n] = index {form = n}
      %r: i32[p, n], %s: i32[p] = if %positive () {
        %a: i32[p, n] = add %x, %n
        store z[p] = %x
        yield %a, %zero
      } () {
        %b: i32[p] = neg %x
        yield %b, %b
      }
      %t: i32[p, n] = add %r, %s
      store y[p, n] = %t
    }"""
    x = np.array([3, -2, 0, 7], np.int32)
    got = run_text(text, x=x, y=np.zeros((4, 2), np.int32), z=np.full(4, -1, np.int32))
    np.testing.assert_array_equal(got["y"], [[3, 4], [4, 4], [0, 0], [7, 8]])
    np.testing.assert_array_equal(got["z"], [3, -1, -1, 7])


def test_a_while_carries_values_for_as_long_as_its_test_yields_true() -> None:
    text = """kernel collatz(x: in i32[6], y: inout i32[6], z: inout i32[6]) {
      program p < 6
      %x: i32[p] = load x[p]
      %zero: i32 = constant {value = 0}
      %one: i32 = constant {value = 1}
      %two: i32 = constant {value = 2}
      %three: i32 = constant {value = 3}
      %end: i32[p], %steps: i32[p] = while %x, %zero (%v: i32[p], %k: i32[p]) {
        %more: bool[p] = gt %v, %one
        yield %more
      } (%w: i32[p], %l: i32[p]) {
        %half: i32[p] = floordiv %w, %two
        %odd: i32[p] = floormod %w, %two
        %is_odd: bool[p] = eq %odd, %one
        %tripled: i32[p] = mul %w, %three
        %next: i32[p] = add %tripled, %one
        %u: i32[p] = select %is_odd, %next, %half
        %m: i32[p] = add %l, %one
        yield %u, %m
      }
      store y[p] = %steps
      store z[p] = %end
    }"""

    def steps(value: int) -> int:
        return 0 if value <= 1 else 1 + steps(3 * value + 1 if value % 2 else value // 2)

    x = [0, 1, 2, 7, 27, 6]
    got = run_text(text, x=np.array(x, np.int32), y=np.zeros(6, np.int32), z=np.zeros(6, np.int32))
    assert got["y"].tolist() == [steps(value) for value in x]
    assert got["z"].tolist() == [0, 1, 1, 1, 1, 1]


def test_a_while_may_carry_a_tile_and_store_as_it_goes() -> None:
    text = """kernel powers(x: in f32[3], y: inout f32[3], log: inout i32[]) {
      axis n < 3
      %x: f32[n] = load x[n]
      %limit: f32 = constant {value = 100.0}
      %y: f32[n] = while %x (%a: f32[n]) {
        %top: f32 = reduce %a {axis = n, combine = maximum}
        %c: bool = lt %top, %limit
        yield %c
      } (%b: f32[n]) {
        %d: f32[n] = add %b, %b
        %zero: i32 = constant {value = 1}
        atomic %zero {buffer = log, combine = add}
        yield %d
      }
      store y[n] = %y
    }"""
    got = run_text(text, x=np.array([1, 2, 7], np.float32), y=np.zeros(3, np.float32), log=np.array(0, np.int32))
    np.testing.assert_array_equal(got["y"], [16, 32, 112])
    assert got["log"] == 4


# -- reports -------------------------------------------------------------------------------------------------------

CHECKED = """kernel checked(x: in i32[N], y: inout i32[N]) {
  size N
  program p < 2
  axis n < 8 where n < N
  %x: i32[n] = load x[n]
  %zero: i32 = constant {value = 0}
  %fine: bool[n] = ge %x, %zero
  assert %fine {message = "x is \\"negative\\"\\n"}
  print %x {message = "x:"}
  store y[n] = %x
}
"""


def test_an_assertion_looks_at_valid_lanes_only() -> None:
    x = np.array([1, 0, 5], np.int32)
    np.testing.assert_array_equal(run_text(CHECKED, {"N": 3}, x=x, y=np.zeros(3, np.int32))["y"], x)
    with pytest.raises(KdslError, match='x is "negative"') as caught:
        run_text(CHECKED, {"N": 3}, x=np.array([1, -1, 5], np.int32), y=np.zeros(3, np.int32))
    assert caught.value.code == "K0602"


def test_a_print_shows_the_program_the_message_and_the_values(capsys: Any) -> None:
    text = CHECKED.replace("where n < N", "").replace("axis n < 8", "axis n < N")
    run_text(text, {"N": 2}, x=np.array([4, 5], np.int32), y=np.zeros(2, np.int32))
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "program {'p': 0}: x: [4 5]" and second == "program {'p': 1}: x: [4 5]"


def test_nan_is_carried_by_a_combine_that_carries_it() -> None:
    text = """kernel nans(x: in f32[4], y: out f32[4]) {
      axis n < 4
      %x: f32[n] = load x[n]
      %y: f32[n] = scan_by %x {axis = n} (%a: f32[n], %b: f32[n]) {
        %c: f32[n] = maximum %a, %b
        yield %c
      }
      store y[n] = %y
    }"""
    got = run_text(text, x=np.array([1, math.nan, 3, 2], np.float32))["y"]
    np.testing.assert_array_equal(np.isnan(got), [False, True, True, True])
