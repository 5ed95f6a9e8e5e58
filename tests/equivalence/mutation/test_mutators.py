"""Each mutator on a small kernel: the lines of IR text that it changes, and to what."""

from __future__ import annotations

import pytest

from kdsl.equivalence.mutation.engine import mutants_of
from kdsl.equivalence.mutation.table import MUTATORS, OF_EDGES
from kdsl.ir.text import parse_kernel, print_kernel

# Rows in tiles, a loop over K, a mask and a fill: what most mutators find something in.
LOOP = """
kernel example(x: in f32[M, K], w: in f32[K, M], y: out bf16[M]) {
  size M
  size K
  program p < cdiv(M, 8)
  loop s < cdiv(K, 4)
  axis m < 8 where m + 8*p < M
  axis k < 4
  %zero: f32 = constant {value = 0.0}
  %start: f32[m] = broadcast %zero {axes = [m]}
  %total: f32[p, m] = for s (%sum: f32[p, s, m] = %start) {
    %x: f32[p, s, m, k] = load x[m + 8*p, k + 4*s] where k + 4*s < K fill 0.0
    %inside: bool[s, k] = in_bounds {bounds = [k + 4*s < K]}
    %kept: f32[p, s, m, k] = select %inside, %x, %zero
    %part: f32[p, s, m] = reduce %kept {axis = k, combine = add}
    %next: f32[p, s, m] = sub %sum, %part
    yield %next
  }
  %rounded: bf16[p, m] = cast %total
  store y[m + 8*p] = %rounded
}
"""
DOT = """
kernel product(a: in f32[4, 8], b: in f32[8, 4], y: out f32[4, 4]) {
  axis i < 4
  axis j < 4
  axis k < 8
  %a: f32[i, k] = load a[i, k]
  %b: f32[j, k] = load b[k, j]
  %dot: f32[i, j] = dot %a, %b {axis = k, precision = ieee}
  store y[i, j] = %dot
}
"""
COUNT = """
kernel count(at: in i32[8], on: in bool[8], y: inout f32[4]) {
  axis i < 8
  %at: i32[i] = load at[i]
  %on: bool[i] = load on[i]
  %one: f32 = constant {value = 1.0}
  atomic %one, %at, %on {buffer = y, masked = true, combine = add}
}
"""
SQUARE = """
kernel spread(x: in f32[8, 8], y: out f32[8, 8]) {
  axis i < 8
  axis j < 8
  %x: f32[i, j] = load x[i, j]
  %most: f32[i] = reduce %x {axis = j, combine = maximum}
  %less: f32[i, j] = sub %x, %most
  store y[i, j] = %less
}
"""
BRANCH = """
kernel branch(y: out f32[2]) {
  program p < 2
  %p: i32[p] = index {form = p}
  %one: i32 = constant {value = 1}
  %lt: bool[p] = lt %p, %one
  %a: f32 = constant {value = 1.0}
  %b: f32 = constant {value = 2.0}
  %c: f32[p] = if %lt () {
    yield %a
  } () {
    yield %b
  }
  store y[p] = %c
}
"""

