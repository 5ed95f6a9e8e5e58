from __future__ import annotations

import pytest
from hypothesis import given, settings

from kdsl.analysis.covers import covers
from kdsl.ir.kernel import Kernel, bind
from kdsl.ir.text import parse_kernel
from tests.analysis.small_kernels import Case, accesses, cases, lanes

KERNEL = """
kernel write(y: out f32[{shape}]) {{
  size M
  size N
  tile BM = 4
  program p < {programs}
  loop k < 3
  axis m < BM where BM*p + m < M
  axis lane < BM
  axis n < N
  axis wide < next_pow2(N) where wide < N
  axis five < 5
  %zero: f32 = constant {{value = 0.0}}
  {body}
}}
"""
TILES = "cdiv(M, BM)"


def kernel(shape: str, body: str, programs: str) -> Kernel:
    return parse_kernel(KERNEL.format(shape=shape, body=body, programs=programs))


@pytest.mark.parametrize(
    ("shape", "body", "programs"),
    [
        ("M", "store y[BM*p + m] = %zero", TILES),
        ("M, N", "store y[BM*p + m, n] = %zero", TILES),
        ("M, N", "store y[BM*p + m, wide] = %zero", TILES),
        ("M*N", "store y[N*BM*p + N*m + n] = %zero", TILES),
        ("M*N", "store y[N*p + wide] = %zero", "M"),
        ("M", "store y[BM*p + lane] = %zero where BM*p + lane < M", TILES),
        ("3, 5", "for k () { store y[k, five] = %zero yield }", "2"),
        ("1", "store y[0] = %zero", "2"),
    ],
)
def test_a_store_fills_its_output_for_all_sizes(shape: str, body: str, programs: str) -> None:
    assert covers(kernel(shape, body, programs), "y").verdict == "yes"


@pytest.mark.parametrize(
    ("shape", "body", "programs", "missing"),
    [
        ("M", "store y[BM*p + m] = %zero", "floordiv(M, BM)", "y[8] is never written"),
        ("M, N", "store y[BM*p + m, n] = %zero where n < N - 1", TILES, "y[0, 4] is never written"),
        ("M", "store y[2*p] = %zero where 2*p < M", "M", "y[1] is never written"),
        ("M, M", "store y[p, p] = %zero", "M", "y[0, 1] is never written"),
        ("M", "store y[BM*p + m] = %zero where 1 <= BM*p + m", TILES, "y[0] is never written"),
        ("M", "store y[5*p + m] = %zero where 5*p + m < M", TILES, "y[4] is never written"),
    ],
)
def test_what_is_never_written_is_named(shape: str, body: str, programs: str, missing: str) -> None:
    unbound = kernel(shape, body, programs)
    assert covers(unbound, "y").verdict == "unknown"
    answer = covers(bind(unbound, {"M": 10, "N": 5}), "y")
    assert (answer.verdict, answer.reason) == ("no", missing)


def test_two_stores_may_share_the_work() -> None:
    halves = kernel("6, N", "store y[0, n] = %zero store y[five + 1, n] = %zero", "1")
    assert covers(bind(halves, {"M": 1, "N": 3}), "y").verdict == "yes"


def test_a_grid_that_may_be_empty_proves_nothing() -> None:
    assert covers(kernel("5", "store y[five] = %zero", "M"), "y").verdict == "unknown"


def test_a_store_in_a_branch_may_not_happen() -> None:
    body = """%i: i32[p] = index {form = p}
    %one: i32 = constant {value = 1}
    %c: bool[p] = eq %i, %one
    if %c () { store y[five] = %zero yield } () { yield }"""
    assert covers(kernel("5", body, "2"), "y").verdict == "unknown"
    assert covers(kernel("6", body, "2"), "y").verdict == "no"


def test_computed_places_count_where_their_form_is_known() -> None:
    body = "%i: i32[five] = index {form = five} store_at %zero, %i {buffer = y}"
    assert covers(kernel("5", body, "1"), "y").verdict == "yes"
    assert covers(kernel("6", body, "1"), "y").verdict == "no"
    masked = "%i: i32[five] = index {form = five} %c: bool[five] = eq %i, %i "
    masked += "store_at %zero, %i, %c {buffer = y, masked = true}"
    assert covers(kernel("5", masked, "1"), "y").verdict == "unknown"
    square = "%i: i32[five] = index {form = five} %j: i32[five] = xor %i, %i store_at %zero, %j {buffer = y}"
    assert covers(kernel("5", square, "1"), "y").verdict == "unknown"


@settings(max_examples=100, deadline=None)
@given(case=cases(stores_only=True))
def test_answers_agree_with_counting_every_lane(case: Case) -> None:
    bound = case.bound
    written = {element for op, loops in accesses(bound) for _, element in lanes(bound, op, loops)}
    count = 1
    for size in bound.buffer("y").shape:
        assert size.constant is not None
        count *= size.constant
    assert covers(bound, "y").verdict == ("yes" if len(written) == count else "no")
    general = covers(case.kernel, "y").verdict
    assert general == "unknown" or (general == "yes" and len(written) == count)
