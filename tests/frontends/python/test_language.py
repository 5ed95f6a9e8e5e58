"""The language means what it says: kernels run on the oracle and are compared with NumPy in f64.

The oracle fills every invalid lane with NaN, so a result that is finite took nothing from one.
"""

from __future__ import annotations

from math import inf
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest

import kdsl
from kdsl import Const, InOut, Out, Scalar, Tensor, Tile, bf16, bool_, f32, i8, i32
from kdsl.diagnostics import KdslError
from kdsl.kernels.attention import attention
from kdsl.kernels.layernorm import layernorm
from kdsl.kernels.matmul import matmul
from kdsl.kernels.softmax import softmax
from kdsl.kernels.vector_add import vector_add
from tests.frontends.python.samples import features

Array = Any


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class K(kdsl.Dim): ...


class Q(kdsl.Dim): ...


class R(kdsl.Dim, size=4): ...


class QR(kdsl.Dim, size=Q * R): ...


class T(kdsl.DType): ...


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def close(got: Array, expected: Array, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(got, np.float64), expected, rtol=tolerance, atol=tolerance)


# -- the five kernels ----------------------------------------------------------------------------------------------

SIZES = [(1, 1, 1), (7, 100, 31), (33, 65, 129), (64, 64, 64), (0, 5, 3), (5, 0, 3), (5, 3, 0)]


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_matmul(m: int, n: int, k: int) -> None:
    a, b, bias = normal(m, k), normal(k, n), normal(n)
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)
    close(matmul(a, b, bias), expected, 1e-4)
    half = [x.astype(ml_dtypes.bfloat16) for x in (a, b, bias)]
    exact = half[0].astype(np.float64) @ half[1].astype(np.float64) + half[2].astype(np.float64)
    close(matmul(*half, activation="none", BM=16, BK=8), exact, 2**-7)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (7, 100), (33, 1023), (0, 4)])
def test_row_kernels(m: int, n: int) -> None:
    x, weight, bias = normal(m, n), normal(n), normal(n)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(1, keepdims=True))
    close(softmax(x), powers / powers.sum(1, keepdims=True))
    centred = wide - wide.mean(1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    close(layernorm(x, weight, bias, 1e-5), scaled * weight + bias, 1e-4)
    close(vector_add(x.ravel(), x.ravel()), 2 * wide.ravel())


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("length", "keys"), [(1, 1), (70, 70), (33, 77), (65, 5)])
def test_attention(length: int, keys: int, causal: bool) -> None:
    q, k, v = normal(1, 2, length, 16), normal(1, 2, keys, 16), normal(1, 2, keys, 16)
    scores = np.einsum("bhld,bhsd->bhls", q.astype(np.float64), k) * 0.25
    if causal:
        scores = np.where(np.arange(keys) <= np.arange(length)[:, None], scores, -inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhls,bhsd->bhld", weights / weights.sum(-1, keepdims=True), v)
    close(attention(q, k, v, 0.25, causal=causal, BL=32, BS=16), expected)


# -- axes and accesses ---------------------------------------------------------------------------------------------


def test_two_tiles_over_one_dimension_are_different_axes() -> None:
    x = normal(9, 4)
    scores = x.astype(np.float64) @ x.T.astype(np.float64)
    expected = np.where(np.tril(np.ones((9, 9))) > 0, scores, -inf)
    close(features.self_attention(x), expected)


@pytest.mark.parametrize(("stride", "pad", "width"), [(1, 0, 3), (2, 1, 3), (3, 4, 5), (1, 0, 17)])
def test_conv1d_as_the_design_writes_it(stride: int, pad: int, width: int) -> None:
    x, w, bias = normal(2, 5, 17), normal(6, 5, width), normal(6)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=2)[:, :, ::stride]
    expected = np.einsum("bclt,oct->bol", windows, w) + bias[:, None]
    close(features.conv1d(x, w, bias, stride=stride, pad=pad, P=pad, S=stride), expected)


