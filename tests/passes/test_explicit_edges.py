from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdsl.equivalence.poisons import POISONS
from kdsl.ir.dtypes import DTYPES
from kdsl.ir.kernel import Kernel, bind, walk
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import verify
from kdsl.passes import run_passes
from tests.ir.strategies import Case, kernels
from tests.passes.checking import assert_same_results

HEAD = """
kernel rows(x: in f32[M, N], w: in f32[M, N], y: out f32[M, N], total: out f32[M], best: out i32[M]) {
  size M
  size N
  tile BM = 2
  tile BN = 4
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < next_pow2(N) where n < N
  %x: f32[m_block, m, n] = load x[BM*m_block + m, n]
"""
STORE_TOTAL = "store total[BM*m_block + m] = %t\n}"
STORE_BEST = "store best[BM*m_block + m] = %t\n}"

ROWS = {
    "exp then sum": """
      %e: f32[m_block, m, n] = exp %x
      %t: f32[m_block, m] = reduce %e {axis = n, combine = add}
    """,
    "max of negative rows": """
      %a: f32[m_block, m, n] = abs %x
      %b: f32[m_block, m, n] = neg %a
      %t: f32[m_block, m] = reduce %b {axis = n, combine = maximum}
    """,
    "division in pad lanes": """
      %w: f32[m_block, m, n] = load w[BM*m_block + m, n]
      %d: f32[m_block, m, n] = div %x, %w
      %t: f32[m_block, m] = reduce %d {axis = n, combine = add}
    """,
    "count of valid lanes": """
      %one: f32 = constant {value = 1.0}
      %ones: f32[n] = broadcast %one {axes = [n]}
      %s: f32 = reduce %ones {axis = n, combine = add}
      %t: f32[m] = broadcast %s {axes = [m]}
    """,
    "product, then a sum of the same load": """
      %p: f32[m_block, m] = reduce %x {axis = n, combine = mul}
      %s: f32[m_block, m] = reduce %x {axis = n, combine = add}
      %t: f32[m_block, m] = add %p, %s
    """,
    "sum of zeros that are all negative": """
      %zero: f32 = constant {value = -0.0}
      %zeros: f32[m_block, m, n] = mul %x, %zero
      %t: f32[m_block, m] = reduce %zeros {axis = n, combine = add}
    """,
    "softmax": """
      %top: f32[m_block, m] = reduce %x {axis = n, combine = maximum}
      %c: f32[m_block, m, n] = sub %x, %top
      %e: f32[m_block, m, n] = exp %c
      %t: f32[m_block, m] = reduce %e {axis = n, combine = add}
      %y: f32[m_block, m, n] = div %e, %t
      store y[BM*m_block + m, n] = %y
    """,
}

sizes = st.integers(1, 9)
poisons = st.sampled_from(list(POISONS))


def arguments_of(kernel: Kernel, seed: int) -> dict[str, Any]:
    """Random inputs; outputs that start as small numbers, so that an element not stored keeps a known value."""
    random = np.random.default_rng(seed)
    given: dict[str, Any] = {}
    for buffer in kernel.buffers:
        shape = [size.constant for size in buffer.shape]
        given[buffer.name] = random.integers(-4, 5, shape).astype(buffer.dtype.numpy)
        if buffer.role == "in" and buffer.dtype.is_float:
            given[buffer.name] = random.normal(0, 2, shape).astype(buffer.dtype.numpy)
    return given


def check(kernel: Kernel, given_sizes: dict[str, int], tiles: dict[str, int], poison: str, seed: int) -> None:
    """The pass keeps the bits, whether it runs before or after sizes are bound."""
    expected = bind(kernel, given_sizes, tiles)
    arguments = arguments_of(expected, seed)
    for explicit in (
        bind(run_passes(kernel, ["explicit_edges"]), given_sizes, tiles),
        run_passes(expected, ["explicit_edges"]),
    ):
        assert not any(axis.bounds for axis in explicit.axes)
        assert_same_results(expected, verify(explicit), arguments, POISONS[poison])


@pytest.mark.parametrize("name", ROWS)
@settings(max_examples=15, deadline=None)
@given(m=sizes, n=sizes, bm=st.integers(1, 4), poison=poisons, seed=st.integers(0, 99))
def test_ragged_rows_do_not_leak(name: str, m: int, n: int, bm: int, poison: str, seed: int) -> None:
    kernel = parse_kernel(HEAD + ROWS[name] + STORE_TOTAL)
    check(kernel, {"M": m, "N": n}, {"BM": bm}, poison, seed)


