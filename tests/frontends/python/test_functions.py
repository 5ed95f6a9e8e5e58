"""Each elementwise function means what NumPy's does, computed in f64 and rounded to f32."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kdsl
from kdsl import Const, Out, Tensor, TileValue, f32, i32, u32
from kdsl.lang import functions
from tests.frontends.python.numbers import Array

FINITE = np.array([-3.5, -2.5, -1.0, -0.75, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 40.0], np.float32)
SPECIAL = np.concatenate([FINITE, np.array([np.nan, np.inf, -np.inf], np.float32)])


class N(kdsl.Dim): ...


class T(kdsl.DType): ...


@kdsl.kernel
def unary(x: Tensor[N, T], y: Out[N, T], *, name: Const[str]) -> None:
    for n in kdsl.grid(N.tiles(8)):
        y[n] = getattr(kdsl, name)(x[n])


@kdsl.kernel
def binary(x: Tensor[N, T], y: Tensor[N, T], z: Out[N, T], *, name: Const[str]) -> None:
    for n in kdsl.grid(N.tiles(8)):
        z[n] = getattr(kdsl, name)(x[n], y[n])


@kdsl.kernel
def ternary(x: Tensor[N, T], y: Tensor[N, T], z: Tensor[N, T], w: Out[N, T], *, name: Const[str]) -> None:
    for n in kdsl.grid(N.tiles(8)):
        w[n] = getattr(kdsl, name)(x[n], y[n], z[n])


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf)(x)


UNARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "precise_sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": _erf, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.round, "abs": np.abs,
}  # fmt: skip
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "pow": np.power, "fmod": np.fmod,
    "atan2": np.arctan2, "copysign": np.copysign, "precise_div": np.divide,
}  # fmt: skip
TERNARY: dict[str, Callable[[Array, Array, Array], Array]] = {
    "fma": lambda x, y, z: x * y + z,
    "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high),
}
INTEGERS: dict[str, Callable[[int, int], int]] = {
    "truncdiv": lambda x, y: int(x / y) if y else 0,
    "truncmod": lambda x, y: int(math.fmod(x, y)) if y else 0,
    "mulhi": lambda x, y: (x * y) >> 32,
    "maximum": max,
    "minimum": min,
}
TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def test_every_function_is_tested() -> None:
    known = {name for name, function in vars(functions).items() if inspect.isfunction(function)}
    assert known == UNARY.keys() | BINARY.keys() | TERNARY.keys() | INTEGERS.keys() | TESTS.keys() | {"bitcast"}


def near(got: Array, expected: Array) -> None:
    with np.errstate(all="ignore"):
        rounded = expected.astype(np.float32)
    np.testing.assert_allclose(got, rounded, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    with np.errstate(all="ignore"):
        near(unary(SPECIAL, name=name), UNARY[name](SPECIAL.astype(np.float64)))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        near(binary(x, y, name=name), BINARY[name](x.astype(np.float64), y.astype(np.float64)))


@pytest.mark.parametrize("name", TERNARY)
def test_ternary(name: str) -> None:
    x, y, z = (grid.ravel() for grid in np.meshgrid(FINITE, FINITE, FINITE))
    near(ternary(x, y, z, name=name), TERNARY[name](*(array.astype(np.float64) for array in (x, y, z))))


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    numbers = np.array([-(2**31) + 1, -7, -2, -1, 0, 1, 2, 3, 9, 2**31 - 1], np.int32)
    x, y = (grid.ravel() for grid in np.meshgrid(numbers, numbers))
    expected = [INTEGERS[name](a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert binary(x, y, name=name).tolist() == expected


@kdsl.kernel
def classified(x: Tensor[N, f32], y: Out[N, kdsl.bool_], *, name: Const[str]) -> None:
    for n in kdsl.grid(N.tiles(8)):
        y[n] = getattr(kdsl, name)(x[n])


@pytest.mark.parametrize("name", TESTS)
def test_tests(name: str) -> None:
    assert (classified(SPECIAL, name=name) == TESTS[name](SPECIAL)).all()


@kdsl.kernel
def bits(x: Tensor[N, f32], word: Out[N, u32], back: Out[N, f32]) -> None:
    for n in kdsl.grid(N.tiles(8)):
        word[n] = kdsl.bitcast(x[n], u32)
        back[n] = kdsl.bitcast(kdsl.bitcast(x[n], i32), f32)


def test_bitcast() -> None:
    word, back = bits(SPECIAL)
    assert (word == SPECIAL.view(np.uint32)).all() and (back.view(np.uint32) == SPECIAL.view(np.uint32)).all()


@kdsl.inline
def power(x: TileValue, exponent: Any) -> Any:
    return x**exponent


@kdsl.kernel
def powers(x: Tensor[N, T], y: Out[N, T], *, exponent: Const[Any]) -> None:
    for n in kdsl.grid(N.tiles(8)):
        y[n] = power(x[n], exponent)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 8, 9, -1, 0.5])
def test_powers(exponent: float) -> None:
    x = np.array([0.0, 0.5, 1.0, 1.5, 3.0], np.float32)
    with np.errstate(all="ignore"):
        near(powers(x, exponent=exponent), x.astype(np.float64) ** exponent)


def test_whole_powers_of_integers_are_exact_and_wrap() -> None:
    x = np.array([-3, -1, 0, 2, 7, 100000], np.int32)
    assert powers(x, exponent=3).tolist() == (x**3).tolist()
    assert "pow" not in {op.name for op in powers.elaborate(T=i32, exponent=8).body.ops}
