"""Dots of every operand type and precision, and scaled dots, against exact fractions in Python."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kdsl.ir.dtypes import DTYPES
from tests.ir.running import run_text

DOT = """kernel dot(a: in {left}[3, N], b: in {right}[N, 2], c: out {result}[3, 2]) {{
  size N
  axis m < 3
  axis n < 2
  axis k < 16 where k < N
  %a: {left}[m, k] = load a[m, k]
  %b: {right}[n, k] = load b[k, n]
  %c: {result}[m, n] = dot %a, %b {{axis = k, precision = {precision}}}
  store c[m, n] = %c
}}
"""


def dot(a: Any, b: Any, left: str, right: str, result: str, precision: str = "ieee") -> Any:
    text = DOT.format(left=left, right=right, result=result, precision=precision)
    return run_text(text, {"N": a.shape[1]}, a=a, b=b)["c"]


def exact(a: Any, b: Any) -> Any:
    """The product of matrices of small fractions, without rounding."""
    wide = np.vectorize(Fraction, otypes=[object])
    return [[float(sum(wide(row) * wide(column))) for column in b.T] for row in a]


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        *(("f8e4m3", "f8e4m3", "f32"), ("f8e5m2", "f8e5m2", "f32"), ("f8e4m3", "f8e5m2", "f32")),
        *(("f8e4m3fnuz", "f8e4m3fnuz", "f32"), ("f4e2m1", "f4e2m1", "f32"), ("i4", "i4", "i32"), ("i8", "i8", "i32")),
        *(("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("f64", "f64", "f64"), ("i64", "i64", "i64")),
    ],
)
def test_a_dot_widens_before_it_multiplies(left: str, right: str, result: str) -> None:
    rng = np.random.default_rng(0)
    for n in (0, 1, 13):
        a = rng.integers(-4, 5, (3, n)).astype(DTYPES[left].numpy)
        b = rng.integers(-4, 5, (n, 2)).astype(DTYPES[right].numpy)
        expected = np.array(exact(a.astype(float), b.astype(float))).reshape(3, 2)
        np.testing.assert_array_equal(dot(a, b, left, right, result), expected)


@pytest.mark.parametrize(
    ("precision", "kept"), [("tf32", 10), ("bf16", 7), *((name, 23) for name in ("ieee", "tf32x3", "bf16x6"))]
)
def test_a_precision_says_how_many_fraction_bits_are_multiplied(precision: str, kept: int) -> None:
    # Each operand alone against 1: what comes out is what was multiplied.
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.0, np.inf, np.nan, -1 - 2.0**-9])
    for value in x.astype(np.float32):
        a, b = np.zeros((3, 1), np.float32), np.ones((1, 2), np.float32)
        a[0] = value
        expected = value
        if np.isfinite(value):
            scaled = Fraction(float(value)) * 2**kept  # |value| < 4, so at most one bit above
            step = 2 if abs(value) >= 2 else 1
            expected = np.float32(float(round(scaled / step) * step / Fraction(2**kept)))
        np.testing.assert_array_equal(dot(a, b, "f32", "f32", "f32", precision)[0, 0], expected)


BATCHED = """kernel batched(a: in f32[B, 3, N], b: in f32[N, B, 2], c: out f32[2, B, 3], d: out f32[B]) {
  size N
  size B
  program p < cdiv(B, 2)
  axis b < 2 where 2*p + b < B
  axis m < 3
  axis n < 2
  axis k < 16 where k + b < N
  %a: f32[p, b, m, k] = load a[2*p + b, m, k]
  %b: f32[p, b, n, k] = load b[k, 2*p + b, n]
  %c: f32[p, b, m, n] = dot %a, %b {axis = k, precision = ieee}
  store c[n, 2*p + b, m] = %c
  %first: f32[p, b, k] = load a[2*p + b, 0, k]
  %d: f32[p, b] = dot %first, %first {axis = k, precision = ieee}
  store d[2*p + b] = %d
}
"""


@pytest.mark.parametrize("count", [1, 4, 5])
def test_axes_of_both_operands_that_are_not_contracted_have_a_product_for_each_point(count: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((count, 3, 7), (7, count, 2)))
    got = run_text(BATCHED, {"N": 7, "B": count}, a=a, b=b)
    for point in range(count):
        terms = 7 - point % 2  # the last lane of every second point is invalid
        product = a[point, :, :terms].astype(float) @ b[:terms, point].astype(float)
        np.testing.assert_array_equal(got["c"][:, point], product.T)
        assert got["d"][point] == (a[point, 0, :terms].astype(float) ** 2).sum()


SCALED = """kernel scaled(a: in f8e4m3[3, 8], s: in u8[3, 2], b: in f4e2m1[8, 2], t: in u8[4, 2], c: out f32[3, 2]) {
  axis m < 3
  axis n < 2
  axis k < 8
  axis g < 2
  axis h < 4
  %a: f8e4m3[m, k] = load a[m, k]
  %s: u8[m, g] = load s[m, g]
  %b: f4e2m1[n, k] = load b[k, n]
  %t: u8[n, h] = load t[h, n]
  %c: f32[m, n] = dot_scaled %a, %s, %b, %t {axis = k, left_group = g, right_group = h}
  store c[m, n] = %c
}
"""


def test_a_scaled_dot_multiplies_each_run_of_lanes_by_its_power_of_two() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(-8, 9, (3, 8)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.choice([0, 0.5, 1, 1.5, 2, 3, 4, 6, -6], (8, 2)).astype(ml_dtypes.float4_e2m1fn)
    s, t = rng.integers(120, 134, (3, 2)).astype(np.uint8), rng.integers(120, 134, (4, 2)).astype(np.uint8)
    expected = [
        [
            float(
                sum(
                    Fraction(float(a[m, k]))
                    * Fraction(2) ** (int(s[m, k // 4]) - 127)
                    * Fraction(float(b[k, n]))
                    * Fraction(2) ** (int(t[k // 2, n]) - 127)
                    for k in range(8)
                )
            )
            for n in range(2)
        ]
        for m in range(3)
    ]
    np.testing.assert_array_equal(run_text(SCALED, a=a, s=s, b=b, t=t)["c"], np.array(expected, np.float32))
    s[1, 0] = 255
    got = run_text(SCALED, a=a, s=s, b=b, t=t)["c"]
    np.testing.assert_array_equal(np.isnan(got), [[False, False], [True, True], [False, False]])


SCALED_ROWS = """kernel scaled(a: in f8e4m3[3, 8], s: in u8[2], b: in f8e4m3[3, 8], t: in u8[3, 4], c: out f32[3]) {
  axis m < 3
  axis k < 8
  axis g < 2
  axis h < 4
  %a: f8e4m3[m, k] = load a[m, k]
  %s: u8[g] = load s[g]
  %b: f8e4m3[m, k] = load b[m, k]
  %t: u8[m, h] = load t[m, h]
  %c: f32[m] = dot_scaled %a, %s, %b, %t {axis = k, left_group = g, right_group = h}
  store c[m] = %c
}
"""


def test_a_scaled_dot_has_one_product_for_each_point_of_an_axis_of_both_operands() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-8, 9, (3, 8)).astype(ml_dtypes.float8_e4m3fn) for _ in "ab")
    s, t = rng.integers(124, 130, 2).astype(np.uint8), rng.integers(124, 130, (3, 4)).astype(np.uint8)
    left = a.astype(float) * np.repeat(2.0 ** (s.astype(float) - 127), 4)
    right = b.astype(float) * np.repeat(2.0 ** (t.astype(float) - 127), 2, axis=1)
    got = run_text(SCALED_ROWS, a=a, s=s, b=b, t=t)["c"]
    np.testing.assert_array_equal(got, (left * right).sum(axis=1).astype(np.float32))
