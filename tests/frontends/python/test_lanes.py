"""Moves of lanes, products in every precision, and storage types, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import kdsl
from kdsl import Const, Out, Tensor, Tile, f32, i32, u8
from tests.frontends.python.numbers import Array, close, integers, normal


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class K(kdsl.Dim): ...


class N2(kdsl.Dim, size=2 * N): ...


class GROUPS(kdsl.Dim): ...


class T(kdsl.DType): ...


class U(kdsl.DType): ...


@kdsl.kernel
def moves(
    x: Tensor[M, N, T],
    y: Tensor[M, N, T],
    index: Tensor[M, K, i32],
    side_by_side: Out[M, N2, T],
    interleaved: Out[M, N2, T],
    even: Out[M, N, T],
    odd: Out[M, N, T],
    picked: Out[M, K, T],
) -> None:
    for m in kdsl.grid(M.tiles(2)):
        side_by_side[m, :] = kdsl.concat([x[m, :], y[m, :]], (N, N), N2)
        pair = kdsl.axis(2)
        both = kdsl.reshape(kdsl.join(x[m, :], y[m, :], into=pair), (N, pair), (N2,))
        interleaved[m, :] = both
        again = kdsl.axis(2)
        even[m, :], odd[m, :] = kdsl.split(kdsl.reshape(both, (N2,), (N, again)), over=again)
        picked[m, :] = kdsl.gather(x[m, :], index[m, :], over=N)


def test_moves() -> None:
    x, y, index = integers(0, 99, 5, 4), integers(0, 99, 5, 4) + 100, integers(0, 4, 5, 3)
    side_by_side, interleaved, even, odd, picked = moves(x, y, index)
    assert (side_by_side == np.concatenate([x, y], 1)).all()
    assert (interleaved == np.stack([x, y], 2).reshape(5, 8)).all()
    assert (even == x).all() and (odd == y).all() and (picked == np.take_along_axis(x, index, 1)).all()


@kdsl.kernel
def transposed(x: Tensor[M, M, f32], y: Out[M, M, f32]) -> None:
    for m in kdsl.grid(M.tiles(2)):
        other = kdsl.axis(M)
        square = kdsl.sum(x[m, :], over=m) + 0 * kdsl.relabel(kdsl.sum(x[m, :], over=m), M, other)
        row = kdsl.sum(kdsl.where(other.index == 0, square, 0), over=other)
        y[m, :] = x[m, :] + 0 * row


def test_relabel_keeps_two_uses_of_an_axis_apart() -> None:
    x = integers(0, 9, 4, 4).astype(np.float32)
    assert (transposed(x) == x).all()


@kdsl.kernel
def runs(x: Tensor[M, N, i32], least: Out[M, N, i32], product: Out[M, N, i32], after: Out[M, N, i32]) -> None:
    for m, n in kdsl.grid(M, N.tiles(4)):
        least[m, n] = kdsl.scan(x[m, n], over=n, combine="minimum")
        product[m, n] = kdsl.cumprod(x[m, n], over=n)
        after[m, n] = kdsl.cummax(x[m, n], over=n, reverse=True)


def test_runs_stop_at_the_edge() -> None:
    x = integers(-3, 4, 3, 7)
    least, product, after = runs(x)
    for part in (slice(0, 4), slice(4, 7)):
        assert (least[:, part] == np.minimum.accumulate(x[:, part], 1)).all()
        assert (product[:, part] == np.multiply.accumulate(x[:, part], 1)).all()
        assert (after[:, part] == np.maximum.accumulate(x[:, part][:, ::-1], 1)[:, ::-1]).all()


@kdsl.kernel
def fewer(x: Tensor[N, f32], values: Out[K, f32], places: Out[K, i32]) -> None:
    for n in kdsl.grid(N.tiles(4)):
        best, where = kdsl.topk(x[n], K, over=n)
        values[:] = best
        places[:] = where


def test_topk_counts_places_of_the_whole_dimension_and_poison_follows() -> None:
    values, places = fewer(np.array([1, 2, 3, 4, 9, 5], np.float32), K=3)  # the last tile has two lanes
    assert values[:2].tolist() == [9, 5] and places[:2].tolist() == [4, 5] and np.isnan(values[2])


@kdsl.kernel
def product(x: Tensor[M, K, T], y: Tensor[K, N, U], z: Out[M, N, f32], *, precision: Const[str] = "ieee") -> None:
    for m, n in kdsl.grid(M.tiles(4), N.tiles(4)):
        z[m, n] = kdsl.dot(x[m, :], y[:, n], over=K, precision=precision)


@kdsl.kernel
def products(x: Tensor[M, N, K, f32], y: Tensor[M, K, f32], z: Out[N, M, f32], *, B: Tile = 4) -> None:
    for m in kdsl.grid(M.tiles(B)):
        z[:, m] = kdsl.dot(x[m, :, :], y[m, :], over=K)


def test_a_dot_that_names_its_axis_has_a_product_for_each_point_of_the_others() -> None:
    x, y = normal(5, 3, 7), normal(5, 7)
    close(products(x, y), np.einsum("mnk,mk->nm", x.astype(np.float64), y.astype(np.float64)), 1e-5)


STORED = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz]


@pytest.mark.parametrize("left", STORED)
@pytest.mark.parametrize("right", STORED)
def test_eight_bit_floats_multiply_with_one_another(left: type, right: type) -> None:
    x, y = normal(5, 8, dtype=left), normal(8, 6, dtype=right)
    close(product(x, y), x.astype(np.float64) @ y.astype(np.float64))


@pytest.mark.parametrize(
    ("precision", "bits"), [("ieee", 24), ("tf32", 11), ("bf16", 8), ("tf32x3", 21), ("bf16x6", 22)]
)
def test_precision_says_how_f32_multiplies(precision: str, bits: int) -> None:
    x, y = normal(5, 8), normal(8, 6)
    exact, size = x.astype(np.float64) @ y.astype(np.float64), np.abs(x).astype(np.float64) @ np.abs(y)
    error = np.abs(product(x, y, precision=precision) - exact) / size
    assert error.max() < 2.0 ** (2 - bits)
    assert bits > 20 or error.max() > 2.0 ** (-4 - bits)


@kdsl.kernel
def scaled(
    x: Tensor[M, K, T],
    x_scale: Tensor[M, GROUPS, u8],
    y: Tensor[K, N, T],
    y_scale: Tensor[GROUPS, N, u8],
    z: Out[M, N, f32],
) -> None:
    for m, n in kdsl.grid(M, N):
        other = kdsl.axis(GROUPS)
        right = kdsl.relabel(y_scale[:, n], GROUPS, other)
        z[m, n] = kdsl.dot_scaled(x[m, :], x_scale[m, :], y[:, n], right, over=K, groups=(GROUPS, other))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn])
def test_dot_scaled(dtype: type) -> None:
    x, y = normal(3, 8, dtype=dtype), normal(8, 2, dtype=dtype)
    x_scale, y_scale = (integers(120, 134, *shape).astype(np.uint8) for shape in ((3, 2), (2, 2)))
    left = x.astype(np.float64) * 2.0 ** (np.repeat(x_scale, 4, 1).astype(np.float64) - 127)
    right = y.astype(np.float64) * 2.0 ** (np.repeat(y_scale, 4, 0).astype(np.float64) - 127)
    close(scaled(x, x_scale, y, y_scale), left @ right, 1e-4)


@kdsl.kernel
def stored(x: Tensor[N, T], y: Out[N, f32], z: Out[N, T], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y[n] = x[n].to(f32) * 2
        z[n] = kdsl.cast(x[n].to(f32) * 2, T, saturate=True)


@pytest.mark.parametrize("dtype", [*STORED, ml_dtypes.float4_e2m1fn])
def test_small_floats_are_stored_and_cast(dtype: type) -> None:
    x = np.array([0, 0.5, -1, 1.5, 3, -6], dtype)
    y, z = stored(x)
    assert y.tolist() == [0, 1, -2, 3, 6, -12]
    limit = float(ml_dtypes.finfo(dtype).max)
    expected: Array = np.clip(y, -limit, limit).astype(dtype)
    assert z.dtype == dtype and z.astype(np.float32).tolist() == expected.astype(np.float32).tolist()


@kdsl.kernel
def nibbles(x: Tensor[N, T], y: Out[N, i32], z: Out[N, T]) -> None:
    for n in kdsl.grid(N.tiles(4)):
        y[n] = x[n].to(i32) + 1
        z[n] = (x[n].to(i32) + 1).to(T)


@pytest.mark.parametrize(("dtype", "low", "high"), [(ml_dtypes.int4, -8, 7), (ml_dtypes.uint4, 0, 15)])
def test_small_integers_are_stored_and_wrap(dtype: type, low: int, high: int) -> None:
    numbers = np.arange(low, high + 1)
    y, z = nibbles(numbers.astype(dtype))
    assert y.tolist() == (numbers + 1).tolist()
    assert z.astype(np.int32).tolist() == [*range(low + 1, high + 1), low]


@kdsl.kernel
def cut(x: Tensor[N, f32], y: Out[N, kdsl.bf16]) -> None:
    for n in kdsl.grid(N.tiles(4)):
        y[n] = kdsl.cast(x[n], kdsl.bf16, rounding="zero")


def test_a_cast_may_cut_off() -> None:
    x = np.array([1.999999, -1.999999, 3.0], np.float32)
    assert cut(x).astype(np.float32).tolist() == [1.9921875, -1.9921875, 3.0]
