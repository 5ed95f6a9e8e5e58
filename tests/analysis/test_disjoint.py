from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from kdsl.analysis.covers import covers
from kdsl.analysis.disjoint import disjoint
from kdsl.ir.kernel import Kernel, bind
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import verify
from tests.analysis.small_kernels import Case, accesses, cases, lanes

KERNEL = """
kernel touch(x: in f32[M, N], y: inout f32[M, N], flat: inout f32[M*N]) {{
  size M
  size N
  size S
  tile BM = 4
  require S >= N
  program m_block < cdiv(M, BM)
  program n_block < {columns}
  loop k < 3
  axis m < BM where BM*m_block + m < M
  axis n < N
  axis wide < next_pow2(N) where wide < N
  axis halo < BM + 2
  %zero: f32 = constant {{value = 0.0}}
{body}
}}
"""


def kernel(*body: str, columns: str = "1") -> Kernel:
    return parse_kernel(KERNEL.format(body="\n".join(body), columns=columns))


@pytest.mark.parametrize(
    "body",
    [
        "store y[BM*m_block + m, n] = %zero",
        "store y[m_block, n] = %zero",
        "store flat[N*BM*m_block + N*m + n] = %zero",
        "store flat[N*m_block + wide] = %zero",
        "store flat[S*m_block + n] = %zero where n < N",
        "store flat[N*m_block + wide - 3] = %zero",
        "store flat[M - 1 - BM*m_block - m] = %zero",
        "store y[floordiv(m_block, 2), mod(m_block, 2)] = %zero",
        "store flat[2*m_block] = %zero\n  store flat[2*m_block + 1] = %zero",
        "store y[BM*m_block + m, 0] = %zero\n  %y: f32[m_block, m, n] = load y[BM*m_block + m, n]",
        "%x: f32[m_block, halo, n] = load x[BM*m_block + halo, n]\n  store y[BM*m_block + m, n] = %zero",
        "store flat[m_block] = %zero\n  %f: f32[m_block] = load flat[m_block + cdiv(M, BM)]",
    ],
)
def test_programs_are_apart_for_all_sizes(body: str) -> None:
    assert disjoint(kernel(body)).verdict == "yes"


@pytest.mark.parametrize(
    ("body", "meeting"),
    [
        ("store flat[0] = %zero", "{'m_block': 0, 'n_block': 0} and {'m_block': 1, 'n_block': 0} meet at element 0"),
        ("store y[floordiv(m_block, 2), 0] = %zero", "'m_block': 0.*'m_block': 1.*element 0"),
        ("store flat[BM*m_block + halo] = %zero", "'m_block': 0.*'m_block': 1.*element 4"),
        ("store flat[2*m_block + m] = %zero", "'m_block': 0.*'m_block': 1.*element"),
        (
            "store y[BM*m_block + m, n] = %zero\n  %y: f32[m_block, m, n] = load y[BM*m_block + m + 1, n]",
            "load of y.*'m_block': 0.*'m_block': 1.*element 20",
        ),
    ],
)
def test_where_programs_meet_a_witness_says_so(body: str, meeting: str) -> None:
    unbound = kernel(body)
    assert disjoint(unbound).verdict == "unknown"
    answer = disjoint(bind(unbound, {"M": 12, "N": 5, "S": 5}))
    assert answer.verdict == "no"
    assert re.search(meeting.replace("{", r"\{").replace("}", r"\}"), answer.reason)


def test_reading_the_same_element_is_no_conflict() -> None:
    assert disjoint(kernel("%x: f32[n] = load x[0, n]", columns="4")).verdict == "yes"


def test_an_axis_that_no_form_mentions_may_have_one_point() -> None:
    assert disjoint(kernel("store y[m_block, n] = %zero")).verdict == "yes"
    assert disjoint(kernel("store y[m_block, n] = %zero", columns="2")).verdict == "unknown"


def test_programs_in_different_places_on_one_axis_may_be_apart_though_others_meet() -> None:
    meeting = kernel("store y[m_block, n] = %zero", columns="2")
    assert disjoint(meeting, "m_block").verdict == "yes"
    bound = bind(meeting, {"M": 12, "N": 5, "S": 5})
    assert disjoint(bound, "n_block").verdict == disjoint(bound).verdict == "no"


