from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kdsl.diagnostics import KdslError, Location
from kdsl.ir.kernel import COMPARE, Kernel, Op, bind, walk
from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.ir.verify import IRError, verify
from tests.ir.strategies import Case, kernels

SCALE = """kernel scale(x: in f32[N], out: out f32[N], s: f32) {
  size N
  size P = 2*N - 1
  tile BN = 128
  require N >= 1
  program n_block < cdiv(N, BN)
  loop t < min(4, n_block)
  axis n < BN where BN*n_block + n < N and 0 <= n
  %x: f32[n_block, n] = load x[BN*n_block + n] where 1 <= n < N fill -inf
  %big: u64 = constant {value = 18446744073709551615}
  %nan: f32 = constant {value = nan}
  %yes: bool = constant {value = true}
  %small: f64 = constant {value = 5e-324}
  %zero: f32 = constant {value = -0.0}
  %in: bool[n] = in_bounds {bounds = [n < 3, 1 <= n]}
  %y: f32[n_block, n] = for t (%c: f32[n_block, t, n] = %x) {
    %s: f32 = argument {scalar = s}
    %m: f32[n_block, t, n] = mul %c, %s
    yield %m
  }
  store out[BN*n_block + n] = %y where n < 7
}
"""
quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def places(kernel: Kernel) -> list[Location | None]:
    return [kernel.location, *(op.location for op in walk(kernel.body))]


@quick
@given(kernels())
def test_printed_kernels_parse_back(case: Case) -> None:
    for kernel in (case.kernel, bind(case.kernel, case.sizes)):
        assert parse_kernel(print_kernel(kernel)) == kernel


@quick
@given(kernels())
def test_printed_locations_parse_back(case: Case) -> None:
    for kernel in (case.kernel, bind(case.kernel, case.sizes)):
        parsed = parse_kernel(print_kernel(kernel, locations=True), file="elsewhere.kir")
        assert parsed == kernel
        assert places(parsed) == places(kernel)


def test_text_written_as_the_printer_writes_comes_back_unchanged() -> None:
    kernel = verify(parse_kernel(SCALE))
    assert print_kernel(kernel) == SCALE
    assert parse_kernel(print_kernel(kernel)) == kernel


def test_names_may_be_words_of_the_grammar() -> None:
    words = "size tile axis loop program load store for where and fill at in inout require kernel"
    for word in words.split():
        text = SCALE.replace("n_block", word).replace(" x[", f" {word}[").replace("(x:", f"({word}:")
        kernel = verify(parse_kernel(text))
        assert parse_kernel(print_kernel(kernel)) == kernel, word


def test_places_keep_files_with_quotes_and_backslashes() -> None:
    kernel = parse_kernel(SCALE)
    op = dataclasses.replace(kernel.body.ops[0], location=Location('c:\\new "x".py', 3, 4, 9))
    placed = dataclasses.replace(kernel, body=dataclasses.replace(kernel.body, ops=(op, *kernel.body.ops[1:])))
    assert parse_kernel(print_kernel(placed, locations=True)).body.ops[0].location == op.location


@pytest.mark.parametrize(
    ("old", "new", "line", "at"),
    [
        ("tile BN = 128", "tile BN = x", 4, "x"),
        ("load x[BN*n_block + n]", "load x[BN*n_block + ]", 9, "]"),
        ("= 2*N - 1", "= gcd(N, 2)", 3, "gcd"),
        ("cdiv(N, BN)", "cdiv(N)", 6, "cdiv"),
        ("cdiv(N, BN)", "cdiv(N, 0)", 6, "cdiv"),
        ("mul %c, %s", "mul %c, %late", 18, "%c, %late"),
        ("%m: f32[n_block, t, n]", "%c: f32[n_block, t, n]", 18, "%c"),
        ("f64 = constant", "f63 = constant", 13, "%small"),
        ("value = true", "value = maybe", 12, "%yes"),
        ("value = true", "value = true, value = true", 12, "%yes"),
        ("[n < 3, 1 <= n]}", "[n < 3, 1 <= n]", 16, "%y"),
    ],
)
def test_malformed_text_is_refused_with_its_place(old: str, new: str, line: int, at: str) -> None:
    text = SCALE.replace(old, new)
    assert SCALE.count(old) == 1
    with pytest.raises(KdslError) as caught:
        parse_kernel(text, file="scale.kir")
    assert caught.value.code == "K0701"
    place = caught.value.location
    assert place is not None and (place.file, place.line) == ("scale.kir", line)
    assert text.splitlines()[line - 1][place.column - 1 :].startswith(at)


