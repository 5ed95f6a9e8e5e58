"""Indexed loads, stores and atomics, each against a loop in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.diagnostics import KdslError
from tests.ir.running import run_text

GATHER = """kernel gather(x: in f32[R, C], i: in i32[N], j: in i64[N], m: in bool[N], y: inout f32[N]) {
  size R
  size C
  size N
  axis n < 8 where n < N
  %i: i32[n] = load i[n]
  %j: i64[n] = load j[n]
  %m: bool[n] = load m[n]
  %y: f32[n] = load_at %i, %j, %m {buffer = x, masked = true, fill = 7.0}
  store y[n] = %y
}
"""


def places(n: int, rows: int = 3, columns: int = 5) -> Any:
    rng = np.random.default_rng(n)
    return rng.integers(0, rows, n).astype(np.int32), rng.integers(0, columns, n), rng.integers(0, 2, n).astype(bool)


@pytest.mark.parametrize("n", [0, 1, 6, 8])
def test_load_at_reads_where_the_mask_holds_and_fills_elsewhere(n: int) -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    i, j, m = places(n)
    i[~m] = 99  # a lane that the mask leaves out may point anywhere
    expected = [x[a, b] if c else 7 for a, b, c in zip(i, j, m, strict=True)]
    got = run_text(GATHER, {"R": 3, "C": 5, "N": n}, x=x, i=i, j=j, m=m, y=np.zeros(n, np.float32))["y"]
    np.testing.assert_array_equal(got, np.array(expected, np.float32))


@pytest.mark.parametrize(("row", "column"), [(-1, 0), (3, 0), (0, -1), (0, 5)])
def test_an_index_out_of_bounds_is_a_fault_that_names_the_tensor(row: int, column: int) -> None:
    x, mask = np.zeros((3, 5), np.float32), np.array([False, True])
    i, j = np.array([0, row], np.int32), np.array([0, column], np.int64)
    with pytest.raises(KdslError, match=r"x: index .* in dimension") as caught:
        run_text(GATHER, {"R": 3, "C": 5, "N": 2}, x=x, i=i, j=j, m=mask, y=np.zeros(2, np.float32))
    assert caught.value.code == "K0601"


SCATTER = """kernel scatter(i: in i32[N], v: in i32[N], m: in bool[N], y: inout i32[4]) {
  size N
  program p < 2
  axis n < 8 where n < N
  %i: i32[n] = load i[n]
  %v: i32[n] = load v[n]
  %m: bool[n] = load m[n]
  %p: i32[p] = index {form = 100*p}
  %w: i32[p, n] = add %v, %p
  OP
}
"""


def scattered(op: str, n: int = 7, **more: Any) -> Any:
    rng = np.random.default_rng(8)
    i, v = rng.integers(0, 4, n).astype(np.int32), rng.integers(-9, 9, n).astype(np.int32)
    m, y = rng.integers(0, 2, n).astype(bool), np.array([5, -5, 0, 3], np.int32)
    got = run_text(SCATTER.replace("OP", op), {"N": n}, i=i, v=v, m=m, y=y)["y"]
    lanes = [(p, int(a), int(b) + 100 * p) for p in range(2) for a, b, c in zip(i, v, m, strict=True) if c]
    return got, lanes, y.copy()


def test_of_lanes_that_store_to_one_element_the_last_wins() -> None:
    got, lanes, expected = scattered("store_at %w, %i, %m {buffer = y, masked = true}")
    for _, place, value in lanes:
        expected[place] = value
    np.testing.assert_array_equal(got, expected)


CHANGES = {
    "add": lambda old, new: old + new,
    "maximum": max,
    "minimum": min,
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
    "exchange": lambda old, new: new,
}


@pytest.mark.parametrize("combine", CHANGES)
def test_an_atomic_changes_an_element_once_for_each_lane_of_each_program(combine: str) -> None:
    got, lanes, expected = scattered(f"atomic %w, %i, %m {{buffer = y, masked = true, combine = {combine}}}")
    for _, place, value in lanes:
        expected[place] = CHANGES[combine](int(expected[place]), value)
    np.testing.assert_array_equal(got, expected)


def test_a_uniform_atomic_happens_once_for_each_program() -> None:
    text = """kernel count(y: inout i32[2]) {
      program p < 3
      program q < 2
      %one: i32 = constant {value = 1}
      %zero: i32 = constant {value = 0}
      %old: i32[p, q] = atomic %one, %zero {buffer = y, combine = add}
      atomic %old, %one {buffer = y, combine = add}
    }"""
    got = run_text(text, y=np.array([10, 0], np.int32))["y"]
    np.testing.assert_array_equal(got, [16, sum(range(10, 16))])


def test_an_atomic_gives_what_it_found_lane_by_lane() -> None:
    text = """kernel old(i: in i32[N], z: inout i32[4], y: inout i32[N]) {
      size N
      axis n < 8 where n < N
      %i: i32[n] = load i[n]
      %n: i32[n] = index {form = n}
      %old: i32[n] = atomic %n, %i {buffer = z, combine = exchange}
      store y[n] = %old
    }"""
    i, memory = np.array([1, 1, 0, 1, 3, 0], np.int32), [-1, -2, -3, -4]
    expected = []
    for lane, place in enumerate(i):
        expected.append(memory[place])
        memory[place] = lane
    got = run_text(text, {"N": 6}, i=i, z=np.array([-1, -2, -3, -4], np.int32), y=np.zeros(6, np.int32))
    np.testing.assert_array_equal(got["y"], expected)
    np.testing.assert_array_equal(got["z"], memory)


def test_compare_and_swap_stores_where_it_finds_what_it_expects() -> None:
    text = """kernel lock(z: inout i32[], y: inout i32[4]) {
      program p < 4
      %free: i32 = constant {value = 0}
      %mine: i32[p] = index {form = p + 1}
      %old: i32[p] = atomic_cas %free, %mine {buffer = z}
      store y[p] = %old
    }"""
    got = run_text(text, z=np.array(0, np.int32), y=np.full(4, -1, np.int32))
    assert got["z"] == 1
    np.testing.assert_array_equal(got["y"], [0, 1, 1, 1])


def test_atomic_extremes_pass_over_nan() -> None:
    text = """kernel extremes(x: in f32[3], y: inout f32[2]) {
      axis n < 3
      %x: f32[n] = load x[n]
      %zero: i32 = constant {value = 0}
      %one: i32 = constant {value = 1}
      atomic %x, %zero {buffer = y, combine = maximum}
      atomic %x, %one {buffer = y, combine = minimum}
    }"""
    got = run_text(text, x=np.array([1, np.nan, 3], np.float32), y=np.array([np.nan, 2], np.float32))["y"]
    np.testing.assert_array_equal(got, [3, 1])


def test_a_ragged_atomic_leaves_invalid_lanes_out() -> None:
    text = """kernel ragged(y: inout i64[1]) {
      axis n < 8 where 2 <= n < 5
      %n: i64[n] = index {form = n}
      %zero: i32 = constant {value = 0}
      atomic %n, %zero {buffer = y, combine = add}
    }"""
    assert run_text(text, y=np.zeros(1, np.int64))["y"] == [2 + 3 + 4]


def test_an_atomic_of_what_does_not_vary_happens_once_for_each_lane() -> None:
    text = """kernel count(y: inout i32[2]) {
      axis n < 5
      %one: i32 = constant {value = 1}
      %ones: i32[n] = broadcast %one {axes = [n]}
      atomic %ones, %one {buffer = y, combine = add}
    }"""
    np.testing.assert_array_equal(run_text(text, y=np.zeros(2, np.int32))["y"], [0, 5])
