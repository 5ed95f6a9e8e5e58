"""Every op along a ragged axis gives the same bits once edges are explicit, whatever the pads hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from kdsl.diagnostics import KdslError
from kdsl.equivalence.poisons import POISONS
from kdsl.ir.kernel import Kernel, bind, walk
from kdsl.ir.text import parse_kernel
from kdsl.passes import run_passes
from tests.passes.checking import assert_same_results

TEXT = """kernel rows(x: in f32[M, N], i: in i32[M, N], u: in u8[M, N], y: inout f32[M, N], z: inout i32[M, N],
    top: inout f32[M, 3], place: inout i32[M, 3], bins: inout i32[M, 5], one: inout f32[M], sums: inout i32[4]) {{
  size M
  size N
  tile BM = 2
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N + 3 where {bounds}
  axis k < 3
  axis b < 5
  %x: f32[m_block, m, n] = load x[BM*m_block + m, n]
  %i: i32[m_block, m, n] = load i[BM*m_block + m, n]
  %u: u8[m_block, m, n] = load u[BM*m_block + m, n]
  %zero: i32 = constant {{value = 0}}
  %lane: i32[n] = index {{form = n}}
{ops}
}}
"""
Y, Z = "  store y[BM*m_block + m, n] = %y", "  store z[BM*m_block + m, n] = %z"
BLOCK = "m_block, m, n"

OPS = {
    "scan": "  %y: f32[m_block, m, n] = scan %x {axis = n, combine = maximum}\n"
    "  %z: i32[m_block, m, n] = scan %i {axis = n, combine = add, reverse = true}\n" + Y + "\n" + Z,
    "sort": "  %y: f32[m_block, m, n], %z: i32[m_block, m, n] = sort %x, %i {axis = n}\n" + Y + "\n" + Z,
    "sort descending": "  %z: i32[m_block, m, n], %y: f32[m_block, m, n] = sort %i, %x {axis = n, descending = true}\n"
    + Y
    + "\n"
    + Z,
    "topk": """  %t: f32[m_block, m, k], %l: i32[m_block, m, k] = topk %x {axis = n, target = k}
  store top[BM*m_block + m, k] = %t where k < N - 2
  store place[BM*m_block + m, k] = %l where k < N - 2""",
    "histogram": """  %h: i32[m_block, m, b] = histogram %i {axis = n, target = b}
  %g: i32[m_block, m, b] = histogram %u {axis = n, target = b}
  %f: i32[m_block, m, b] = mul %h, %g
  store bins[BM*m_block + m, b] = %f""",
    "argmax by a region": """  %v: f32[m_block, m], %l: i32[m_block, m] = reduce_by %x, %lane {axis = n} \
(%v1: f32[m_block, m, n], %i1: i32[m_block, m, n], %v2: f32[m_block, m, n], %i2: i32[m_block, m, n]) {
    %better: bool[m_block, m, n] = gt %v2, %v1
    %v3: f32[m_block, m, n] = select %better, %v2, %v1
    %i3: i32[m_block, m, n] = select %better, %i2, %i1
    yield %v3, %i3
  }
  store one[BM*m_block + m] = %v where 2 < N
  store place[BM*m_block + m, 0] = %l where 2 < N""",
    "recurrence": """  %a: i32[m_block, m, n], %z: i32[m_block, m, n] = scan_by %i, %lane {axis = n} \
(%a1: i32[m_block, m, n], %b1: i32[m_block, m, n], %a2: i32[m_block, m, n], %b2: i32[m_block, m, n]) {
    %a3: i32[m_block, m, n] = mul %a1, %a2
    %c: i32[m_block, m, n] = mul %b1, %a2
    %b3: i32[m_block, m, n] = add %c, %b2
    yield %a3, %b3
  }
