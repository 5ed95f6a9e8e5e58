"""Kernels whose loops and places only data decides, against NumPy in f64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.frontends.python.numbers import Array, close, integers, normal, softmax
from tests.frontends.python.samples import ragged


@pytest.mark.parametrize("lengths", [[1, 12], [7, 4], [5, 9], [12, 12]])
@pytest.mark.parametrize("tile", [1, 3, 4, 8])
def test_paged_attention(lengths: list[int], tile: int) -> None:
    b, h, d, page, pages, j = 2, 3, 8, 4, 9, 3
    q, k, v = normal(b, h, d), normal(pages, page, h, d), normal(pages, page, h, d)
    table = np.random.default_rng(0).permutation(pages)[: b * j].reshape(b, j).astype(np.int32)
    got = ragged.paged_attention(q, k, v, table, np.array(lengths, np.int32), 0.5, BN=tile)
    for row, length in enumerate(lengths):
        keys, values = (x[table[row]].reshape(j * page, h, d)[:length].astype(np.float64) for x in (k, v))
        weights = softmax(np.einsum("hd,nhd->hn", q[row].astype(np.float64), keys) * 0.5)
        close(got[row], np.einsum("hn,nhd->hd", weights, values))


@pytest.mark.parametrize("lengths", [[3, 8], [1, 1, 9], [0, 11, 0], [4, 4, 3], [11]])
@pytest.mark.parametrize("tiles", [(4, 2), (3, 5), (16, 16)])
def test_varlen_attention(lengths: list[int], tiles: tuple[int, int]) -> None:
    q, k, v = normal(11, 2, 8), normal(11, 2, 8), normal(11, 2, 8)
    limits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    got = ragged.varlen_attention(q, k, v, limits, 0.5, BL=tiles[0], BS=tiles[1])
    for start, stop in itertools.pairwise(limits):
        if start == stop:
            continue
        own = slice(start, stop)
        scores = np.einsum("mhd,nhd->hmn", q[own].astype(np.float64), k[own]) * 0.5
        scores = np.where(np.tril(np.ones(scores.shape[1:])) > 0, scores, -np.inf)
        close(got[own], np.einsum("hmn,nhd->mhd", softmax(scores), v[own]))


@pytest.mark.parametrize("counts", [[3, 8, 0], [0, 0, 11], [4, 3, 4]])
@pytest.mark.parametrize("tile", [3, 4, 16])
def test_grouped_matmul(counts: list[int], tile: int) -> None:
    x, w = normal(11, 6), normal(3, 6, 5)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    expected = np.einsum("tk,tkn->tn", x.astype(np.float64), w[np.repeat(np.arange(3), counts)])
    close(ragged.grouped_matmul(x, w, offsets, BM=tile, BN=tile, BK=tile), expected)


def test_tiles_between_limits_leave_the_rest_alone() -> None:
    x, w = normal(11, 6), normal(3, 6, 5)
    got = ragged.grouped_matmul(x, w, np.array([2, 2, 5, 9], np.int32), BM=2)
    assert np.isnan(got[:2]).all() and np.isnan(got[9:]).all()  # never written
    close(got[2:5], x[2:5].astype(np.float64) @ w[1])
    close(got[5:9], x[5:9].astype(np.float64) @ w[2])


def test_limits_stay_inside_the_dimension() -> None:
    x, w = normal(11, 6), normal(3, 6, 5)
    got = ragged.grouped_matmul(x, w, np.array([-5, 4, 3, 99], np.int32), BM=2)
    close(got[:3], x[:3].astype(np.float64) @ w[0])
    close(got[3:], x[3:].astype(np.float64) @ w[2])


@pytest.mark.parametrize("splits", [1, 2, 3, 30])
@pytest.mark.parametrize("tile", [4, 16])
def test_split_k(splits: int, tile: int) -> None:
    a, b, c = normal(6, 23), normal(23, 5), normal(6, 5)
    close(ragged.split_k(a, b, c, S=splits, BM=tile, BN=tile, BK=tile), c + a.astype(np.float64) @ b)


@pytest.mark.parametrize("programs", [1, 4, 9, 20])
def test_persistent_softmax(programs: int) -> None:
    x = normal(9, 5)
    close(ragged.persistent_softmax(x, P=programs), softmax(x.astype(np.float64)))


@pytest.mark.parametrize("length", [0, 1, 2, 9, 31])
def test_search(length: int) -> None:
    ordered, values = np.sort(normal(length)), normal(50)
    assert ragged.search(values, ordered).tolist() == np.searchsorted(ordered, values).tolist()


@pytest.mark.parametrize("count", [-3, 0, 1, 4, 7, 9, 100])
def test_head(count: int) -> None:
    x: Array = integers(1, 9, 9)
    expected = np.where(np.arange(9) < count, 2 * x, -1)
    assert ragged.head(x, np.full(9, -1, np.int32), count).tolist() == expected.tolist()