def test_a_constraint_that_does_not_hold_is_named() -> None:
    x, w, bias = normal(2, 5, 17), normal(6, 5, 3), normal(6)
    with pytest.raises(KdslError, match=r"K0502.*requires 2 == S"):
        features.conv1d(x, w, bias, stride=2, pad=0, P=0, S=1)


def test_a_computed_dimension_of_a_computed_dimension() -> None:
    x = normal(9)
    close(features.every_other(x, np.array([2, 0], np.float32), P=0, S=1), 2 * x[0:8:2])


def test_every_operator_takes_numbers_sizes_and_indices_on_both_sides() -> None:
    x, pairs = normal(7, 5), normal(7, 2)
    value = (x - 0.0).astype(np.float64)
    value = (1 - value - 1) * -1 + (pairs[:, 0] * pairs[:, 1])[:, None]
    close(features.operators(x, pairs, x, 0.5), value / 2)
    close(features.operators(x, pairs, x, 0.5, mode="full"), value)


def test_an_inout_tensor_is_read_after_it_was_written_and_the_given_one_is_left_alone() -> None:
    x, y = normal(7, 5), normal(7)
    before = y.copy()
    close(features.update(x, y), 2 * (y + x.sum(1)))
    assert (y == before).all()


def test_statistics_of_several_axes_places_and_counts() -> None:
    x = normal(7, 10)
    y, best, total, counts = features.statistics(x)
    close(y, x / x.sum(1, keepdims=True), 1e-4)
    close(total, x.astype(np.float64).sum())
    assert (best == x.argmax(1)).all() and (counts == (x > 0).sum(1)).all()


@kdsl.kernel
def rows(x: Tensor[M, N, T], y: Out[M, N, T], z: Out[N, M, T], *, BM: Tile = 4) -> None:
    for m in kdsl.grid(M.tiles(BM)):
        y[m, :] = x[m, :] - x[0, :] + x[m, N - 1]
        z[:, m] = x[m, :]


def test_whole_dimensions_are_one_axis_and_an_integer_drops_it() -> None:
    x = normal(6, 5)
    y, z = rows(x)
    close(y, x - x[0] + x[:, 4:])
    close(z, x.T)


@kdsl.kernel
def blocks(x: Tensor[QR, T], y: Out[Q, f32], z: Out[Q, R, T]) -> None:
    for _ in kdsl.grid(R.tiles(1, stop=1)):
        parts = kdsl.reshape(x[:], (QR,), (Q, R))
        y[:] = kdsl.sum(parts, over=R)
        z[:, :] = parts


def test_reshape_splits_a_dimension_in_row_major_order() -> None:
    x = normal(12)
    y, z = blocks(x, Q=3)
    close(y, x.reshape(3, 4).sum(1))
    close(z, x.reshape(3, 4))


@kdsl.kernel
def halves(x: Tensor[M, Literal[8], T], y: Out[M, Literal[4], T], *, BM: Tile = 4) -> None:
    for m in kdsl.grid(M.tiles(BM)):
        lane, pair, half = kdsl.axis(8, "lane"), kdsl.axis(4, "pair"), kdsl.axis(2, "half")
        y[m, pair] = kdsl.max(kdsl.reshape(x[m, lane], (lane,), (pair, half)), over=half)


def test_axes_of_constant_size_index_dimensions_of_constant_size() -> None:
    x = normal(6, 8)
    close(halves(x), x.reshape(6, 4, 2).max(2))


# -- loops ---------------------------------------------------------------------------------------------------------


@kdsl.kernel
def windows(
    x: Tensor[M, T], before: Out[M, f32], after: Out[M, i32], start: Out[M, i32], *, W: Const[int], BM: Tile = 4
) -> None:
    for m in kdsl.grid(M.tiles(BM)):
        total, count = 0, 0
        for k in M.tiles(3, start=m.start - W, stop=m.stop + W):
            near = (k.index - m.index <= W) & (m.index - k.index <= W)
            total += kdsl.sum(kdsl.where(near, x[k], 0.0), over=k)
            count += kdsl.sum(near, over=k)
        before[m], after[m], start[m] = total, count, m.start + (m.size - m.stop) * 0


