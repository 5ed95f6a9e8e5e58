"""Casts and constants: every pair of dtypes, against integer arithmetic."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kdsl.interpreter import run
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import BF16, BOOL, DTYPES, F16, F32, F64, DType
from kdsl.ir.kernel import Buffer, Kernel, Op, Region, Value
from kdsl.ir.ops import error_rule
from kdsl.ir.verify import verify
from tests.ir.arithmetic import Array, assert_same, evaluate, lanes, round_to, specials, wrap_to

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the operands overflow on purpose


def expected_cast(value: Any, source: DType, target: DType) -> Any:
    if target == BOOL:
        return value != 0
    if target.is_float:
        if source.is_integer and target != F64:
            return _integer_to_float(value, target)
        return round_to(float(value), target)
    if not source.is_float:
        return wrap_to(int(value), target)
    limits = ml_dtypes.iinfo(target.numpy)
    if value != value:
        return 0
    return max(limits.min, min(limits.max, math.trunc(value) if math.isfinite(value) else math.copysign(2**70, value)))


def _integer_to_float(value: int, target: DType) -> Any:
    """Rounded to nearest even by integer arithmetic alone."""
    drop = max(0, abs(value).bit_length() - (target.mantissa + 1))
    whole, rest = divmod(abs(value), 1 << drop)
    half = (1 << drop) >> 1
    whole += bool(drop) and (rest > half or (rest == half and whole % 2 == 1))
    rounded = math.copysign(float(whole << drop), value)
    largest = float(ml_dtypes.finfo(target.numpy).max)
    return np.asarray(rounded if abs(rounded) <= largest else math.copysign(math.inf, value)).astype(target.numpy)[()]


def cast_operands(source: DType, target: DType) -> Array:
    rng = np.random.default_rng(3)
    if source == BOOL:
        return np.array([False, True])
    x = np.concatenate([specials(source), rng.integers(0, 2**64, 300, np.uint64).astype(source.numpy)])
    if source.is_integer:
        near = [sign * (1 << power) + step for power in range(64) for step in (-1, 0, 1) for sign in (1, -1)]
        # Just past halfway between two bf16, by less than f64 can tell.
        near += [2**62 + 2**54 + 1, 2**62 + 2**54 - 1, -(2**62) - 2**54 - 1, 2**54 + 2**46 + 1]
        return np.concatenate([x, np.array([wrap_to(value, source) for value in near], source.numpy)])
    with np.errstate(all="ignore"):
        spread = (rng.normal(0, 1, 300) * 2.0 ** rng.integers(-160, 160, 300)).astype(source.numpy)
        halves = (rng.integers(-300, 300, 300) / 2).astype(source.numpy)
        limits = [np.asarray(2.0**power).astype(source.numpy) for power in (7, 8, 15, 16, 31, 32, 63, 64)]
        ends = np.array([value for limit in limits for value in (limit, -limit)], source.numpy)
        ends = np.concatenate([ends, np.nextafter(ends, source.numpy.type(0))])
        x = np.concatenate([x, spread, halves, ends])
        if target.is_float and source.mantissa > target.mantissa:
            # Halfway between two target values, and the source's next values either side.
            steps = rng.integers(2**target.mantissa, 2 ** (target.mantissa + 1), 100) + 0.5
            halfway = (steps * 2.0**-target.mantissa).astype(source.numpy)
            x = np.concatenate([x, *(np.nextafter(halfway, source.numpy.type(to)) for to in (0, 9)), halfway])
    return x


@pytest.mark.parametrize("target", DTYPES.values(), ids=str)
@pytest.mark.parametrize("source", DTYPES.values(), ids=str)
def test_a_cast_rounds_once_truncates_saturates_or_wraps(source: DType, target: DType) -> None:
    x = cast_operands(source, target)
    got = evaluate("cast", [x], target)
    expected = [expected_cast(value, source, target) for (value,) in lanes([x])]
    assert_same(
        got, np.array(expected).astype(target.numpy) if target.is_float else np.array(expected, target.numpy), x
    )


FLOATS = [dtype for dtype in DTYPES.values() if dtype.is_float]
STORED = [dtype for dtype in DTYPES.values() if dtype.is_storage]


@pytest.mark.parametrize("source", [F16, F32], ids=str)
@pytest.mark.parametrize("target", [dtype for dtype in FLOATS if dtype != F64], ids=str)
def test_float_casts_agree_with_ml_dtypes(source: DType, target: DType) -> None:
    x = cast_operands(source, target)
    with np.errstate(all="ignore"):
        assert_same(evaluate("cast", [x], target), x.astype(target.numpy), x)


def every(dtype: DType) -> Array:
    """Every value of a type of at most 16 bits."""
    return np.arange(1 << dtype.bits, dtype=np.uint8 if dtype.bits <= 8 else np.uint16).view(dtype.numpy)


@pytest.mark.parametrize("target", [F32, F16, BF16, DTYPES["i32"], DTYPES["i8"], BOOL], ids=str)
@pytest.mark.parametrize("source", STORED, ids=str)
def test_every_stored_value_is_read_as_ml_dtypes_reads_it(source: DType, target: DType) -> None:
    x = every(source)
    got = evaluate("cast", [x], target)
    if source.is_float and target.is_integer:  # ml_dtypes says nothing of NaN and infinity
        wide = x.astype(np.float64)
        limits = np.iinfo(target.numpy)
        expected = np.clip(np.trunc(np.nan_to_num(wide, nan=0.0)), limits.min, limits.max).astype(target.numpy)
    else:
        expected = x.astype(np.float32).astype(target.numpy) if source.is_float else x.astype(target.numpy)
    assert_same(got, expected, x)


@pytest.mark.parametrize("target", STORED, ids=str)
@pytest.mark.parametrize("source", [F16, BF16], ids=str)
def test_every_sixteen_bit_float_is_stored_as_ml_dtypes_stores_it(source: DType, target: DType) -> None:
    x = every(source)
    got = evaluate("cast", [x], target)
    if target.is_float:
        assert_same(got, x.astype(np.float32).astype(target.numpy), x)
        return
    low, high = (-8, 7) if target.kind == "int" else (0, 15)
    expected = [0 if v != v else int(max(low, min(high, v))) for v in x.astype(np.float64).tolist()]
    assert_same(got, np.array(expected, np.int8).astype(target.numpy), x)


def test_what_each_narrow_float_makes_of_too_much_and_of_nan() -> None:
    x = np.array([464.0, 465.0, 1e9, -1e9, np.inf, -np.inf, np.nan, -0.0, -1e-9], np.float32)
    expected = {
        "f8e4m3": [448, math.nan, math.nan, math.nan, math.nan, math.nan, math.nan, -0.0, -0.0],
        "f8e5m2": [448, 448, math.inf, -math.inf, math.inf, -math.inf, math.nan, -0.0, -0.0],
        "f8e4m3fnuz": [*[math.nan] * 7, 0.0, 0.0],
        "f4e2m1": [6, 6, 6, -6, 6, -6, -0.0, -0.0, -0.0],
        "f16": [464, 465, math.inf, -math.inf, math.inf, -math.inf, math.nan, -0.0, -0.0],
    }
    saturated = {
        "f8e4m3": [448, 448, 448, -448, 448, -448, math.nan, -0.0, -0.0],
        "f8e5m2": [448, 448, 57344, -57344, 57344, -57344, math.nan, -0.0, -0.0],
        "f8e4m3fnuz": [240, 240, 240, -240, 240, -240, math.nan, 0.0, 0.0],
        "f4e2m1": [6, 6, 6, -6, 6, -6, -0.0, -0.0, -0.0],
        "f16": [464, 465, 65504, -65504, 65504, -65504, math.nan, -0.0, -0.0],
    }
    for name, values in expected.items():
        dtype = DTYPES[name]
        plain, kept = (evaluate("cast", [x], dtype, **more) for more in ({}, {"saturate": True}))
        np.testing.assert_array_equal(plain.astype(np.float64), values, name)
        np.testing.assert_array_equal(kept.astype(np.float64), saturated[name], name)
        np.testing.assert_array_equal(np.signbit(plain.astype(np.float64))[-2:], np.signbit(values)[-2:], name)


def test_integers_become_narrow_floats_with_one_rounding() -> None:
    x = np.array([2**62 + 2**58 + 1, -(2**62) - 2**58 - 1, 17, 19, 1000, -1000], np.int64)
    assert evaluate("cast", [x], DTYPES["f8e5m2"]).astype(float).tolist() == [
        *(math.inf, -math.inf, 16.0, 20.0, 1024.0, -1024.0)
    ]
    assert evaluate("cast", [x], DTYPES["f8e4m3"], saturate=True).astype(float).tolist() == [
        *(448.0, -448.0, 16.0, 20.0, 448.0, -448.0)
    ]


@pytest.mark.parametrize("target", [dtype for dtype in FLOATS if dtype not in (F32, F64)], ids=str)
@pytest.mark.parametrize("source", [F32, F64], ids=str)
def test_rounding_to_zero_never_grows_and_loses_less_than_a_step(source: DType, target: DType) -> None:
    x = cast_operands(source, target)
    got = evaluate("cast", [x], target, rounding="zero")
    wide, exact = got.astype(np.float64), x.astype(np.float64)
    finite = np.isfinite(exact)
    assert np.all(np.isfinite(wide[finite])) and np.all(np.abs(wide[finite]) <= np.abs(exact[finite]))
    assert_same(got[~finite], evaluate("cast", [x[~finite]], target))
    largest = float(ml_dtypes.finfo(target.numpy).max)
    inside = finite & (np.abs(exact) < largest)
    far = np.copysign(np.inf if largest > 448 else largest, exact[inside])
    away = np.nextafter(got[inside], far.astype(target.numpy))
    stays = np.abs(wide[inside]) == largest
    assert np.all((np.abs(away.astype(np.float64)) > np.abs(exact[inside])) | stays | (exact[inside] == 0))
    assert np.all(np.abs(wide[finite & ~inside]) == largest)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_constants_round_as_casts_do(dtype: DType) -> None:
    numbers = [0.1, 1 + 2**-8 + 2**-40, -0.0, math.nan, math.inf, 1e-45] if dtype.is_float else [0, 1]
    for number in numbers:
        value = bool(number) if dtype == BOOL else number
        builder = Builder(Kernel("one", (Buffer("y", dtype, (), "out"),), (), (), (), (), Region()))
        builder.effect(
            "store", [builder.emit("constant", (), {"value": value}, dtype=dtype)], {"buffer": "y", "index": ()}
        )
        got = run(verify(builder.finish()), {})["y"].reshape(1)
        expected = round_to(float(number), dtype) if dtype.is_float else value
        assert_same(got, np.array([expected], dtype.numpy))


def test_a_float_cast_to_an_integer_has_the_error_of_a_step() -> None:
    half = Value("x", F32)
    step = Op("cast", (half,), (Value("y", DTYPES["i32"]),))
    smooth = Op("cast", (half,), (Value("y", BF16),))
    values, errors = [np.array(1.99)], [np.array(0.02)]
    assert error_rule(step)(values, errors, np.array(1.0)) >= 1
    assert error_rule(smooth)(values, errors, np.array(1.99)) == 0.02
