"""Integers that `let` names: forms, bounds and extents mention them (docs/decisions/004)."""

from __future__ import annotations

import numpy as np
import pytest

from kdsl.interpreter import run
from kdsl.ir.kernel import bind
from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.ir.verify import IRError, verify
from kdsl.passes.pipeline import run_passes

SUMS = """\
kernel sums(x: in f32[N], ends: in i32[B], y: out f32[B]) {
  size N
  size B
  tile BL = 4
  program b < B
  loop n_block < cdiv(stop, BL)
  axis n < BL where BL*n_block + n < stop
  integer stop[b]
  %end: i32[b] = load ends[b]
  let %end {integer = stop}
  %zero: f32 = constant {value = 0.0}
  %sum: f32[b] = for n_block (%total: f32[b, n_block] = %zero) {
    %x: f32[b, n_block, n] = load x[BL*n_block + n]
    %part: f32[b, n_block] = reduce %x {axis = n, combine = add}
    %more: f32[b, n_block] = add %total, %part
    yield %more
  }
  store y[b] = %sum
}
"""
X, ENDS = np.arange(10, dtype=np.float32), np.array([0, 3, 10, -5], np.int32)


def test_a_loop_runs_up_to_the_integer_of_each_program() -> None:
    kernel = verify(parse_kernel(SUMS))
    assert print_kernel(kernel) == SUMS
    bound = bind(kernel, {"N": 10, "B": 4})
    for passes in ([], ["explicit_edges", "fold", "cse", "dce"]):
        assert run(run_passes(bound, passes), {"x": X, "ends": ENDS})["y"].tolist() == [0, 3, 45, 0]


def test_the_result_of_such_a_loop_varies_as_the_integer_does() -> None:
    text = SUMS.replace("store y[b] = %sum", "store y[0] = %sum").replace("%sum: f32[b] =", "%sum: f32 =")
    with pytest.raises(IRError, match=r"for gives f32\[b\]"):
        verify(parse_kernel(text))


MISTAKES = {
    "twice": (
        "let %end {integer = stop}\n",
        "let %end {integer = stop}\n  let %end {integer = stop}\n",
        "let: the integer stop is named twice",
    ),
    "never": ("  let %end {integer = stop}\n", "", "for mentions the integer stop outside its scope"),
    "unknown": ("{integer = stop}", "{integer = other}", "let: no integer named other"),
    "axes": ("integer stop[b]", "integer stop", "let: %end varies over axes that stop is not declared with"),
    "float": ("%end: i32[b] = load ends[b]", "%end: f32[b] = load x[b]", "let: names an integer, not f32"),
    "name": ("integer stop[b]", "integer N[b]", "N is declared twice"),
    "axis": ("integer stop[b]", "integer stop[c]", "the integer stop mentions c"),
    "lanes": ("integer stop[b]", "integer stop[n]", "let: %end varies over axes that stop is not declared with"),
    "grid": ("program b < B", "program b < stop", "the extent of b mentions stop"),
    "lanes of a tile": ("axis n < BL", "axis n < stop", "the extent of n mentions stop"),
    "after": ("store y[b] = %sum", "store y[other] = %sum", "store mentions other, which is not declared"),
}


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES.values(), ids=MISTAKES)
def test_the_verifier_rejects(old: str, new: str, message: str) -> None:
    assert SUMS.count(old) == 1
    with pytest.raises(IRError, match=message.replace("(", r"\(")):
        verify(parse_kernel(SUMS.replace(old, new)))


def test_an_integer_ends_with_the_region_that_names_it() -> None:
    text = """\
kernel inside(x: in i32[4], y: out i32[4]) {
  program b < 4
  loop k < 1
  integer place[b, k]
  for k () {
    %i: i32[b] = load x[b]
    let %i {integer = place}
    store y[place] = %i
    yield
  }
  store y[b] = %last
}
"""
    fine = text.replace("  store y[b] = %last\n", "")
    outside = text.replace("y[b] = %last", "y[place] = %last").replace(
        "  for k", "  %last: i32 = constant {value = 1}\n  for k"
    )
    assert run(verify(parse_kernel(fine)), {"x": np.array([2, 0, 3, 1], np.int32)})["y"].tolist() == [0, 1, 2, 3]
    with pytest.raises(IRError, match="store mentions the integer place outside its scope"):
        verify(parse_kernel(outside))