def test_loop_limits_stay_inside_the_dimension() -> None:
    x = normal(11)
    total, count, start = windows(x, W=2)
    inside = np.abs(np.arange(11)[:, None] - np.arange(11)) <= 2
    close(total, inside @ x.astype(np.float64))
    assert (count == inside.sum(1)).all() and (start == np.arange(11) // 4 * 4).all()


@kdsl.kernel
def nested(x: Tensor[M, N, K, T], y: Out[M, f32], last: Out[M, f32]) -> None:
    for m in kdsl.grid(M):
        total = 0
        row = kdsl.zeros((), f32)
        for n in N:
            row = 0.0
            for k in K.tiles(4):
                row = row + kdsl.sum(x[m, n, k], over=k)
            total = total + row * n
        y[m], last[m] = total, row


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 0, 5), (2, 3, 0)])
def test_nested_loops_carry_values_and_may_run_zero_times(shape: tuple[int, int, int]) -> None:
    x = normal(*shape)
    y, last = nested(x)
    sums = x.astype(np.float64).sum(2)
    close(y, sums @ np.arange(shape[1]))
    close(last, sums[:, -1] if shape[1] else np.zeros(2))


@kdsl.kernel
def fibonacci(x: Tensor[K, i32], y: Out[i32], *, unused: Const[int] = 7) -> None:
    for _ in kdsl.grid(R.tiles(1, stop=1)):
        a, b, limit = 0, 1, unused
        for _k in K:
            a, b = b, a + b
            if unused < 0:
                limit = 0
        if limit == 7:  # still compile-time: the loop leaves it alone
            y[()] = a


def test_names_swapped_in_a_loop_are_carried_together() -> None:
    assert fibonacci(np.zeros(10, np.int32)) == 55


@kdsl.kernel
def empty(x: Tensor[M, N, T], total: Out[M, T], largest: Out[M, T], some: Out[M, bool_], every: Out[M, bool_]) -> None:
    for m in kdsl.grid(M.tiles(2)):
        row = x[m, :]
        total[m], largest[m] = kdsl.sum(row, over=N), kdsl.max(row, over=N)
        some[m], every[m] = kdsl.any(row > 0, over=N), kdsl.all(row > 0, over=N)


@pytest.mark.parametrize("n", [0, 3])
def test_a_reduction_over_nothing_gives_its_identity(n: int) -> None:
    x = normal(3, n)
    total, largest, some, every = empty(x)
    close(total, x.sum(1))
    close(largest, x.max(1, initial=-inf))
    assert (some == (x > 0).any(1)).all() and (every == (x > 0).all(1)).all()


@kdsl.kernel
def place(x: Tensor[M, T], y: Out[i32], z: Out[i32], *, BM: Tile = 64) -> None:
    for _ in kdsl.grid(R.tiles(1, stop=1)):
        for m in M.tiles(BM, start=3):
            y[()], z[()] = kdsl.argmax(x[m], over=m), kdsl.argmin(x[m], over=m)


def test_a_place_counts_from_the_start_of_the_dimension() -> None:
    x = normal(20)
    y, z = place(x)
    assert (y, z) == (3 + x[3:].argmax(), 3 + x[3:].argmin())


@kdsl.kernel
@kdsl.example(M=1, T=f32, s=1.0)
@kdsl.example(M=2, T=bf16, s=2.0)
@kdsl.example(M=3, T=f32, s=3.0)
def scaled(x: InOut[M, T], s: Scalar[f32]) -> None:
    for m in kdsl.grid(M.tiles(4)):
        x[m] *= s


def test_examples_keep_the_order_of_the_text() -> None:
    assert [dict(example.values)["M"] for example in scaled.examples] == [1, 2, 3]
    assert str(scaled.examples[1]) == "M=2, T=bf16, s=2.0"


def test_a_kernel_declares_what_refuses_it() -> None:
    @kdsl.kernel(refuses={"tpu": "K0301"})
    def refused(x: Out[M, i8]) -> None: ...

    assert refused.refuses == {"tpu": "K0301"} and scaled.refuses == {}
