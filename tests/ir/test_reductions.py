"""Reductions, against a fold in Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from kdsl.ir.dtypes import BF16, BOOL, DTYPES, F16, F32, F64, DType
from kdsl.ir.meaning import COMBINES
from tests.ir.arithmetic import assert_same, evaluate, expectation, lanes, round_to


def folded(combine: str, values: list[Any], dtype: DType) -> Any:
    if combine in ("argmax", "argmin"):
        nans = [place for place, value in enumerate(values) if value != value]
        best = max(values) if combine == "argmax" else min(values)
        return nans[0] if nans else values.index(best)
    step = {"add": "add", "mul": "mul", "maximum": "maximum", "minimum": "minimum", "and": "and", "or": "or"}[combine]
    result = values[0]
    for value in values[1:]:
        result = expectation(step, dtype)(result, value)
    return result


@pytest.mark.parametrize(
    ("combine", "dtype"),
    [
        (name, dtype)
        for name, combine in COMBINES.items()
        for dtype in DTYPES.values()
        if dtype.kind in combine.kinds and not dtype.is_storage
    ],
    ids=str,
)
def test_a_reduction_folds_all_lanes(combine: str, dtype: DType) -> None:
    rng = np.random.default_rng(5)
    for length in (1, 2, 7, 40):
        if dtype == BOOL:
            x = rng.integers(0, 2, length).astype(bool)
        elif dtype.is_float:  # integers and powers of two: exact in any order
            numbers = rng.choice([0.5, 1, 2, -1], length) if combine == "mul" else rng.integers(-3, 4, length)
            x = numbers.astype(dtype.numpy)
        else:
            x = rng.integers(0, 2**63, length, np.uint64).astype(dtype.numpy)
        got = evaluate("reduce", [x], axis="n", combine=combine).reshape(1)
        assert_same(got, np.array([folded(combine, [lane for (lane,) in lanes([x])], dtype)]).astype(got.dtype))


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_nan_wins_every_ordered_reduction(dtype: DType) -> None:
    x = np.array([1, math.inf, math.nan, -math.inf, math.nan]).astype(dtype.numpy)
    for combine, expected in [("maximum", math.nan), ("minimum", math.nan), ("argmax", 2), ("argmin", 2)]:
        got = float(evaluate("reduce", [x], axis="n", combine=combine))
        assert got == expected or (got != got and expected != expected)


def test_ties_go_to_the_lowest_lane() -> None:
    x = np.array([0.0, 3.0, -0.0, 3.0, -2.0, -2.0], np.float32)
    assert int(evaluate("reduce", [x], axis="n", combine="argmax")) == 1
    assert int(evaluate("reduce", [x], axis="n", combine="argmin")) == 4
    assert int(evaluate("reduce", [np.full(3, -np.inf, np.float32)], axis="n", combine="argmax")) == 0


def test_sixteen_bit_sums_accumulate_in_f32() -> None:
    for dtype in (F16, BF16):
        x = np.ones(1000, dtype.numpy)
        assert float(evaluate("reduce", [x], axis="n", combine="add")) == float(round_to(1000.0, dtype))