ARGUMENTS_OF_EXTREMES = """
kernel best(x: in {dtype}[M, N], best: out i32[M]) {{
  size M
  size N
  program m < M
  axis n < 8 where {bounds}
  %x: {dtype}[m, n] = load x[m, n]
  %t: i32[m] = reduce %x {{axis = n, combine = {combine}}}
  store best[m] = %t
}}
"""


@pytest.mark.parametrize("combine", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["f32", "i8"])
@pytest.mark.parametrize("bounds", ["n < N", "3 <= n < N", "N - n < 4 and n < N"])
@settings(max_examples=10, deadline=None)
@given(n=st.integers(1, 8), poison=poisons, seed=st.integers(0, 99))
def test_no_lane_outside_is_the_extreme(combine: str, dtype: str, bounds: str, n: int, poison: str, seed: int) -> None:
    """Values are drawn from the identities and a NaN, so that valid lanes tie with what pad lanes hold."""
    text = ARGUMENTS_OF_EXTREMES.format(dtype=dtype, bounds=bounds, combine=combine)
    before = bind(parse_kernel(text), {"M": 6, "N": n})
    choices: list[float] = [-np.inf, np.inf, 0, 0, np.nan] if dtype == "f32" else [-128, 127, 0]
    random = np.random.default_rng(seed)
    x = random.choice(choices, (6, n), p=[0.4, 0.4, 0.1, 0.05, 0.05] if dtype == "f32" else [0.45, 0.45, 0.1])
    arguments = {"x": x.astype(DTYPES[dtype].numpy), "best": np.zeros(6, np.int32)}
    assert_same_results(before, run_passes(before, ["explicit_edges"]), arguments, POISONS[poison])


MATMUL = """
kernel matmul(a: in {dtype}[M, K], b: in {dtype}[K, N], c: out f32[M, N]) {{
  size M
  size N
  size K
  tile BM = 2
  tile BN = 4
  tile BK = 4
  program m_block < cdiv(M, BM)
  program n_block < cdiv(N, BN)
  loop k_block < cdiv(K, BK)
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  axis k < BK where BK*k_block + k < K
  %zero: f32 = constant {{value = 0.0}}
  %zeros: f32[m, n] = broadcast %zero {{axes = [m, n]}}
  %acc: f32[m_block, n_block, m, n] = for k_block (%sum: f32[m_block, n_block, k_block, m, n] = %zeros) {{
    %a: {dtype}[m_block, k_block, m, k] = load a[BM*m_block + m, BK*k_block + k]
    %b: {dtype}[n_block, k_block, n, k] = load b[BK*k_block + k, BN*n_block + n]
    %b1: {dtype}[n_block, k_block, n, k] = {change} %b
    %d: f32[m_block, n_block, k_block, m, n] = dot %a, %b1 {{axis = k, precision = ieee}}
    %next: f32[m_block, n_block, k_block, m, n] = add %sum, %d
    yield %next
  }}
  store c[BM*m_block + m, BN*n_block + n] = %acc
}}
"""


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("change", ["neg", "exp"])
@settings(max_examples=10, deadline=None)
@given(m=sizes, n=sizes, k=sizes, bm=st.integers(1, 4), bk=st.integers(1, 5), poison=poisons, seed=st.integers(0, 99))
def test_a_ragged_contraction_takes_nothing_from_its_pads(
    dtype: str, change: str, m: int, n: int, k: int, bm: int, bk: int, poison: str, seed: int
) -> None:
    kernel = parse_kernel(MATMUL.format(dtype=dtype, change=change))
    check(kernel, {"M": m, "N": n, "K": k}, {"BM": bm, "BK": bk}, poison, seed)


CAUSAL = """
kernel prefix_sums(x: in f32[S], y: out f32[S], z: out f32[S, S]) {
  size S
  tile BM = 2
  tile BN = 4
  program m_block < cdiv(S, BM)
  loop n_block < cdiv(min(BM*m_block + BM, S), BN)
  loop again < 2
  axis m < BM where BM*m_block + m < S
  axis n < BN where BN*n_block + n < min(BM*m_block + BM, S)
  %zero: f32 = constant {value = 0.0}
  %zeros: f32[m] = broadcast %zero {axes = [m]}
  %acc: f32[m_block, m] = for n_block (%sum: f32[m_block, n_block, m] = %zeros) {
    %x: f32[m_block, n_block, n] = load x[BN*n_block + n]
    %row: i32[m_block, m] = index {form = BM*m_block + m}
    %column: i32[n_block, n] = index {form = BN*n_block + n}
    %causal: bool[m_block, n_block, m, n] = le %column, %row
    %seen: f32[m_block, n_block, m, n] = select %causal, %x, %zero
    %s: f32[m_block, n_block, m] = reduce %seen {axis = n, combine = add}
    %next: f32[m_block, n_block, m] = add %sum, %s
    for again () {
      store z[BM*m_block + m, BN*n_block + n] = %next
      yield
    }
    yield %next
  }
  store y[BM*m_block + m] = %acc
}
"""


