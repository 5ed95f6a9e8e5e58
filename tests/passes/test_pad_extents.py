from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdsl.diagnostics import KdslError
from kdsl.equivalence.poisons import POISONS
from kdsl.ir.kernel import bind, walk
from kdsl.ir.text import parse_kernel
from kdsl.passes import run_passes
from tests.passes.checking import assert_same_results

KERNEL = """
kernel attend(q: in f32[M, D], k: in f32[N, D], s: out f32[M, N], t: out f32[M], best: out i32[M]) {
  size M
  size N
  size D
  tile BM = 4
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  axis d < D
  axis halo < BM + 2 where halo < BM
  %q: f32[m_block, m, d] = load q[BM*m_block + m, d]
  %k: f32[n, d] = load k[n, d]
  %s: f32[m_block, m, n] = dot %q, %k {axis = d, precision = ieee}
  %t: f32[m_block, m] = reduce %s {axis = n, combine = add}
  %best: i32[m_block, m] = reduce %s {axis = n, combine = argmax}
  store s[BM*m_block + m, n] = %s
  store t[BM*m_block + m] = %t
  store best[BM*m_block + m] = %best
}
"""


@settings(max_examples=30, deadline=None)
@given(
    m=st.integers(0, 9),
    n=st.integers(0, 9),
    d=st.integers(0, 9),
    bm=st.integers(1, 6),
    poison=st.sampled_from(list(POISONS)),
    seed=st.integers(0, 99),
)
def test_surplus_lanes_do_not_count(m: int, n: int, d: int, bm: int, poison: str, seed: int) -> None:
    """Small integers make sums exact: more lanes only change the order in which NumPy adds."""
    random = np.random.default_rng(seed)
    arguments = {
        "q": random.integers(-4, 5, (m, d)).astype(np.float32),
        "k": random.integers(-4, 5, (n, d)).astype(np.float32),
        "s": np.zeros((m, n), np.float32),
        "t": np.zeros(m, np.float32),
        "best": np.zeros(m, np.int32),
    }
    kernel = parse_kernel(KERNEL)
    sizes, tiles = {"M": m, "N": n, "D": d}, {"BM": bm}
    before = bind(kernel, sizes, tiles)
    for names in (["pad_extents"], ["pad_extents", "explicit_edges", "fold", "cse", "dce"]):
        assert_same_results(before, bind(run_passes(kernel, names), sizes, tiles), arguments, POISONS[poison])
        padded = run_passes(before, names)
        assert_same_results(before, padded, arguments, POISONS[poison])
        for axis in padded.axes:
            lanes = axis.extent.constant
            assert axis.kind != "tile" or (lanes is not None and lanes > 0 and lanes & (lanes - 1) == 0)


def test_products_of_tiles_and_powers_of_two_stay() -> None:
    text = """
    kernel nothing(x: in f32[8]) {
      size N
      tile B = 4
      axis a < B
      axis b < 4*B
      axis c < 3*B
      axis d < next_pow2(N)
    }
    """
    padded = run_passes(parse_kernel(text), ["pad_extents"])
    assert [str(axis.extent) for axis in padded.axes] == ["B", "4*B", "next_pow2(3*B)", "next_pow2(N)"]
    assert [[str(bound) for bound in axis.bounds] for axis in padded.axes] == [[], [], ["c < 3*B"], []]


def test_a_reshape_of_a_padded_axis_is_refused() -> None:
    text = """
    kernel split(x: in f32[6], y: out f32[2, 3]) {
      axis i < 6
      axis q < 2
      axis r < 3
      %x: f32[i] = load x[i]
      %s: f32[q, r] = reshape %x {source = [i], target = [q, r]} at "split.py":7:9
      store y[q, r] = %s
    }
    """
    with pytest.raises(KdslError) as refusal:
        run_passes(parse_kernel(text), ["pad_extents"])
    assert refusal.value.code == "K0303"
    assert str(refusal.value.location) == "split.py:7:9"
    assert "`reshape` moves lanes along i of 6 lanes" in refusal.value.message


SORTED = """
kernel order(x: in f32[M, N], y: inout f32[M, N], z: inout f32[M, N]) {
  size M
  size N
  program m_block < cdiv(M, 3)
  axis m < 3 where 3*m_block + m < M
  axis n < N
  %x: f32[m_block, m, n] = load x[3*m_block + m, n]
  %y: f32[m_block, m, n] = sort %x {axis = n}
  store y[3*m_block + m, n] = %y
  FLIP
}
"""


@pytest.mark.parametrize("n", [1, 5, 8])
def test_rows_of_padded_lanes_are_sorted(n: int) -> None:
    before = bind(parse_kernel(SORTED.replace("FLIP", "")), {"M": 4, "N": n})
    x = np.random.default_rng(n).permutation(4 * n).astype(np.float32).reshape(4, n)
    empty = np.zeros((4, n), np.float32)
    for names in (["pad_extents"], ["pad_extents", "explicit_edges"]):
        after = run_passes(before, names)
        assert_same_results(before, after, {"x": x, "y": empty, "z": empty})


def test_what_is_refused_is_named_and_not_what_is_around_it() -> None:
    text = SORTED.replace("FLIP", "%z: f32[m_block, m, n] = flip %y {axis = n} store z[3*m_block + m, n] = %z")
    with pytest.raises(KdslError) as refusal:
        run_passes(parse_kernel(text), ["pad_extents"])
    assert "`flip` moves lanes along n of N lanes" in refusal.value.message


def test_a_reshape_of_other_axes_is_kept() -> None:
    text = """
    kernel split(x: in f32[3, 4], y: out f32[3, 2, 2]) {
      axis row < 3
      axis i < 4
      axis q < 2
      axis r < 2
      %x: f32[row, i] = load x[row, i]
      %s: f32[row, q, r] = reshape %x {source = [i], target = [q, r]}
      store y[row, q, r] = %s
    }
    """
    before = parse_kernel(text)
    after = run_passes(before, ["pad_extents", "explicit_edges"])
    assert [op.name for op in walk(after.body)] == ["load", "reshape", "store"]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert_same_results(before, after, {"x": x, "y": np.zeros((3, 2, 2), np.float32)})
