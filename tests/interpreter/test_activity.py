"""Branches, whiles and named integers that differ between programs: a box of them does what each does alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.diagnostics import KdslError
from kdsl.interpreter import batched, mode_of, run, stepped
from kdsl.ir.kernel import Kernel
from tests.interpreter.test_batched import assert_same_bits
from tests.interpreter.test_stepped import bound

# An arm that is not taken must not load (out of bounds for others) nor store (seen by others).
BRANCHES = """kernel branches(x: in i32[P], y: inout i32[P, Q], z: inout i32[P, Q]) {
  size P
  size Q
  program p < P
  program q < Q
  %three: i32 = constant {value = 3}
  %p: i32[p] = index {form = p}
  %low: bool[p] = lt %p, %three
  %q: i32[q] = index {form = q}
  %zero: i32 = constant {value = 0}
  %first: bool[q] = eq %q, %zero
  %r: i32[p, q] = if %low () {
    %x: i32[p] = load x[p + P - 3]
    %s: i32[p, q] = if %first () {
      store z[p, q] = %x
      yield %q
    } () {
      %t: i32[p, q] = add %x, %q
      yield %t
    }
    yield %s
  } () {
    %w: i32[p] = load x[p - 3]
    store y[p, q] = %w
    yield %w
  }
  %o: i32[p, q] = load y[p, q]
  %sum: i32[p, q] = add %o, %r
  store y[p, q] = %sum
}
"""


def test_each_program_takes_its_own_branch() -> None:
    kernel = bound(BRANCHES, P=7, Q=4)
    assert mode_of(kernel) == "batched"
    x, y = np.arange(10, 17, dtype=np.int32), np.arange(28, dtype=np.int32).reshape(7, 4)
    z = np.arange(28, dtype=np.int32).reshape(7, 4)
    expected, last = y.copy(), z.copy()
    for p in range(7):
        for q in range(4):
            if p < 3:
                expected[p, q] += q if q == 0 else x[p + 4] + q
                if q == 0:
                    last[p, q] = x[p + 4]
            else:
                expected[p, q] = 2 * x[p - 3]
    got = run(kernel, {"x": x, "y": y, "z": z})
    assert np.array_equal(got["y"], expected)
    assert np.array_equal(got["z"], last)
    assert_same_bits(kernel, {"x": x, "y": y, "z": z}, ["NaN", "random bytes"], small=24)


# The steps of the Collatz sequence of each start, and the sequence itself.
COLLATZ = """kernel collatz(x: in i32[N], steps: out i32[N], path: inout i32[N, L]) {
  size N
  size L
  program p < N
  axis l < 1
  integer at[p]
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %two: i32 = constant {value = 2}
  %three: i32 = constant {value = 3}
  %x: i32[p] = load x[p]
  %last: i32[p], %n: i32[p] = while %x, %zero (%a: i32[p], %i: i32[p]) {
    %more: bool[p] = ne %a, %one
    yield %more
  } (%b: i32[p], %j: i32[p]) {
    let %j {integer = at}
    store path[p, at] = %b
    %rest: i32[p] = floormod %b, %two
    %even: bool[p] = eq %rest, %zero
    %next: i32[p] = if %even () {
      %half: i32[p] = floordiv %b, %two
      yield %half
    } () {
      %thrice: i32[p] = mul %b, %three
      %odd: i32[p] = add %thrice, %one
      yield %odd
    }
    %k: i32[p] = add %j, %one
    yield %next, %k
  }
  store steps[p] = %n
}
"""


def collatz(start: int) -> list[int]:
    found = []
    while start != 1:
        found.append(start)
        start = start // 2 if start % 2 == 0 else 3 * start + 1
    return found


def test_a_while_runs_as_long_as_each_program_asks() -> None:
    kernel = bound(COLLATZ, N=30, L=111)
    assert mode_of(kernel) == "batched"
    given = {"x": np.arange(1, 31, dtype=np.int32), "path": np.full((30, 111), -1, np.int32)}
    got = run(kernel, given)
    for p, start in enumerate(range(1, 31)):
        path = collatz(start)
        assert got["steps"][p] == len(path)
        assert got["path"][p].tolist() == path + [-1] * (111 - len(path))
    assert_same_bits(kernel, given, ["NaN"], small=40)


# Sums of the first `count[p]` elements from `start[p]` on, in tiles; nothing is read where a program does not run.
RAGGED = """kernel ragged(x: in f32[K], start: in i32[P], count: in i32[P], y: inout f32[P, Q]) {
  size K
  size P
  size Q
  program p < P
  program q < Q
  integer first[p]
  integer number[p, q]
  loop i < cdiv(number, 4)
  axis k < 4 where 4*i + k < number
  %zero: f32 = constant {value = 0.0}
  %none: i32 = constant {value = 0}
  %q: i32[q] = index {form = q}
  %start: i32[p] = load start[p]
  let %start {integer = first}
  %count: i32[p] = load count[p]
  %some: bool[p] = gt %count, %none
  if %some () {
    %number: i32[p, q] = sub %count, %q
    let %number {integer = number}
    %sum: f32[p, q] = for i (%a: f32[p, q, i] = %zero) {
      %x: f32[p, q, i, k] = load x[first + 4*i + k]
      %part: f32[p, q, i] = reduce %x {axis = k, combine = add}
      %b: f32[p, q, i] = add %a, %part
      yield %b
    }
    store y[p, q] = %sum
    yield
  } () {
    yield
  }
}
"""


def test_loops_to_integers_that_differ_between_programs() -> None:
    kernel = bound(RAGGED, K=20, P=6, Q=3)
    assert mode_of(kernel) == "batched"
    x = np.arange(20, dtype=np.float32)
    start, count = np.array([0, 3, 7, 20, 12, 1], np.int32), np.array([20, 1, 5, 0, 8, -4], np.int32)
    y = np.full((6, 3), -1, np.float32)
    expected = y.copy()
    for p in range(6):
        for q in range(3):
            if count[p] > 0:
                expected[p, q] = x[start[p] : start[p] + max(0, count[p] - q)].sum()
    arguments = {"x": x, "start": start, "count": count, "y": y}
    assert np.array_equal(run(kernel, arguments)["y"], expected)
    assert_same_bits(kernel, arguments, ["NaN", "random bytes"], small=16)


LIMIT = """kernel limit(x: in i32[N], y: out i32[N]) {
  size N
  program p < N
  %ten: i32 = constant {value = 10}
  %x: i32[p] = load x[p]
  %small: bool[p] = lt %x, %ten
  if %small () {
    %least: i32 = constant {value = 0}
    %fine: bool[p] = ge %x, %least
    assert %fine {message = "x is negative"}
    yield
  } () {
    yield
  }
  store y[p] = %x
}
"""


@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_an_assertion_is_asked_of_the_programs_that_reach_it(order: Any) -> None:
    kernel = bound(LIMIT, N=50)
    assert mode_of(kernel) == "batched"
    x = np.arange(50, dtype=np.int32)
    assert np.array_equal(run(kernel, {"x": x}, order=order)["y"], x)
    x[[20, 7, 33]] = -1
    raised = []
    for evaluate in (stepped.run, batched.run):
        with pytest.raises(KdslError) as caught:
            evaluate(kernel, {"x": x}, order=order)
        raised.append(caught.value.message)
    assert raised[0] == raised[1]
    assert ("where p = 7" if order == "forward" else "where p = 33") in raised[0]


TICKETS = """kernel tickets(x: in f32[P, M], where: in i32[P, M], y: inout f32[4], before: out f32[P, M]) {
  size P
  size M
  program p < P
  axis m < M
  %x: f32[p, m] = load x[p, m]
  %i: i32[p, m] = load where[p, m]
  %b: f32[p, m] = atomic %x, %i {buffer = y, combine = COMBINE}
  store before[p, m] = %b
}
"""


@pytest.mark.parametrize("combine", ["add", "maximum", "minimum", "exchange"])
def test_atomics_happen_in_the_order_of_programs_and_lanes(combine: str) -> None:
    kernel: Kernel = bound(TICKETS.replace("COMBINE", combine), P=13, M=5)
    rng = np.random.default_rng(5)
    x, where = rng.standard_normal((13, 5)).astype(np.float32), rng.integers(0, 4, (13, 5)).astype(np.int32)
    change = {"add": np.add, "maximum": np.fmax, "minimum": np.fmin, "exchange": lambda old, new: new}[combine]
    y, before = np.zeros(4, np.float32), np.empty((13, 5), np.float32)
    for p in range(13):
        for m in range(5):
            before[p, m] = y[where[p, m]]
            y[where[p, m]] = change(y[where[p, m]], x[p, m])
    for evaluate in (stepped.run, batched.run):
        got = evaluate(kernel, {"x": x, "where": where, "y": np.zeros(4, np.float32)})
        assert np.array_equal(got["y"], y)
        assert np.array_equal(got["before"], before)