def test_iterations_of_a_loop_are_compared_within_one_program() -> None:
    body = "for k () {\n store flat[3*m_block + k] = %zero\n yield\n}"
    assert disjoint(kernel(body)).verdict == disjoint(kernel(body), "k").verdict == "yes"
    same = kernel("for k () {\n store y[m_block, n] = %zero\n yield\n}")
    assert disjoint(same).verdict == "yes"
    assert disjoint(bind(same, {"M": 2, "N": 3, "S": 3}), "k").verdict == "no"


def test_computed_places_are_unknown() -> None:
    body = "%i: i32[m] = index {form = m}\n store_at %zero, %i, %i {buffer = y}"
    assert disjoint(kernel(body)).verdict == "unknown"


def test_a_store_in_a_branch_is_no_witness() -> None:
    body = """
    %i: i32[m_block] = index {form = m_block}
    %first: i32 = constant {value = 0}
    %c: bool[m_block] = eq %i, %first
    if %c () {
      store flat[0] = %zero
      yield
    } () {
      yield
    }"""
    assert disjoint(bind(kernel(body), {"M": 12, "N": 5, "S": 5})).verdict == "unknown"


def _apart(bound: Kernel, loop: str | None) -> bool:
    """The same question, asked of every lane: who else was at its element?"""
    program = [axis.name for axis in bound.program_axes]
    shared, over = ([], program) if loop is None else (program, [loop])
    visitors: dict[object, set[tuple[str, tuple[int, ...]]]] = {}
    for op, loops in accesses(bound):
        if loop is None or loop in loops:
            for point, element in lanes(bound, op, loops):
                place = (element, tuple(point[name] for name in shared))
                visitors.setdefault(place, set()).add((op.name, tuple(point[name] for name in over)))
    return not any(
        name == "store" and point != other for found in visitors.values() for name, point in found for _, other in found
    )


@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_answers_agree_with_every_pair_of_lanes(case: Case) -> None:
    for loop in (None, "l"):
        expected = _apart(case.bound, loop)
        assert disjoint(case.bound, loop).verdict == ("yes" if expected else "no")
        general = disjoint(case.kernel, loop).verdict
        assert general == "unknown" or (general == "yes" and expected)


INTEGERS = """
kernel ragged(starts: in i32[P], x: inout f32[N]) {{
  size P
  size N
  program p < P
  axis i < 4
  integer start[p]
  integer first
  %one: f32 = constant {{value = 1.0}}
  %i: i32[p] = index {{form = p}}
  %s: i32[p] = load starts[p]
  %f: i32 = load starts[0]
  let %s {{integer = start}}
  let %f {{integer = first}}
  store x[{place}] = %one where {place} < N
}}
"""


@pytest.mark.parametrize(
    ("place", "verdict"),
    [("start + i", "unknown"), ("start + 4*p + i", "unknown"), ("4*p + i", "yes"), ("first + 4*p + i", "yes")],
)
def test_an_integer_of_each_program_is_another_in_each(place: str, verdict: str) -> None:
    unbound = parse_kernel(INTEGERS.format(place=place))
    assert disjoint(unbound).verdict == verdict
    assert disjoint(bind(unbound, {"P": 3, "N": 20})).verdict == verdict
    assert covers(unbound, "x").verdict == "unknown"


COUNTED = """
kernel counted(x: inout f32[40]) {
  program p < 3
  loop k < 5
  axis i < 4
  integer turn
  %one: i32 = constant {value = 1}
  %zero: i32 = constant {value = 0}
  %value: f32 = constant {value = 1.0}
  %last: i32 = for k (%n: i32 = %zero) {
    let %n {integer = turn}
    store x[turn + 4*p + i] = %value
    %next: i32 = add %n, %one
    yield %next
  }
}
"""


def test_an_integer_that_a_loop_counts_is_another_in_each_iteration() -> None:
    assert disjoint(verify(parse_kernel(COUNTED))).verdict == "unknown"
