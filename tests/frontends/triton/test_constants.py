"""Numbers against NumPy and ml_dtypes, which know the formats themselves."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from kdsl.frontends.triton.constants import dense, number, string
from kdsl.frontends.triton.problems import Problem
from kdsl.frontends.triton.types import Scalar, Tensor

NAMES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


@pytest.mark.parametrize("name", NAMES)
def test_every_pattern_of_bits_is_the_number_that_the_format_says(name: str) -> None:
    info = ml_dtypes.finfo(NAMES[name])
    unsigned = np.dtype(f"u{info.bits // 8}")
    step = 1 if info.bits == 8 else 97  # a prime: all exponents occur
    for bits in range(0, 1 << info.bits, step):
        expected = float(np.array(bits, unsigned).view(NAMES[name]))
        read = number(f"0x{bits:X}", Scalar(name))
        assert isinstance(read, float)
        assert read == expected or (math.isnan(read) and math.isnan(expected)), hex(bits)


def test_decimals_are_rounded_to_their_type() -> None:
    # 1.44269502 is the shortest decimal of the f32 next to log2(e).
    assert number("1.44269502", Scalar("f32")) == float(np.float32(1.4426950408889634))
    assert number("1.44269502", Scalar("f64")) == 1.44269502
    assert number("-0.000000e+00", Scalar("f32")) == 0.0
    assert math.copysign(1, number("-0.000000e+00", Scalar("f32"))) == -1


def test_bits_of_infinities_and_nan() -> None:
    assert number("0xFF800000", Scalar("f32")) == -math.inf
    assert number("0x7FF0000000000000", Scalar("f64")) == math.inf
    assert math.isnan(number("0x7FC00000", Scalar("f32")))


@pytest.mark.parametrize(
    ("text", "name"),
    [("1e39", "f32"), ("0x1FFFF", "f16"), ("256", "i8"), ("-129", "i8"), ("1.5", "i32"), ("x", "i32"), ("1", "float")],
)
def test_numbers_that_a_type_does_not_have_are_refused(text: str, name: str) -> None:
    if name == "float":
        assert number(text, Scalar(name)) == 1  # a type of another dialect says nothing about numbers
        return
    with pytest.raises(Problem):
        number(text, Scalar(name))


def test_dense_constants_are_splats_lists_or_bytes() -> None:
    assert dense("dense<-1>", Tensor((2, 2), Scalar("i64"))) == -1
    assert dense("dense<[[1.0, 2.0]]>", Tensor((1, 2), Scalar("f32"))) == ((1.0, 2.0),)
    raw = np.array([[1, -2], [3, 4]], np.int16).tobytes().hex()
    assert dense(f'dense<"0x{raw}">', Tensor((2, 2), Scalar("i16"))) == ((1, -2), (3, 4))
    halves = np.array([0.5, -0.25], ml_dtypes.bfloat16).tobytes().hex()
    assert dense(f'dense<"0x{halves}">', Tensor((2,), Scalar("bf16"))) == (0.5, -0.25)
    with pytest.raises(Problem, match="got 4 bytes"):
        dense('dense<"0x00000000">', Tensor((3,), Scalar("i32")))


def test_strings_have_bytes_in_hexadecimal() -> None:
    assert string(r'"a\0Ab\22c\\d"') == 'a\nb"c\\d'
