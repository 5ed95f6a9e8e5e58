"""Atomics: a sum of floats is bounded in any order, a maximum moves by the largest error, a swap is undecided."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kdsl.equivalence.bounds import Bounded, error_bounds
from kdsl.ir.kernel import bind
from kdsl.ir.text import parse_kernel

TEXT = """kernel scatter(x: in DTYPE[P, N], i: in i32[P, N], y: inout DTYPE[4]) {
  size P
  size N
  program p_block < P
  axis n < 32 where n < N
  %x: DTYPE[p_block, n] = load x[p_block, n]
  %v: DTYPE[p_block, n] = OP %x
  %i: i32[p_block, n] = load i[p_block, n]
  atomic %v, %i {buffer = y, combine = COMBINE}
}"""


def scatter(x: Any, places: Any, combine: str, op: str = "neg", start: Any = None) -> Bounded:
    dtype = {np.dtype(np.float32): "f32", np.dtype(ml_dtypes.bfloat16): "bf16"}[x.dtype]
    text = TEXT.replace("DTYPE", dtype).replace("COMBINE", combine).replace("OP", op)
    kernel = bind(parse_kernel(text), {"P": x.shape[0], "N": x.shape[1]})
    y = np.zeros(4, x.dtype) if start is None else start
    return error_bounds(kernel, {"x": x, "i": places, "y": y}, {})


def drawn(seed: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(20, 29)).astype(dtype), rng.integers(0, 3, (20, 29)).astype(np.int32)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_an_atomic_sum_holds_every_order(dtype: Any) -> None:
    for seed in range(5):
        x, places = drawn(seed, dtype)
        start = np.array([1, 2, 3, 4], dtype)
        found = scatter(x, places, "add", start=start)
        order = np.random.default_rng([seed, 1]).permutation(x.size)
        got = start.copy()
        for lane in order:
            got[places.flat[lane]] -= x.flat[lane]
        exact = start.astype(np.float64) - np.bincount(places.ravel(), x.astype(np.float64).ravel(), 4)
        for other in (got.astype(np.float64), exact):
            assert np.all(np.abs(found.values["y"].astype(np.float64) - other) <= found.bounds["y"])
        assert np.all(found.expected["y"] <= found.bounds["y"])
        assert found.bounds["y"][3] == 0  # which no lane goes to
        if dtype == np.float32:
            assert found.bounds["y"].max() < 1e-2 and found.expected["y"].max() < 2e-3


def test_an_atomic_sum_of_small_integers_is_exact() -> None:
    places = drawn(0)[1]
    assert not scatter(places.astype(np.float32), places, "add").bounds["y"].any()


def test_errors_of_the_terms_add_up() -> None:
    x, places = drawn(1)
    found = scatter(x, places, "add", "exp")
    exact = np.bincount(places.ravel(), np.exp(x.astype(np.float64)).ravel(), 4)
    assert np.all(np.abs(found.values["y"] - exact) <= found.bounds["y"])


def test_an_atomic_maximum_moves_by_no_more_than_the_largest_error() -> None:
    x, places = drawn(2)
    found = scatter(x, places, "maximum", "exp")
    exact = np.zeros(4)
    np.maximum.at(exact, places.ravel(), np.exp(x.astype(np.float64)).ravel())
    assert np.all(np.abs(found.values["y"] - exact) <= found.bounds["y"])
    assert 0 < found.bounds["y"][:3].max() < 1e-3


def test_an_atomic_exchange_is_undecided() -> None:
    assert np.isinf(scatter(*drawn(0), "exchange").bounds["y"]).all()
