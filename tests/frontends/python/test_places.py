"""Kernels that gather, scatter and count, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from kdsl.diagnostics import KdslError
from tests.frontends.python.numbers import close, integers, normal
from tests.frontends.python.samples import places


def test_embedding() -> None:
    table, ids = normal(7, 5), integers(0, 7, 11)
    assert (places.embedding(table, ids) == table[ids]).all()


def test_an_index_from_data_that_leaves_the_tensor_is_an_error() -> None:
    for wrong in (7, -1):
        with pytest.raises(KdslError, match=rf"K0601.*index {wrong} in dimension 0, which has 7 elements"):
            places.embedding(normal(7, 5), np.array([0, wrong], np.int32))


def test_embedding_gradient() -> None:
    gradient, ids, table = integers(-9, 9, 11, 5).astype(np.float32), integers(-1, 4, 11), normal(7, 5)
    expected = table.astype(np.float64)
    np.add.at(expected, ids[ids >= 0], gradient[ids >= 0])
    close(places.embedding_gradient(gradient, ids, table), expected)


@pytest.mark.parametrize("tile", [1, 4, 32])
def test_histogram(tile: int) -> None:
    x = integers(0, 7, 19)  # 5 and 6 are no bins
    got = places.histogram(x, np.full(5, 10, np.int32), BN=tile)
    assert got.tolist() == [10 + np.count_nonzero(x == number) for number in range(5)]


def test_pack() -> None:
    x = integers(-9, 9, 9)
    y, taken = places.pack(x, np.zeros(9, np.int32), np.zeros(2, np.int32))
    count = np.count_nonzero(x > 0)
    assert taken.tolist() == [count, 0] and sorted(y[:count]) == sorted(x[x > 0]) and not y[count:].any()


def test_claim() -> None:
    owner, won = places.claim(np.array([2, 0, 2, 2, 0], np.int32), np.array([-1, -1, -1, 8], np.int32))
    # Programs run in order here; whoever comes later is told who was first.
    assert owner.tolist() == [1, -1, 0, 8] and won.tolist() == [-1, -1, 0, 0, 1]


@pytest.mark.parametrize("dilation", [1, 2, 5])
def test_causal_conv(dilation: int) -> None:
    x, w = normal(2, 3, 11), normal(3, 3)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (2 * dilation, 0)))
    parts = [w[:, t, None] * padded[:, :, (2 - t) * dilation :][:, :, :11] for t in range(3)]
    close(places.causal_conv(x, w, dilation=dilation), sum(parts))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("tile", [3, 4, 16])
def test_int4_matmul(dtype: type, tile: int) -> None:
    x, w = integers(-3, 3, 5, 8), integers(0, 16, 8, 6)
    packed, scale = (w[0::2] | w[1::2] << 4).astype(np.uint8), np.full(6, 0.5, np.float32)
    assert (places.int4_matmul(x.astype(dtype), packed, scale, BM=tile, BN=tile, BK=tile) == 0.5 * (x @ (w - 8))).all()


def test_cross_entropy() -> None:
    logits, target = normal(6, 7), integers(0, 7, 6)
    wide = logits.astype(np.float64)
    close(places.cross_entropy(logits, target), np.log(np.exp(wide).sum(1)) - wide[np.arange(6), target])


def test_dropout() -> None:
    x = np.full(4000, 3, np.float32)
    kept = places.dropout(x, 7, 0.25, BN=64)
    assert set(kept.tolist()) == {0.0, 4.0} and abs(np.mean(kept != 0) - 0.75) < 0.03
    assert (places.dropout(x, 7, 0.25, BN=100) == kept).all() and (places.dropout(x, 8, 0.25) != kept).any()