"""
    + Z,
    "indexed access": """  %row: i32[m_block, m] = index {form = BM*m_block + m}
  %got: f32[m_block, m, n] = load_at %row, %lane {buffer = x}
  store_at %got, %row, %lane {buffer = y}
  %two: i32 = constant {value = 3}
  %slot: i32[m_block, m, n] = and %i, %two
  atomic %i, %slot {buffer = sums, combine = add}
  %fine: bool[m_block, m, n] = le %got, %x
  %or: bool[m_block, m, n] = ne %got, %got
  %true: bool[m_block, m, n] = or %fine, %or
  assert %true {message = "equal"}
  %t: f32[m_block, m] = reduce %got {axis = n, combine = maximum}
  store one[BM*m_block + m] = %t""",
    "a branch and a while": """  %some: bool[m_block] = in_bounds {bounds = [0 <= m_block - 1]}
  %y: f32[m_block, m, n] = if %some () {
    %s: f32[m_block, m] = reduce %x {axis = n, combine = minimum}
    %d: f32[m_block, m, n] = sub %x, %s
    atomic %zero, %zero {buffer = sums, combine = exchange}
    yield %d
  } () {
    yield %x
  }
  %limit: i32 = constant {value = 3}
  %one: i32 = constant {value = 1}
  %count: i32, %z: i32[m_block, m, n] = while %zero, %i (%c: i32, %p: i32[m_block, m, n]) {
    %more: bool = lt %c, %limit
    yield %more
  } (%e: i32, %q: i32[m_block, m, n]) {
    %r: i32[m_block, m] = reduce %q {axis = n, combine = add}
    %w: i32[m_block, m, n] = add %q, %r
    %next: i32 = add %e, %one
    yield %next, %w
  }
