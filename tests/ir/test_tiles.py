"""Ops that move lanes along axes, each against a loop in Python; invalid lanes hold every kind of poison."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.ir.arithmetic import assert_same
from tests.ir.running import run_text

ROWS = """kernel rows(x: in {dtype}[M, N], p: in i32[M, N], y: inout {result}[M, N], z: inout i32[M, N]) {{
  size M
  size N
  program r < M
  axis n < 8 where {low} <= n < N
  %x: {dtype}[r, n] = load x[r, n]
  %p: i32[r, n] = load p[r, n]
  {op}
  store y[r, n] = %y
  {more}
}}
"""


def rows(op: str, x: Any, low: int = 0, result: str = "", more: str = "", dtype: str = "", **sizes: Any) -> Any:
    """Run an op of %x (and %p, the column numbers) to %y on rows whose lanes below `low` are invalid."""
    names = {"float32": "f32", "int32": "i32", "bool": "bool", "uint8": "u8", "int8": "i8", "bfloat16": "bf16"}
    dtype = dtype or names[str(x.dtype)]
    text = ROWS.format(dtype=dtype, result=result or dtype, op=op, more=more, low=low)
    m, n = x.shape
    p = np.tile(np.arange(n, dtype=np.int32), (m, 1))
    z = np.full((m, n), -1, np.int32)
    return run_text(text, {"M": m, "N": n}, x=x, p=p, y=np.zeros_like(x), z=z)


def integers(m: int, n: int, top: int = 9) -> Any:
    return np.random.default_rng(m * 10 + n).integers(-9, top, (m, n)).astype(np.int32)


# -- scan ----------------------------------------------------------------------------------------------------------

STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "maximum": max,
    "minimum": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
}


@pytest.mark.parametrize("low", [0, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("combine", STEPS)
def test_a_scan_is_the_running_combine_of_valid_lanes(combine: str, reverse: bool, low: int) -> None:
    for n in (0, 1, 3, 7):
        x = integers(2, n)
        op = f"%y: i32[r, n] = scan %x {{axis = n, combine = {combine}, reverse = {str(reverse).lower()}}}"
        expected = np.zeros_like(x)
        for row in range(2):
            places = range(low, n)[:: -1 if reverse else 1]
            running = itertools.accumulate((int(x[row, place]) for place in places), STEPS[combine])
            for place, value in zip(places, running, strict=True):
                expected[row, place] = np.array(value).astype(np.int32)
        np.testing.assert_array_equal(rows(op, x, low)["y"], expected)


def test_a_scan_of_narrow_integers_wraps_and_of_floats_keeps_nan() -> None:
    x = np.array([[100, 100, 100, 3]], np.int8)
    got = rows("%y: i8[r, n] = scan %x {axis = n, combine = add}", x)["y"]
    np.testing.assert_array_equal(got, [[100, -56, 44, 47]])
    y = np.array([[1, math.nan, 5, -math.inf]], np.float32)
    for combine in ("add", "maximum", "minimum"):
        got = rows(f"%y: f32[r, n] = scan %x {{axis = n, combine = {combine}}}", y)["y"]
        np.testing.assert_array_equal(np.isnan(got), [[False, True, True, True]])


def test_a_bf16_scan_accumulates_in_f32() -> None:
    x = np.array([[256, 1, 1, 1]]).astype(ml_dtypes.bfloat16)  # 256 + 1 is no bf16
    got = rows("%y: bf16[r, n] = scan %x {axis = n, combine = add}", x)["y"]
    np.testing.assert_array_equal(got.astype(float), [[256, 256, 258, 260]])


def test_which_lanes_a_scan_takes_may_vary_over_another_tile_axis() -> None:
    text = """kernel causal(x: in i32[4], y: inout i32[4, 4]) {
      axis m < 4
      axis n < 4 where n < m + 1
      %x: i32[m, n] = load x[n]
      %y: i32[m, n] = scan %x {axis = n, combine = add, reverse = true}
      store y[m, n] = %y
    }"""
    x = np.array([1, 10, 100, 1000], np.int32)
    expected = [[1, 0, 0, 0], [11, 10, 0, 0], [111, 110, 100, 0], [1111, 1110, 1100, 1000]]
    np.testing.assert_array_equal(run_text(text, x=x, y=np.zeros((4, 4), np.int32))["y"], expected)


# -- sorting -------------------------------------------------------------------------------------------------------

SORT = "%y: {dtype}[r, n], %z: i32[r, n] = sort %x, %p {{axis = n, descending = {descending}}}"


def key(value: float) -> tuple[bool, float]:
    return (True, 0.0) if value != value else (False, value)


@pytest.mark.parametrize("low", [0, 3])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["i32", "u8", "f32", "bf16"])
def test_sort_is_stable_and_puts_nan_where_the_largest_goes(dtype: str, descending: bool, low: int) -> None:
    rng = np.random.default_rng(low)
    kinds: dict[str, Any] = {"i32": np.int32, "u8": np.uint8, "f32": np.float32, "bf16": ml_dtypes.bfloat16}
    for n in (1, 5, 8):
        x = rng.choice([3, 1, 0, 7, 200], (3, n)).astype(kinds[dtype])
        if dtype in ("f32", "bf16"):
            x = rng.choice([math.nan, -1.5, 0.0, -0.0, math.inf, -math.inf, 2.0], (3, n)).astype(kinds[dtype])
        op = SORT.format(dtype=dtype, descending=str(descending).lower())
        got = rows(op, x, low, more="store z[r, n] = %z")
        for row in range(3):
            places = list(range(low, n))
            numbers = {place: key(float(x[row, place])) for place in places}
            ordered = sorted(places, key=lambda place: numbers[place])
            if descending:
                ordered = sorted(places[::-1], key=lambda place: numbers[place])[::-1]
            assert got["z"][row].tolist()[low:] == ordered
            assert_same(got["y"][row, low:], x[row, ordered])


TOPK = """kernel topk(x: in {dtype}[M, N], y: inout {dtype}[M, 3], z: inout i32[M, 3]) {{
  size M
  size N
  program r < M
  axis n < 8 where {low} <= n < N
  axis k < 3
  %x: {dtype}[r, n] = load x[r, n]
  %y: {dtype}[r, k], %z: i32[r, k] = topk %x {{axis = n, target = k}}
  store y[r, k] = %y where k < N - {low}
  store z[r, k] = %z where k < N - {low}
}}
"""


@pytest.mark.parametrize("low", [0, 1])
def test_topk_gives_the_largest_and_of_equals_the_lower_lane(low: int) -> None:
    rng = np.random.default_rng(4)
    for n, dtype in itertools.product((1, 2, 3, 8), ("f32", "i32")):
        numbers = [math.nan, 1.0, 1.0, -math.inf, 2.0, 0.0] if dtype == "f32" else [1, 2, 3, -(2**31)]
        x = rng.choice(numbers, (4, n)).astype(np.float32 if dtype == "f32" else np.int32)
        z = np.full((4, 3), -1, np.int32)
        got = run_text(TOPK.format(dtype=dtype, low=low), {"M": 4, "N": n}, x=x, y=np.zeros((4, 3), x.dtype), z=z)
        for row in range(4):
            places = sorted(range(low, n), key=lambda place: key(float(x[row, place])), reverse=True)[:3]
            assert got["z"][row].tolist() == places + [-1] * (3 - len(places))
            np.testing.assert_array_equal(got["y"][row, : len(places)], x[row, places])


# -- gathering and counting ----------------------------------------------------------------------------------------


def test_gather_takes_lanes_by_number_and_gives_poison_outside() -> None:
    text = """kernel gather(x: in i32[M, N], i: in i32[M, K], y: inout i32[M, K]) {
      size M
      size N
      size K
      axis m < 4 where m < M
      axis n < 8 where n < N
      axis k < 8 where k < K
      %x: i32[m, n] = load x[m, n]
      %i: i32[m, k] = load i[m, k]
      %got: i32[m, k] = gather %x, %i {axis = n}
      %zero: i32 = constant {value = 0}
      %n: i32 = index {form = N}
      %low: bool[m, k] = ge %i, %zero
      %high: bool[m, k] = lt %i, %n
      %there: bool[m, k] = and %low, %high
      %minus: i32 = constant {value = -1}
      %y: i32[m, k] = select %there, %got, %minus
      store y[m, k] = %y
    }"""
    x = integers(3, 5)
    i = np.random.default_rng(1).integers(-3, 9, (3, 7)).astype(np.int32)
    expected = [[x[m, j] if 0 <= j < 5 else -1 for j in i[m]] for m in range(3)]
    got = run_text(text, {"M": 3, "N": 5, "K": 7}, x=x, i=i, y=np.zeros((3, 7), np.int32))
    np.testing.assert_array_equal(got["y"], expected)


def test_gather_along_the_axis_that_the_index_varies_over_permutes_it() -> None:
    text = """kernel permute(x: in f32[4, 6], i: in u8[6], y: out f32[4, 6]) {
      axis m < 4
      axis n < 6
      %x: f32[m, n] = load x[m, n]
      %i: u8[n] = load i[n]
      %y: f32[m, n] = gather %x, %i {axis = n}
      store y[m, n] = %y
    }"""
    x, i = np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32), np.array([5, 5, 0, 2, 1, 4], np.uint8)
    np.testing.assert_array_equal(run_text(text, x=x, i=i)["y"], x[:, i])
    one = text.replace("%i: u8[n] = load i[n]", "%i: u8 = constant {value = 3}").replace(
        "%y: f32[m, n] = gather", "%y: f32[m] = gather"
    )
    one = one.replace("y: out f32[4, 6]", "y: out f32[4]").replace("store y[m, n]", "store y[m]")
    np.testing.assert_array_equal(run_text(one, x=x, i=i)["y"], x[:, 3])


@pytest.mark.parametrize("low", [0, 2])
def test_histogram_counts_valid_lanes_and_ignores_other_numbers(low: int) -> None:
    text = """kernel histogram(x: in i32[M, N], y: out i32[M, 5]) {
      size M
      size N
      program r < M
      axis n < 16 where LOW <= n < N
      axis b < 5
      %x: i32[r, n] = load x[r, n]
      %y: i32[r, b] = histogram %x {axis = n, target = b}
      store y[r, b] = %y
    }""".replace("LOW", str(low))
    for n in (0, 1, 11, 16):
        x = np.random.default_rng(n).integers(-3, 8, (3, n)).astype(np.int32)
        expected = np.array([[list(row[low:]).count(number) for number in range(5)] for row in x.tolist()])
        np.testing.assert_array_equal(run_text(text, {"M": 3, "N": n}, x=x)["y"], expected.reshape(3, 5))


# -- rearranging ---------------------------------------------------------------------------------------------------


def test_flip_concat_join_split_and_relabel_move_lanes_and_nothing_else() -> None:
    text = """kernel move(x: in i32[3, 4], w: in i32[2], flipped: out i32[3, 4], joined: out i32[4, 3, 2],
        first: out i32[3, 4], second: out i32[4], long: out i32[3, 6], square: out i32[4, 4]) {
      axis m < 3
      axis n < 4
      axis s < 2
      axis t < 6
      axis u < 4
      %x: i32[m, n] = load x[m, n]
      %w: i32[s] = load w[s]
      %flipped: i32[m, n] = flip %x {axis = n}
      store flipped[m, n] = %flipped
      %lane: i32[n] = index {form = n}
      %joined: i32[m, n, s] = join %x, %lane {axis = s}
      store joined[n, m, s] = %joined
      %first: i32[m, n], %second: i32[m, n] = split %joined {axis = s}
      store first[m, n] = %first
      %zero: i32 = constant {value = 0}
      %low: i32[n] = reduce %second {axis = m, combine = maximum}
      store second[n] = %low
      %long: i32[m, t] = concat %x, %w {source = [n, s], target = t}
      store long[m, t] = %long
      %column: i32[u] = relabel %lane {source = n, target = u}
      %square: i32[n, u] = sub %lane, %column
      store square[n, u] = %square
    }"""
    x, w = integers(3, 4), np.array([70, 80], np.int32)
    got = run_text(text, x=x, w=w)
    np.testing.assert_array_equal(got["flipped"], x[:, ::-1])
    np.testing.assert_array_equal(got["first"], x)
    np.testing.assert_array_equal(got["second"], range(4))
    np.testing.assert_array_equal(got["joined"][:, :, 0], x.T)
    np.testing.assert_array_equal(got["joined"][:, :, 1], [[n] * 3 for n in range(4)])
    np.testing.assert_array_equal(got["long"], [[*row, 70, 80] for row in x.tolist()])
    np.testing.assert_array_equal(got["square"], [[n - u for u in range(4)] for n in range(4)])
