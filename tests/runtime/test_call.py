"""Calling a kernel: what arguments give sizes and dtypes, and what is said about those that do not fit."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import kdsl
from kdsl import Const, InOut, Out, Scalar, Tensor, Tile, f32, i32
from kdsl.diagnostics import KdslError
from kdsl.lang.kernel import Example
from kdsl.runtime.examples import bind_example, bound_examples


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class S(kdsl.Dim): ...


class C(kdsl.Dim, size=(N - 1) // S + 1): ...


class T(kdsl.DType): ...


@kdsl.kernel
def strided(x: Tensor[M, N, T], y: Out[M, C, T], *, sign: Const[int] = 1, BM: Tile = 4, BC: Tile = 4) -> None:
    """Every S-th column."""
    kdsl.require(M % 2 == 0)
    for m, c in kdsl.grid(M.tiles(BM), C.tiles(BC)):
        y[m, c] = sign * x.load(m, S * c.index, fill=0)


@kdsl.kernel
def mixed(x: Tensor[M, Literal[2], f32], y: InOut[M, i32], z: Out[M, f32], s: Scalar[i32]) -> None:
    for m in kdsl.grid(M.tiles(4)):
        y[m] += s
        z[m] = x[m, 0] + x[m, 1]


@kdsl.kernel
def shifted(x: Tensor[N, T], y: Out[N, T], *, by: Const[int] = 1) -> None:
    for n in kdsl.grid(N.tiles(4)):
        y[n] = x[n.index + by]


X = np.arange(24, dtype=np.float32).reshape(4, 6)
PAIRS, COUNTS = np.ones((3, 2), np.float32), np.zeros(3, np.int32)


def test_sizes_come_from_shapes_and_from_names() -> None:
    assert (strided(X, S=2) == X[:, ::2]).all()
    assert (strided(x=X, S=np.int64(4), BM=1, sign=-1) == -X[:, ::4]).all()


def test_written_arrays_come_back_in_the_order_of_the_signature() -> None:
    y, z = mixed(PAIRS, COUNTS, 3)
    assert (y == 3).all() and (z == 2).all() and y.dtype == np.int32 and not COUNTS.any()


# code, where the caret is (None: a place in another file than the kernel's name), a call, words of the message
WRONG: dict[str, tuple[str, str, Any]] = {
    "a size is missing": ("K0501", "strided needs the size S", lambda: strided(X)),
    "a constraint": ("K0502", "requires mod(M, 2) == 0", lambda: strided(X[:3], S=1)),
    "an unknown name": ("K0503", "no size or tile parameter named BQ", lambda: strided(X, S=1, BQ=4)),
    "a computed size": ("K0503", "no size or tile parameter named C", lambda: strided(X, S=1, C=6)),
    "a negative size": ("K0504", "S = -1 is no valid size", lambda: strided(X, S=-1)),
    "a size that is no integer": ("K0504", "S = 1.5", lambda: strided(X, S=1.5)),
    "a tile of nothing": ("K0504", "BM = 0", lambda: strided(X, S=1, BM=0)),
    "a division by zero": ("K0504", "a division by zero", lambda: strided(X, S=0)),
    "an array is missing": ("K0505", "x: expected an array, got nothing", lambda: strided(S=1)),
    "too many": ("K0505", "strided: expected the arguments x", lambda: strided(X, X, S=1)),
    "given twice": ("K0505", "strided: expected the arguments x", lambda: strided(X, x=X, S=1)),
    "an unknown dtype": ("K0505", "got complex64", lambda: strided(X.astype(np.complex64), S=1)),
    "another rank": ("K0505", "x: expected 2 dimensions, got 1", lambda: strided(X[0], S=1)),
    "another dtype": ("K0505", "x: expected f32[3, 2], got float64", lambda: mixed(PAIRS.astype(float), COUNTS, 1)),
    "another shape": ("K0505", "y: expected i32[3], got int32[2]", lambda: mixed(PAIRS, COUNTS[:2], 1)),
    "a constant dimension": ("K0505", "x: expected f32[3, 2]", lambda: mixed(np.ones((3, 4), np.float32), COUNTS, 1)),
    "a scalar is missing": ("K0505", "s: expected i32, got nothing", lambda: mixed(PAIRS, COUNTS)),
    "a scalar of another type": ("K0505", "s: expected i32, got 0.5", lambda: mixed(PAIRS, COUNTS, 0.5)),
    "a scalar too large": ("K0505", "s: expected i32", lambda: mixed(PAIRS, COUNTS, 2**40)),
    "out of bounds": ("K0601", "index n + 4*n_block + 1 = 24", lambda: shifted(X.ravel())),
}


@pytest.mark.parametrize("case", WRONG)
def test_arguments_that_do_not_fit_are_named(case: str) -> None:
    code, words, call = WRONG[case]
    with pytest.raises(KdslError) as caught:
        call()
    error = caught.value
    assert error.code == code and words in error.message, error.render()
    assert error.location is not None and error.location.file == __file__
    line = error.render().splitlines()[2].partition(" | ")[2]
    under = line[error.location.column - 1 : (error.location.end_column or 0) - 1]
    assert under == {"K0502": "M % 2 == 0", "K0601": "x[n.index + by]"}.get(code, under)
    assert under in ("strided", "mixed", "M % 2 == 0", "x[n.index + by]")


def test_an_index_below_zero_is_out_of_bounds_too() -> None:
    with pytest.raises(KdslError, match=r"K0601.*= -1 in dimension 0"):
        shifted(X.ravel(), by=-1)


def test_an_example_names_what_the_kernel_needs_and_nothing_else() -> None:
    binding = bind_example(strided, Example({"M": 2, "N": 5, "S": 2, "T": f32, "BM": 8, "sign": -1}))
    assert (binding.sizes, binding.tiles, binding.bindings) == (
        {"M": 2, "N": 5, "S": 2}, {"BM": 8}, {"T": f32, "sign": -1},
    )  # fmt: skip
    for values, problem in (
        ({"M": 2, "S": 2, "T": f32}, "N missing"),
        ({"M": 2, "N": 5, "S": 2, "T": f32, "C": 3}, "C unknown"),
        ({"M": -2, "N": 5, "S": 2, "T": f32}, "M = -2 is no size"),
        ({"M": 2, "N": 5, "S": 2.5, "T": f32}, "S = 2.5 is no size"),
    ):
        with pytest.raises(KdslError, match=f"K0407.*{problem}"):
            bind_example(strided, Example(values))


def test_a_kernel_without_an_example_says_so() -> None:
    with pytest.raises(KdslError, match=r"K0406.*strided has no example"):
        bound_examples(strided)