"""
    + Y
    + "\n"
    + Z,
}
BOUNDS = {"suffix": "n < N", "holes": "2 <= n < N", "causal": "n < N and n <= BM*m_block + m"}


def arguments(m: int, n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.choice([1.0, 1.0, -2.0, math.nan, -math.inf, -0.0, 0.0, 5.0], (m, n)).astype(np.float32),
        "i": rng.choice([-(2**31), 0, 1, 2, 4, 7], (m, n)).astype(np.int32),
        "u": rng.integers(0, 6, (m, n)).astype(np.uint8),
        "y": np.zeros((m, n), np.float32),
        "z": np.zeros((m, n), np.int32),
        "top": np.zeros((m, 3), np.float32),
        "place": np.zeros((m, 3), np.int32),
        "bins": np.zeros((m, 5), np.int32),
        "one": np.zeros(m, np.float32),
        "sums": np.zeros(4, np.int32),
    }


def kernel_of(name: str, bounds: str) -> Kernel:
    text = TEXT.format(bounds=BOUNDS[bounds], ops=OPS[name])
    # With causal bounds the first rows have one valid lane: the results that need more are not stored.
    return parse_kernel(text.replace("k < N - 2", "k < 1").replace("<= n <", "<= n <") if bounds == "causal" else text)


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", OPS)
def test_explicit_edges_keep_every_bit(name: str, bounds: str) -> None:
    kernel = kernel_of(name, bounds)
    for n, passes in [
        (5, ["explicit_edges"]),
        (6, ["pad_extents", "explicit_edges", "fold", "cse", "dce"]),
        (2, ["explicit_edges"]),
    ]:
        sizes, given = {"M": 3, "N": n}, arguments(3, n, n)
        after = run_passes(kernel, passes)
        assert not any(axis.bounds for axis in after.axes)
        for poison in POISONS.values():
            assert_same_results(bind(kernel, sizes), bind(after, sizes), given, poison)


def test_a_combine_whose_lanes_are_all_valid_is_not_lifted() -> None:
    text = """kernel whole(x: in f32[8], y: out f32[]) {
      axis n < 8 where n < 8
      %x: f32[n] = load x[n]
      %y: f32 = reduce_by %x {axis = n} (%a: f32[n], %b: f32[n]) {
        %c: f32[n] = add %a, %b
        yield %c
      }
      store y[] = %y
    }"""
    after = run_passes(parse_kernel(text), ["explicit_edges"])
    assert [op.name for op in walk(after.body)] == ["load", "reduce_by", "add", "yield", "store"]


def test_an_atomic_happens_once_a_lane_also_of_axes_that_only_bounds_mention() -> None:
    """The bound of n mentions m but always holds: the load varies over m by its validity alone."""
    text = """kernel count(x: in i32[4], y: inout i32[1]) {
      axis m < 2
      axis n < 4 where n < m + 8
      %x: i32[m, n] = load x[n]
      %zero: i32 = constant {value = 0}
      atomic %x, %zero {buffer = y, combine = add}
    }"""
    before = parse_kernel(text)
    after = run_passes(before, ["explicit_edges", "fold", "cse", "dce"])
    assert_same_results(before, after, {"x": np.arange(4, dtype=np.int32), "y": np.zeros(1, np.int32)})


@pytest.mark.parametrize("op", ["flip", "concat", "relabel", "join"])
def test_what_moves_lanes_of_a_padded_axis_is_refused(op: str) -> None:
    ops = {
        "flip": "%z: f32[n] = flip %x {axis = n}",
        "concat": "%z: f32[c] = concat %x, %x {source = [n, n], target = c}",
        "relabel": "%z: f32[r] = relabel %x {source = n, target = r}",
        "join": "%z: f32[n, two] = join %x, %x {axis = two}",
    }
    text = f"""kernel moves(x: in f32[6]) {{
      axis n < 6
      axis r < 6
      axis c < 12
      axis two < 2
      %x: f32[n] = load x[n]
      {ops[op]}
    }}"""
    if op == "join":  # the other axes may be padded
        run_passes(parse_kernel(text), ["pad_extents"])
        return
    with pytest.raises(KdslError) as refusal:
        run_passes(parse_kernel(text), ["pad_extents"])
    assert refusal.value.code == "K0303"


EFFECTS = """kernel effects(x: in i32[4], y: inout i32[4], z: inout i32[1]) {
  program p < 4
  %x: i32[p] = load x[p]
  %zero: i32 = constant {value = 0}
  %dead: i32[p] = neg %x
  %yes: bool[p] = gt %x, %zero
  %a: i32[p], %b: i32[p] = if %yes () {
    atomic %x, %zero {buffer = z, combine = add}
    atomic %x, %zero {buffer = z, combine = add}
    %n: i32[p] = neg %x
    yield %n, %x
  } () {
    yield %x, %zero
  }
  %old: i32[p] = atomic %zero, %zero {buffer = z, combine = add}
  %old.1: i32[p] = atomic %zero, %zero {buffer = z, combine = add}
  %c: i32[p], %d: i32[p], %e: i32[p] = while %x, %x, %x (%c1: i32[p], %d1: i32[p], %e1: i32[p]) {
    %more: bool[p] = gt %c1, %zero
    yield %more
  } (%c2: i32[p], %d2: i32[p], %e2: i32[p]) {
    %one: i32 = constant {value = 1}
    %c3: i32[p] = sub %c2, %one
    %d3: i32[p] = add %d2, %c2
    %e3: i32[p] = mul %e2, %e2
    yield %c3, %d3, %e3
  }
  assert %yes {message = "never dropped"}
  print %x {message = "x"}
  %s: i32[p] = add %a, %d
  store y[p] = %s
}
"""


def test_effects_are_neither_dropped_nor_merged_and_dead_results_go() -> None:
    before = parse_kernel(EFFECTS)
    after = run_passes(before, ["fold", "cse", "dce"])
    names = [op.name for op in walk(after.body)]
    assert names.count("atomic") == 4 and names.count("assert") == 1 and names.count("print") == 1
    (branch,) = (op for op in after.body.ops if op.name == "if")
    (loop,) = (op for op in after.body.ops if op.name == "while")
    assert [value.name for value in branch.results] == ["a"]
    assert [value.name for value in loop.results] == ["c", "d"]
    given = {"x": np.array([1, 2, 3, 4], np.int32), "y": np.zeros(4, np.int32), "z": np.zeros(1, np.int32)}
    assert_same_results(before, after, given)
