"""Kernels that scan, sort and combine along rows, against NumPy in f64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.python.numbers import close, integers, normal
from tests.frontends.python.samples import rows


@pytest.mark.parametrize("tile", [1, 2, 8])
def test_top_k(tile: int) -> None:
    x = integers(0, 5, 5, 9)  # with many equal ones, of which the first counts first
    values, places = rows.top_k(x, K=3, BM=tile)
    expected = np.argsort(-x, axis=1, kind="stable")[:, :3]
    assert (places == expected).all() and (values == np.take_along_axis(x, expected, 1)).all()


@pytest.mark.parametrize("tile", [1, 4, 16])
def test_cumsum(tile: int) -> None:
    x = normal(3, 11)
    close(rows.cumsum(x, BN=tile), np.cumsum(x.astype(np.float64), axis=1))


@pytest.mark.parametrize("tile", [1, 3, 4, 16])
def test_recurrence(tile: int) -> None:
    a, b = normal(3, 11), normal(11, 3).T.copy()
    state, expected = np.zeros(3), []
    for n in range(11):
        state = a[:, n].astype(np.float64) * state + b[:, n]
        expected.append(state)
    close(rows.recurrence(a, b, BN=tile), np.stack(expected, 1))


@pytest.mark.parametrize("width", [1, 2, 13, 64])
def test_welford_layernorm(width: int) -> None:
    x = normal(5, width) + 1000
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    close(rows.welford_layernorm(x, 1e-5), expected, 1e-3)  # the input itself is rounded to 2**-14


@pytest.mark.parametrize("descending", [False, True])
def test_sort_rows(descending: bool) -> None:
    x = integers(0, 5, 5, 9)
    ordered, order, backwards = rows.sort_rows(x, descending=descending)
    expected = np.argsort(-x if descending else x, axis=1, kind="stable")
    assert (order == expected).all() and (ordered == np.take_along_axis(x, expected, 1)).all()
    assert (backwards == ordered[:, ::-1]).all()


def test_arg_extremes() -> None:
    x = integers(0, 5, 5, 9)
    largest, smallest = rows.arg_extremes(x)
    assert (largest == x.argmax(1)).all() and (smallest == x.argmin(1)).all()


# Of the paper's authors (Random123, kat_vectors): philox 4x32, 10 rounds, counter 0, key 0.
FIRST_WORD = 0x6627E8D5


def test_random_numbers_are_those_of_philox() -> None:
    bits, fractions, gaussian = rows.random_words(0, N=2000)
    assert bits[0] == FIRST_WORD
    assert (fractions == (bits >> 8).astype(np.float64) * 2.0**-24).all()
    assert abs(fractions.mean() - 0.5) < 0.02 and abs(fractions.var() - 1 / 12) < 0.01
    assert abs(gaussian.mean()) < 0.1 and abs(gaussian.std() - 1) < 0.05 and np.abs(gaussian).max() < 5.78
    assert (rows.random_words(0, N=2000, BN=3)[0] == bits).all()


def test_negative_seeds_and_offsets_are_their_bits() -> None:
    assert rows.random_words(-1, N=1)[0][0] == rows.random_words(-1, N=1)[0][0] != rows.random_words(1, N=1)[0][0]