def parse_and_verify(text: str) -> None:
    try:
        kernel = verify(parse_kernel(text))
    except KdslError as error:
        assert error.code == "K0701"
        assert error.location is not None and error.location.line >= 1 and error.location.column >= 1
    except IRError as error:
        assert str(error)
    else:
        assert parse_kernel(print_kernel(kernel)) == kernel


def mutations(text: str, count: int) -> list[str]:
    """The text with pieces dropped, doubled, swapped or replaced by others of its own."""
    rng = random.Random(7)
    pieces = text.replace("(", " ( ").replace(",", " , ").replace("[", " [ ").replace("]", " ] ").split(" ")
    strange = ["", "-1", "1.5", "nan", "[", "]", "{", "}", "%", "%x", "\0", "é", "#", '"', "n", "N", "true", "[1, [n]]"]
    result = []
    for _ in range(count):
        changed = list(pieces)
        for _ in range(rng.choice([1, 1, 2, 5])):
            place = rng.randrange(len(changed))
            changed[place] = rng.choice([rng.choice(strange), rng.choice(pieces), changed[place] * 2])
        result.append(" ".join(changed))
    return result


def test_mutated_text_gives_kernels_or_diagnostics_and_nothing_else() -> None:
    for text in mutations(SCALE, 300):
        parse_and_verify(text)


def deep_function(depth: int) -> str:
    return "cdiv(" * depth + "N" + ", 3)" * depth


def nested_loops(depth: int) -> str:
    axes = "".join(f"loop t{level} < 2\n" for level in range(depth))
    return "kernel f() {" + axes + "".join(f"for t{level} () {{" for level in range(depth)) + "yield }" * depth + "}"


HOSTILE: dict[str, Any] = {
    "empty": "",
    "blank": " \n\n",
    "cut": SCALE[: len(SCALE) // 2],
    "nul": "\0" * 1000,
    "huge integer": SCALE.replace("128", "9" * 100_000),
    "huge integer in a form": SCALE.replace("n < 7", "n < " + "9" * 100_000),
    "huge product": SCALE.replace("n < 7", "n < " + "*".join(["99999999999999999999"] * 250)),
    "deep function": SCALE.replace("cdiv(N, BN)", deep_function(2_000)),
    "nested function": SCALE.replace("cdiv(N, BN)", deep_function(40)),
    "deep sequence": SCALE.replace("value = true", "value = " + "[" * 5_000 + "]" * 5_000),
    "deep loops": nested_loops(2_000),
    "nested loops": nested_loops(60),
    "long product": SCALE.replace("n < 7", "n < " + "*".join(["n"] * 5_000)),
    "long sum": SCALE.replace("n < 7", "n < " + "+".join(f"n{i}" for i in range(5_000))),
    "exponential": SCALE.replace("n < 7", "n < " + "*".join(f"min(a{i} + b{i})" for i in range(60))),
    "too long": "#" * 4_000_001,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_or_read_quickly(name: str) -> None:
    parse_and_verify(HOSTILE[name])


@pytest.mark.parametrize(
    "op",
    [
        "%v: i32 = index {form = [n, n]}",
        "%v: i32 = index {form = 1.5}",
        "%v: bool = in_bounds {bounds = n}",
        "%v: bool = in_bounds {bounds = [n]}",
        "%v: i32 = constant {value = [1]}",
        "%v: i32 = constant {value = n < 2}",
        "%v: f32[n] = broadcast %yes {axes = n}",
        "%v: f32 = reduce %x {axis = 3, combine = add}",
        "%v = add %x, %x",
    ],
)
def test_attributes_of_the_wrong_kind_are_diagnostics(op: str) -> None:
    text = SCALE.replace("  store", f"  {op}\n  store")
    with pytest.raises((KdslError, IRError)):
        verify(parse_kernel(text))


def test_an_op_that_lacks_its_result_is_named() -> None:
    kernel = parse_kernel(SCALE)
    op = Op("constant", (), (), {"value": 1})
    broken = dataclasses.replace(kernel, body=dataclasses.replace(kernel.body, ops=(op,)))
    with pytest.raises(IRError, match="constant"):
        verify(broken)


@pytest.mark.parametrize("comparison", list(COMPARE))
def test_every_comparison_of_a_constraint_is_read_back(comparison: str) -> None:
    text = f"kernel k(x: in f32[N]) {{\n  size N\n  require mod(N, 8) {comparison} 4\n}}\n"
    assert print_kernel(parse_kernel(text)) == text