# Some of what each mutator changes: a line as it is in the mutant, or after "-" one of the original that is not in it.
EXPECTED: dict[str, tuple[str, list[list[str]]]] = {
    "bound dropped": (
        LOOP,
        [["axis m < 8"], ["%x: f32[p, s, m, k] = load x[m + 8*p, k + 4*s] fill 0.0"]],
    ),
    "bound flipped": (
        LOOP,
        [["axis m < 8 where M <= m + 8*p"], ["%inside: bool[s, k] = in_bounds {bounds = [K <= k + 4*s]}"]],
    ),
    "bound off by one": (
        LOOP,
        [
            ["axis m < 8 where m + 8*p < M - 1"],
            ["axis m < 8 where m + 8*p < M + 1"],
            ["%x: f32[p, s, m, k] = load x[m + 8*p, k + 4*s] where k + 4*s < K - 1 fill 0.0"],
            ["%inside: bool[s, k] = in_bounds {bounds = [k + 4*s < K + 1]}"],
        ],
    ),
    "select dropped": (
        LOOP,
        [
            [
                "- %kept: f32[p, s, m, k] = select %inside, %x, %zero",
                "%part: f32[p, s, m] = reduce %x {axis = k, combine = add}",
            ],
        ],
    ),
    "select flipped": (LOOP, [["%kept: f32[p, s, m, k] = select %inside, %zero, %x"]]),
    "mask dropped": (COUNT, [["atomic %one, %at {buffer = y, combine = add}"]]),
    "fill dropped": (LOOP, [["%x: f32[p, s, m, k] = load x[m + 8*p, k + 4*s] where k + 4*s < K"]]),
    "fill wrong": (LOOP, [["%x: f32[p, s, m, k] = load x[m + 8*p, k + 4*s] where k + 4*s < K fill 1.0"]]),
    "index off by one": (
        DOT,
        [["%a: f32[i, k] = load a[i, k - 1]"], ["%a: f32[i, k] = load a[i + 1, k]"], ["store y[i, j - 1] = %dot"]],
    ),
    "index transposed": (DOT, [["%a: f32[i, k] = load a[k, i]"], ["store y[j, i] = %dot"]]),
    "stride wrong": (
        LOOP,
        [
            ["%x: f32[p, s, m, k] = load x[m + 16*p, k + 4*s] where k + 4*s < K fill 0.0"],
            ["store y[m] = %rounded"],
        ],
    ),
    "wrong tensor": (LOOP, [["%x: f32[p, s, m, k] = load w[m + 8*p, k + 4*s] where k + 4*s < K fill 0.0"]]),
    "wrong axis": (SQUARE, [["%most: f32[j] = reduce %x {axis = i, combine = maximum}"]]),
    "race planted": (
        LOOP,
        [["store y[8*floordiv(p, 2) + m] = %rounded"], ["store y[floordiv(m, 2) + 8*p] = %rounded"]],
    ),
    "atomic torn": (
        COUNT,
        [
            [
                "%mutant_old: f32[i] = load_at %at, %on {buffer = y, masked = true}",
                "%mutant_new: f32[i] = add %mutant_old, %one",
                "store_at %mutant_new, %at, %on {buffer = y, masked = true}",
                "- atomic %one, %at, %on {buffer = y, masked = true, combine = add}",
            ]
        ],
    ),
    "neighbour": (LOOP, [["%next: f32[p, s, m] = add %sum, %part"]]),
    "operands swapped": (LOOP, [["%next: f32[p, s, m] = sub %part, %sum"]]),
    "op dropped": (
        LOOP,
        [["- %next: f32[p, s, m] = sub %sum, %part", "yield %sum"], ["yield %part"]],
    ),
    "combine wrong": (LOOP, [["%part: f32[p, s, m] = reduce %kept {axis = k, combine = maximum}"]]),
    "constant wrong": (LOOP, [["%zero: f32 = constant {value = 1.0}"]]),
    "result narrowed": (
        DOT,
        [
            [
                "%mutant_wide: f32[i, j] = dot %a, %b {axis = k, precision = ieee}",
                "%mutant_down: bf16[i, j] = cast %mutant_wide",
                "%dot: f32[i, j] = cast %mutant_down",
            ]
        ],
    ),
    "precision lowered": (
        DOT,
        [
            ["%dot: f32[i, j] = dot %a, %b {axis = k, precision = tf32}"],
            ["%dot: f32[i, j] = dot %a, %b {axis = k, precision = bf16}"],
        ],
    ),
    "rounding wrong": (LOOP, [["%rounded: bf16[p, m] = cast %total {rounding = zero}"]]),
    "last skipped": (LOOP, [["loop s < cdiv(K, 4) - 1"], ["program p < cdiv(M, 8) - 1"], ["axis k < 3"]]),
    "first skipped": (
        LOOP,
        [
            [
                "loop s < cdiv(K, 4) - 1",
                "%x: f32[p, s, m, k] = load x[m + 8*p, k + 4*s + 4] where k + 4*s + 4 < K fill 0.0",
                "%inside: bool[s, k] = in_bounds {bounds = [k + 4*s + 4 < K]}",
            ]
        ],
    ),
    "one too many": (LOOP, [["loop s < cdiv(K, 4) + 1"], ["axis k < 5"]]),
    "update lost": (LOOP, [["yield %sum"]]),
    "accumulator narrowed": (
        LOOP,
        [
            [
                "%mutant_down: bf16[p, s, m] = cast %next",
                "%mutant_up: f32[p, s, m] = cast %mutant_down",
                "yield %mutant_up",
            ]
        ],
    ),
    "branches swapped": (BRANCH, [["yield %b", "yield %a"]]),
}


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def differences(text: str, mutator: str) -> list[list[str]]:
    """For each mutant the lines that the original does not have, in order, and after "-" those that it lost."""
    original = parse_kernel(text)
    before = lines(print_kernel(original))
    found = []
    for mutant in mutants_of({"": original}, [mutator]).mutants:
        (kernel,) = mutant.kernels.values()
        after = lines(print_kernel(kernel))
        found.append(
            [line for line in after if line not in before] + [f"- {line}" for line in before if line not in after]
        )
    return found


@pytest.mark.parametrize("mutator", [name for name in EXPECTED if name not in ("branches swapped",)])
def test_a_mutator_makes_the_change_that_it_names(mutator: str) -> None:
    text, expected = EXPECTED[mutator]
    found = differences(text, mutator)
    for wanted in expected:
        assert any(set(wanted) <= set(lines) for lines in found), f"{wanted} is in none of {found}"


def test_branches_are_swapped() -> None:
    ((mutant,),) = [mutants_of({"": parse_kernel(BRANCH)}, ["branches swapped"]).mutants]
    text = print_kernel(mutant.kernels[""])
    assert text.index("yield %b") < text.index("yield %a")


def test_every_mutator_is_shown_here() -> None:
    assert EXPECTED.keys() == MUTATORS.keys()
    assert set(OF_EDGES) <= MUTATORS.keys()


def test_masks_and_fills_that_edges_mean_are_mutated_too() -> None:
    implicit = """
    kernel total(x: in f32[M, N], y: out f32[M]) {
      size M
      size N
      program p < M
      axis n < next_pow2(N) where n < N
      %x: f32[p, n] = load x[p, n]
      %sum: f32[p] = reduce %x {axis = n, combine = add}
      store y[p] = %sum
    }
    """
    filled = [line for found in differences(implicit, "fill wrong") for line in found if line.startswith("%x")]
    assert filled == ["%x: f32[p, n] = load x[p, n] where n < N fill 1.0"]
