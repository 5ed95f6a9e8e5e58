"""Hostile text: a module comes out, or a KdslError, and soon."""

from __future__ import annotations

import time

import pytest

from kdsl.diagnostics import KdslError
from kdsl.frontends.triton.module import Module
from kdsl.frontends.triton.text import parse_module
from tests.frontends.triton.mutate import mutated
from tests.frontends.triton.texts import TRITON_38

# Short texts, with every kind of control flow between them.
SHORT = [TRITON_38[name] for name in ("softplus", "collatz", "early_return", "argmax", "descriptors")]
HEAD = "module {\n  tt.func public @f(%x: i32) {\n    "
TAIL = "\n    tt.return\n  }\n}\n"
N = 20_000


def outcome(text: str) -> Module | KdslError:
    try:
        return parse_module(text)
    except KdslError as error:
        assert error.code == "K0911"
        assert error.location is not None and error.location.line >= 1 and error.location.column >= 1
        assert len(error.message) < 1000
        return error


def survive(seeds: range) -> None:
    """Both outcomes occur, and no other."""
    refused = 0
    for seed in seeds:
        text = mutated(SHORT[seed % len(SHORT)], SHORT[seed // len(SHORT) % len(SHORT)], seed)
        try:
            refused += isinstance(outcome(text), KdslError)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    assert 0.1 * len(seeds) < refused < len(seeds)


@pytest.mark.parametrize("part", range(4))
def test_two_thousand_changed_texts_are_read_or_refused(part: int) -> None:
    survive(range(500 * part, 500 * (part + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_hundred_thousand_changed_texts_are_read_or_refused(part: int) -> None:
    survive(range(10_000 * part, 10_000 * (part + 1)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{HEAD}a.b {'(' * N}", "unexpected"),
        (f"{HEAD}a.b {'(' * N}{')' * N}{TAIL}", "nested too deeply"),
        (f"{HEAD}a.b {{x = {'[' * N}{']' * N}}}{TAIL}", "nested too deeply"),
        (HEAD + "a.b " + "{x = " * 1000 + "1" + "}" * 1000 + TAIL, "nested too deeply"),
        (HEAD + "a.b {\n" * N + "}" * N + TAIL, "nested too deeply"),
        (f"{HEAD}%y = a.b : {'!tt.ptr<' * N}i32{'>' * N}{TAIL}", "unexpected"),
        (f"{HEAD}%y = arith.constant {'9' * N} : i32{TAIL}", "expected an i32"),
        (f"{HEAD}%y = a.b : tensor<{'1x' * N}i32>{TAIL}", "too long"),
        (f"{HEAD}%y = a.b : tensor<{'9' * 500}xi32>{TAIL}", "expected a type"),
        (f"{HEAD}%y = arith.constant dense<{'[' * N}> : tensor<4xi32>{TAIL}", "no constant"),
        (f"{HEAD}a.b {'^a(%x) ' * N}{TAIL}", "no block"),
        (f"#l = loc(#l)\n{HEAD}a.b loc(#l){TAIL}", "nested too deeply, or define each other"),
        (
            '#l0 = loc("a":1:1)\n'
            + "".join(f"#l{i + 1} = loc(callsite(#l{i} at #l{i}))\n" for i in range(10))
            + f"{HEAD}a.b loc(#l10){TAIL}",
            "too many call sites",
        ),
        (
            '#l0 = loc("a":1:1)\n'
            + "".join(f'#l{i + 1} = loc("n"(#l{i}))\n' for i in range(N))
            + f"{HEAD}a.b loc(#l{N}){TAIL}",
            "nested too deeply",
        ),
    ],
)
def test_bombs_are_refused_quickly(text: str, problem: str) -> None:
    started = time.thread_time()
    result = outcome(text)
    assert isinstance(result, KdslError) and problem in result.message
    assert time.thread_time() - started < 5


@pytest.mark.parametrize(
    "piece", ["%x, ", "^a ", "a.b\n    ", "{} ", "%x = %x ", "<a", "#a<", "(%x) ", "   \n", 'loc("', "to "]
)
def test_time_grows_with_the_length_of_the_text_and_not_faster(piece: str) -> None:
    def seconds(count: int) -> float:
        started = time.thread_time()
        outcome(HEAD + "a.b " + piece * count + TAIL)
        return time.thread_time() - started

    short = min(seconds(1000) for _ in range(3))
    assert min(seconds(16_000) for _ in range(2)) < 16 * short * 4 + 0.05
