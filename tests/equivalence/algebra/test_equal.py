"""What is equal in the field and what is not, kernel by kernel: each is a few ops on x, y and z."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.equivalence.algebra import Answer, equal_in_field, program
from kdsl.equivalence.algebra.meanings import ALONG, MOVES, POINTWISE
from kdsl.ir.kernel import bind
from kdsl.ir.ops import OPS
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import verify

HEAD = """
kernel ops(x: in f32[N], y: in f32[N], z: in f32[N], i: in i32[N], out: inout f32[N], count: inout i32[N], s: f32) {
  size N
  loop t < N
  axis n < N
  axis k < 2
  %x: f32[n] = load x[n]
  %y: f32[n] = load y[n]
  %z: f32[n] = load z[n]
  %i: i32[n] = load i[n]
  %s: f32 = argument {scalar = s}
  %zero: f32 = constant {value = 0.0}
  %one: f32 = constant {value = 1.0}
  %low: f32 = constant {value = -inf}
"""


def text(body: str) -> str:
    """Lines `a = op b, c` make f32 values over n; `out` or `count` is what is stored."""
    lines = []
    for line in body.split(";"):
        name, meaning = (part.strip() for part in line.split("=", 1))
        name, dtype = name.split(":") if ":" in name else (name, "f32[n]")
        lines.append(f"  %{name}: {dtype} = {meaning}")
    target = "count" if lines[-1].strip().startswith("%count") else "out"
    return HEAD + "\n".join(lines) + f"\n  store {target}[n] = %{target}\n}}"


def compare(before: str, after: str, size: int = 40, **options: Any) -> Answer:
    kernels = [bind(verify(parse_kernel(text(body))), {"N": size}) for body in (before, after)]
    return equal_in_field(*kernels, **options)


EQUAL = {
    "sums in another order": ("a = add %x, %y; out = add %a, %z", "a = add %y, %z; out = add %x, %a"),
    "a product of a sum": (
        "a = add %x, %y; out = mul %a, %z",
        "a = mul %x, %z; b = mul %y, %z; out = add %a, %b",
    ),
    "a quotient of quotients": (
        "a = div %x, %y; out = div %a, %z",
        "a = mul %y, %z; out = div %x, %a",
    ),
    "an fma": ("a = mul %x, %y; out = add %a, %z", "out = fma %x, %y, %z"),
    "a product of powers": (
        "a = exp %x; b = exp %y; out = mul %a, %b",
        "a = add %x, %y; out = exp %a",
    ),
    "a reciprocal power": (
        "a = neg %x; out = exp %a",
        "a = exp %x; out = div %one, %a",
    ),
    "a maximum of maxima": (
        "a = maximum %x, %y; out = maximum %a, %z",
        "a = maximum %z, %x; out = maximum %y, %a",
    ),
    "a maximum by comparison": (
        "out = maximum %x, %y",
        "a: bool[n] = lt %y, %x; out = select %a, %x, %y",
    ),
    "a weight of minus infinity": ("a = sub %low, %x; b = exp %a; out = mul %b, %y", "out = mul %zero, %y"),
    "the sign of a product": (
        "a = mul %x, %y; out = abs %a",
        "a = abs %x; b = abs %y; out = mul %a, %b",
    ),
    "a function": ("a = add %x, %y; out = tanh %a", "a = add %y, %x; out = tanh %a"),
    "a sum in two halves": (
        "a: f32 = reduce %x {axis = n, combine = add}; out = add %a, %y",
        "w: f32[n] = neg %x; a: f32 = reduce %w {axis = n, combine = add}; out = sub %y, %a",
    ),
    "a rounding of what is rounded": (
        "a: bf16[n] = cast %x; b = cast %a; out = add %b, %zero",
        "a: bf16[n] = cast %x; b = cast %a; c: bf16[n] = cast %b; out = cast %c",
    ),
    "constants that a pass folds": (
        "a: f32 = constant {value = 0.1}; b: f32 = mul %a, %a; out = mul %b, %x",
        f"b: f32 = constant {{value = {float(np.float32(0.1) * np.float32(0.1))}}}; out = mul %b, %x",
    ),
    "the order of a sort": (
        "out = sort %x {axis = n}",
        "a = neg %x; b = neg %a; out = sort %b {axis = n}",
    ),
    "integers": ("count: i32[n] = add %i, %i", "two: i32 = constant {value = 2}; count: i32[n] = mul %i, %two"),
}

DIFFERENT = {
    "a sign": ("out = add %x, %y", "out = sub %x, %y"),
    "one operand for another": ("out = maximum %x, %y", "out = maximum %x, %z"),
    "no maximum": ("out = maximum %x, %y", "out = add %x, %zero"),
    "a minimum": ("out = maximum %x, %y", "out = minimum %x, %y"),
    "another comparison": (
        "a: bool[n] = lt %x, %y; out = select %a, %x, %z",
        "a: bool[n] = gt %x, %y; out = select %a, %x, %z",
    ),
    "an exp forgotten": ("a = exp %x; out = mul %a, %y", "out = mul %x, %y"),
    "another base": ("out = exp %x", "out = exp2 %x"),
    "another function": ("out = sin %x", "out = cos %x"),
    "another identity": (
        "a: f32 = reduce %x {axis = n, combine = add}; out = mul %a, %y",
        "b: f32 = reduce %x {axis = n, combine = add}; a: f32 = add %b, %one; out = mul %a, %y",
    ),
    "a rounding dropped": ("a: bf16[n] = cast %x; out = cast %a", "out = add %x, %zero"),
    "a rounding moved": (
        "w = add %x, %y; a: bf16[n] = cast %w; out = cast %a",
        "a: bf16[n] = cast %x; b: bf16[n] = cast %y; c: bf16[n] = add %a, %b; out = cast %c",
    ),
    "another rounding": ("a: bf16[n] = cast %x; out = cast %a", "a: f16[n] = cast %x; out = cast %a"),
    "an order": ("out = scan %x {axis = n, combine = add}", "out = scan %x {axis = n, combine = add, reverse = true}"),
    "poison where there was a number": ("out = load x[n]", "out = load x[n] where n < 39"),
    "a choice by poison": (
        "a: bool[n] = lt %x, %y; out = select %a, %x, %y",
        "w = load x[n] where n < 20; a: bool[n] = lt %w, %y; out = select %a, %x, %y",
    ),
    "an integer": ("count: i32[n] = add %i, %i", "count: i32[n] = mul %i, %i"),
}

UNDECIDED = {
    "an exp of an exp": ("a = exp %x; out = exp %a", "a = exp %x; out = exp %a"),
    "a division by nothing": ("a = sub %x, %x; out = div %y, %a", "a = sub %x, %x; out = div %y, %a"),
    "a choice by an exp of an exp": (
        "a = exp %x; b = exp %a; c: bool[n] = lt %b, %y; out = select %c, %x, %y",
        "a = exp %x; b = exp %a; c: bool[n] = lt %b, %z; out = select %c, %x, %y",
    ),
    "a lane number that hangs on one": (
        "a = exp %x; b = exp %a; c: i32 = reduce %b {axis = n, combine = argmax}; count: i32[n] = add %i, %c",
        "a = exp %x; b = exp %a; c: i32 = reduce %b {axis = n, combine = argmax}; count: i32[n] = add %i, %c",
    ),
    "poison": ("out = load x[n + 1] where n < 3", "out = load x[n + 1] where n < 3"),
}


@pytest.mark.parametrize("case", EQUAL)
def test_what_is_equal_by_algebra_is_equal(case: str) -> None:
    answer = compare(*EQUAL[case])
    assert (answer.verdict, answer.elements, answer.draws) == ("equal", 80, 2), answer


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_is_not_equal_is_different(case: str) -> None:
    answer = compare(*DIFFERENT[case])
    assert answer.verdict == "different", answer


@pytest.mark.parametrize("case", UNDECIDED)
def test_what_hangs_on_the_undefined_is_undecided(case: str) -> None:
    for seed in range(10):
        answer = compare(*UNDECIDED[case], size=5, seed=seed)
        assert answer.verdict == "undecided" and answer.undecided, answer


def test_answers_say_where_and_why() -> None:
    different = compare("a = exp %x; out = mul %a, %y", "a = exp2 %x; out = mul %a, %y")
    assert different.reason.startswith("out[0] is ")
    assert different.reason.endswith("(only before: 1 exp; only after: 1 exp2)")
    poisoned = compare("out = add %x, %y", "w = load x[n] where n < 39; out = add %w, %y")
    assert poisoned.reason.startswith("out[39] is ") and "before and hangs on poison after" in poisoned.reason
    undecided = compare("a = exp %x; out = exp %a", "a = exp %x; out = exp %a")
    assert undecided.reason == "40 of 80 elements hang on what is undefined in the field: exp"
    assert compare("out = add %x, %y", "out = add %x, %y", size=0).reason == "no output has an element"


def test_roundings_may_be_taken_for_exact() -> None:
    before, after = DIFFERENT["a rounding moved"]
    assert compare(before, after, rounds=False).verdict == "equal"


def test_integers_are_given_or_drawn() -> None:
    at_places = "j: i32[n] = add %i, %i; count: i32[n] = load_at %j {buffer = i}"
    assert compare(at_places, at_places, size=3).verdict == "equal"
    outside = compare(at_places, at_places, size=3, arguments={"i": np.array([0, 1, 2])})
    assert outside.verdict == "undecided" and "does not run: out of bounds: i: index 4" in outside.reason


def test_a_loop_that_does_not_end_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "LARGEST_STEPS", 500)
    body = """
      while () {
        %going: bool = eq %s, %s
        yield %going
      } () {
        yield
      }
      store out[n] = %x
    }"""
    kernel = bind(verify(parse_kernel(HEAD + body)), {"N": 3})
    assert equal_in_field(kernel, kernel).reason == "the kernel before takes more than 500 steps"


def test_kernels_with_other_parameters_cannot_be_compared() -> None:
    kernel = bind(parse_kernel(text("out = add %x, %y")), {"N": 3})
    other = bind(parse_kernel(text("out = add %x, %y")), {"N": 4})
    with pytest.raises(ValueError, match="different parameters"):
        equal_in_field(kernel, other)


def test_the_chance_of_a_miss_falls_with_each_draw() -> None:
    one, two = (Answer("equal", draws=draws).chance(1000) for draws in (1, 2))
    assert 4e-7 < one < 5e-7 and two == one**2


ON_INTEGERS = {"floordiv", "floormod", "truncdiv", "truncmod", "mulhi", "and", "or", "xor", "shl", "shr", "not"}
ON_INTEGERS |= {"index", "in_bounds", "let", "assert", "histogram", "philox"}


def test_every_op_has_a_place() -> None:
    """An op that a list lacks would be refused, so this test asks for a decision when the table grows."""
    places = [set(MOVES), set(POINTWISE), set(ALONG), ON_INTEGERS, {"atomic_cas"}]
    assert set().union(*places) == set(OPS)
    assert sum(map(len, places)) == len(OPS)


def test_an_op_without_a_meaning_is_named() -> None:
    line = '  atomic_cas %x, %y, %i {buffer = out} at "k.py":7:1\n}'
    kernel = bind(verify(parse_kernel(HEAD + line)), {"N": 4})
    assert equal_in_field(kernel, kernel).reason == (
        "the kernel before has an op without algebraic meaning: atomic_cas at k.py:7:1"
    )
