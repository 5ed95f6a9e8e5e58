from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from kdsl.equivalence.compare import Comparison, OutputError, compare, identical, merge
from kdsl.ir.meaning import Array

NAN, INF = np.nan, np.inf


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def judge(actual: Array, expected: Array, bound: list[float]) -> Comparison:
    return compare({"y": actual}, {"y": expected}, {"y": np.array(bound)})


def test_equal_arrays_use_nothing_of_the_bound() -> None:
    assert judge(f32(1, NAN, INF, -INF), f32(1, NAN, INF, -INF), [0, 0, 0, 0]) == Comparison(0.0, 0, 4)


def test_the_largest_share_of_the_bound_is_given() -> None:
    found = judge(f32(1.0, 2.5), f32(1.0, 2.0), [0.0, 2.0])
    assert (found.error_used, found.worst) == (0.25, None)


def test_the_worst_element_is_named_with_what_was_got_expected_and_allowed() -> None:
    actual, expected = f32(0, 1, 2, 3).reshape(2, 2), f32(0, 1, 1.5, 2.5).reshape(2, 2)
    found = compare({"y": actual}, {"y": expected}, {"y": np.array([[0, 0], [0.25, 0.125]])})
    assert found.error_used == 4
    assert str(found.worst) == "y[1, 1] is 3, expected 2.5 (may differ by 0.125)"


def test_any_difference_from_an_exact_value_is_infinitely_many_bounds() -> None:
    found = judge(f32(1, 2), f32(1, np.nextafter(np.float32(2), np.float32(3))), [0, 0])
    assert found.error_used == INF
    assert "must be equal" in str(found.worst)


@pytest.mark.parametrize(
    ("got", "expected"),
    [(NAN, 1), (1, NAN), (INF, 1), (1, INF), (INF, -INF), (NAN, INF), (INF, NAN)],
)
def test_a_nan_or_infinity_on_one_side_is_a_difference_whatever_the_finite_bound(got: float, expected: float) -> None:
    found = judge(f32(0, got), f32(0, expected), [1e30, 1e30])
    assert found.error_used == INF
    assert found.worst is not None
    assert found.worst.index == (1,)


def test_elements_outside_the_expected_bound_are_counted_and_the_furthest_is_named() -> None:
    actual, expected = f32(0, 1.5, 2.9, 3), f32(0, 1, 2, 4)
    limits = {"y": np.array([2.0, 2, 2, INF])}, {"y": np.array([0, 1, 0.3, 0.1])}
    found = compare({"y": actual}, {"y": expected}, *limits)
    assert (found.worst, found.outside, found.outside_fraction) == (None, 1, 0.25)
    assert found.error_used == pytest.approx(0.45)
    assert str(found.unexpected) == "y[2] is 2.9000001, expected 2 (may differ by 0.3)"
    assert merge([found, found]).outside == 2
    assert merge([Comparison(), found]).unexpected == found.unexpected


@pytest.mark.parametrize(("outside", "elements", "likely"), [(0, 0, True), (1, 3, True), (2, 3, False)])
def test_one_element_of_each_10000_begun_may_be_outside(outside: int, elements: int, likely: bool) -> None:
    assert Comparison(elements=elements, outside=outside).likely == likely
    assert Comparison(elements=elements + 20_000, outside=outside + 2).likely == likely


def test_undecided_elements_are_counted_and_not_compared() -> None:
    found = judge(f32(5, NAN, 1), f32(-5, 0, 1), [INF, INF, 0])
    assert (found.undecided, found.elements, found.worst) == (2, 3, None)
    assert found.undecided_fraction == pytest.approx(2 / 3)


def test_a_bf16_or_integer_difference_is_found_too() -> None:
    bf16 = np.array([1, 2], ml_dtypes.bfloat16)
    assert judge(bf16 + bf16, bf16, [0.5, 0.5]).error_used == 4
    assert judge(np.array([2**62 + 1]), np.array([2**62]), [0]).worst is not None


@pytest.mark.parametrize("wrong", [None, f32(1, 2, 3), np.array([1, 2], np.float64)])
def test_a_missing_output_or_one_of_another_shape_or_dtype_is_an_error(wrong: Array | None) -> None:
    with pytest.raises(OutputError, match="the output y is"):
        compare({} if wrong is None else {"y": wrong}, {"y": f32(1, 2)}, {"y": np.zeros(2)})


def test_bits_differ_where_only_the_sign_of_zero_does_but_all_nans_are_one() -> None:
    other_nan = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert identical({"y": other_nan}, {"y": f32(NAN)}).worst is None
    assert identical({"y": f32(-0.0)}, {"y": f32(0.0)}).worst is not None
    assert identical({"y": np.array(1.0)}, {"y": np.array(1.0)}).worst is None


def test_of_several_outputs_the_worst_counts() -> None:
    expected = {"a": f32(1), "b": f32(1)}
    found = compare({"a": f32(2), "b": f32(4)}, expected, {"a": np.ones(1), "b": np.ones(1)})
    assert (found.error_used, found.elements) == (3, 2)
    assert found.worst is not None
    assert found.worst.output == "b"