@settings(max_examples=30, deadline=None)
@given(s=sizes, bm=st.integers(1, 5), bn=st.integers(1, 5), poison=poisons, seed=st.integers(0, 99))
def test_nested_loops_stop_where_the_causal_bound_says(s: int, bm: int, bn: int, poison: str, seed: int) -> None:
    check(parse_kernel(CAUSAL), {"S": s}, {"BM": bm, "BN": bn}, poison, seed)


@settings(max_examples=40, deadline=None)
@given(case=kernels(), poison=poisons)
def test_random_kernels_keep_their_bits(case: Case, poison: str) -> None:
    before = bind(case.kernel, case.sizes)
    arguments = case.arguments | {
        buffer.name: np.zeros([size.constant for size in buffer.shape], buffer.dtype.numpy)
        for buffer in before.written
        if buffer.name not in case.arguments
    }
    unbound = run_passes(case.kernel, ["explicit_edges"])
    assert_same_results(before, bind(unbound, case.sizes), arguments, POISONS[poison])
    assert_same_results(
        before, run_passes(before, ["explicit_edges", "fold", "cse", "dce"]), arguments, POISONS[poison]
    )


def loads_and_selects(text: str) -> tuple[list[Any], int]:
    kernel = run_passes(parse_kernel(text), ["explicit_edges"])
    ops = list(walk(kernel.body))
    return [op.attributes.get("fill") for op in ops if op.name == "load"], sum(op.name == "select" for op in ops)


def test_a_fill_that_reaches_the_sum_spares_the_select() -> None:
    assert loads_and_selects(HEAD + ROWS["exp then sum"] + STORE_TOTAL) == ([-np.inf], 0)
    assert loads_and_selects(MATMUL.format(dtype="bf16", change="abs")) == ([0.0, 0.0], 0)


def test_a_fill_that_does_not_reach_the_sum_is_not_made() -> None:
    """-0 would do for the sum's value, but not for its bits."""
    text = HEAD + "%b: f32[m_block, m, n] = neg %x\n %t: f32[m_block, m] = reduce %b {axis = n, combine = add}\n"
    assert loads_and_selects(text + STORE_TOTAL) == ([None], 1)


def test_one_operand_of_a_dot_known_to_be_zero_does_not_spare_the_other() -> None:
    fills, selects = loads_and_selects(MATMUL.format(dtype="bf16", change="sigmoid"))
    assert (fills, selects) == ([0.0, None], 1)


def test_the_first_consumer_chooses_and_the_others_select() -> None:
    fills, selects = loads_and_selects(HEAD + ROWS["product, then a sum of the same load"] + STORE_TOTAL)
    assert (fills, selects) == ([1.0], 1)


def test_a_load_that_nothing_reduces_stays_without_a_fill() -> None:
    text = HEAD + "%y: f32[m_block, m, n] = exp %x\n store y[BM*m_block + m, n] = %y\n}"
    assert loads_and_selects(text) == ([None], 0)


def test_bounds_that_always_hold_are_dropped() -> None:
    text = """
    kernel total(x: in f32[N], y: out f32[N]) {
      size N
      require mod(N, 4) == 0
      program n_block < cdiv(N, 4)
      axis n < 4 where 4*n_block + n < N
      %x: f32[n_block, n] = load x[4*n_block + n]
      %t: f32[n_block] = reduce %x {axis = n, combine = add}
      store y[n_block] = %t
    }
    """
    explicit = run_passes(parse_kernel(text), ["explicit_edges"])
    assert [op.attributes.get("bounds") for op in walk(explicit.body) if op.name == "load"] == [None]
    assert not any(op.name == "select" for op in walk(explicit.body))


def test_what_varies_over_an_axis_by_its_validity_alone_can_still_be_reduced() -> None:
    """The bound of m mentions n but always holds: the load of x[m] no longer varies over n, yet is summed along it."""
    text = """
    kernel total(x: in f32[4], y: out f32[4]) {
      axis m < 4 where m + n < 8
      axis n < 4
      %x: f32[m, n] = load x[m]
      %t: f32[m] = reduce %x {axis = n, combine = add}
      store y[m] = %t
    }
    """
    before = verify(parse_kernel(text))
    after = run_passes(before, ["explicit_edges"])
    assert [op.name for op in walk(after.body)] == ["load", "broadcast", "reduce", "store"]
    assert_same_results(before, after, {"x": np.arange(4, dtype=np.float32), "y": np.zeros(4, np.float32)})
