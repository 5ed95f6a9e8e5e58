"""Masks, fills and poison; each kind of atomic."""

from __future__ import annotations

import numpy as np
import pytest

import kdsl
from kdsl import Const, InOut, Out, Scalar, Tensor, f32, i32, i64
from tests.frontends.python.numbers import integers


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class T(kdsl.DType): ...


@kdsl.kernel
def masked(
    x: Tensor[N, f32], keep: Tensor[N, kdsl.bool_], filled: Out[N, f32], poison: Out[N, f32], kept: InOut[N, f32]
) -> None:
    for n in kdsl.grid(N.tiles(4)):
        filled[n] = x.load(n.index + 1, mask=keep[n], fill=-7)
        poison[n] = x.load(n, mask=keep[n])
        kept.store(n, value=x[n], mask=keep[n])


def test_masks() -> None:
    x, keep = np.arange(6, dtype=np.float32), np.array([1, 0, 1, 1, 0, 1], bool)
    filled, poison, kept = masked(x, keep, np.full(6, 9, np.float32))
    assert filled.tolist() == [1, -7, 3, 4, -7, -7]  # the last one is outside
    assert np.isnan(poison).tolist() == (~keep).tolist() and (poison[keep] == x[keep]).all()
    assert kept.tolist() == [0, 9, 2, 3, 9, 5]


@kdsl.kernel
def placed(x: Tensor[M, N, T], rows: Tensor[M, i64], y: Out[M, N, T], row: Scalar[i32]) -> None:
    for m, n in kdsl.grid(M.tiles(2), N.tiles(4)):
        y[m, n] = x.load(rows[m] + row, n.index - 1, fill=-1)


def test_loaded_indices_mix_with_scalars_and_forms_and_fill_outside() -> None:
    x, rows = integers(0, 99, 3, 5), np.array([2, -3, 0], np.int64)
    expected = np.full((3, 5), -1)
    for m, row in enumerate(rows + 1):
        if 0 <= row < 3:
            expected[m, 1:] = x[row, :-1]
    assert placed(x, rows, 1).tolist() == expected.tolist()


@kdsl.kernel
def columns(x: Tensor[M, N, T], order: Tensor[N, i32], y: Out[M, N, T]) -> None:
    for m, n in kdsl.grid(M.tiles(2), N.tiles(4)):
        y[m, order[n]] = x[m, n]


def test_stores_at_loaded_places() -> None:
    x, order = integers(0, 99, 3, 7), np.random.default_rng(0).permutation(7).astype(np.int32)
    expected = np.empty_like(x)
    expected[:, order] = x
    assert (columns(x, order) == expected).all()


@kdsl.kernel
def updated(x: Tensor[N, i32], y: InOut[M, i32], before: Out[N, i32], *, method: Const[str]) -> None:
    for n in kdsl.grid(N.tiles(4)):
        if method == "add":
            old = y.atomic_add(0, value=x[n])
        elif method == "max":
            old = y.atomic_max(0, value=x[n])
        elif method == "min":
            old = y.atomic_min(0, value=x[n])
        elif method == "and":
            old = y.atomic_and(0, value=x[n])
        elif method == "or":
            old = y.atomic_or(0, value=x[n])
        elif method == "xor":
            old = y.atomic_xor(0, value=x[n])
        else:
            old = y.atomic_exchange(0, value=x[n])
        before[n] = old


ATOMICS = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "exchange": lambda old, new: new,
}  # fmt: skip


@pytest.mark.parametrize("method", ATOMICS)
def test_atomics_change_one_lane_after_the_other(method: str) -> None:
    x, value = integers(-9, 9, 6), 5
    after, before = updated(x, np.array([value, 0], np.int32), method=method)
    expected = []
    for number in x.tolist():
        expected.append(value)
        value = int(ATOMICS[method](value, number))
    assert before.tolist() == expected and after.tolist() == [value, 0]


@kdsl.kernel
def counted(y: InOut[M, i32]) -> None:
    for _ in kdsl.grid(N):
        y.atomic_add(0, value=1)


def test_an_atomic_happens_once_for_each_program() -> None:
    assert counted(np.zeros(2, np.int32), N=7).tolist() == [7, 0]
    (atomic,) = (op for op in counted.elaborate().body.ops if op.name == "atomic")
    assert atomic.results == ()  # nothing takes what it gives
