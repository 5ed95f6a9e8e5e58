from __future__ import annotations

import pytest
from hypothesis import given, settings

from kdsl.analysis.accesses import accesses, stays_inside, touched
from kdsl.ir.kernel import bind
from kdsl.ir.text import parse_kernel
from tests.analysis import small_kernels
from tests.analysis.small_kernels import Case, cases, lanes

KERNEL = """
kernel read(x: in f32[M, N], y: in f32[M*N]) {{
  size M
  size N
  program p < cdiv(M, 4)
  loop k < 3
  axis m < 4 where 4*p + m < M
  axis lane < 4
  axis n < N
  {body}
}}
"""


@pytest.mark.parametrize(
    ("access", "inside"),
    [
        ("%x: f32[p, m, n] = load x[4*p + m, n]", True),
        ("%x: f32[p, m, n] = load x[4*p + m, N - 1 - n]", True),
        ("%x: f32[p, lane, n] = load x[4*p + lane, n]", False),
        ("%x: f32[p, lane, n] = load x[4*p + lane, n] where 4*p + lane < M", True),
        ("%x: f32[p, m, n] = load x[4*p + m - 1, n]", False),
        ("%x: f32[p, m, n] = load x[4*p + m - 1, n] where 0 <= 4*p + m - 1", True),
        ("%x: f32[p, m, n] = load x[4*p + m, n + 1] where n + 1 < N", True),
    ],
)
def test_an_access_that_stays_inside_for_all_sizes_is_known(access: str, inside: bool) -> None:
    kernel = parse_kernel(KERNEL.format(body=access))
    (only,) = accesses(kernel)
    assert stays_inside(kernel, only) == inside


def test_what_surrounds_an_access_is_part_of_it() -> None:
    body = "for k () { %x: f32[n] = load x[0, n] if %c () { %y: f32[k] = load y[k] yield } () { yield } yield }"
    text = KERNEL.format(body="%i: i32 = constant {value = 1} %c: bool = eq %i, %i " + body)
    kernel = parse_kernel(text)
    first, second = accesses(kernel)
    assert (first.axes, first.loops, first.certain) == (("p", "k", "n"), ("k",), True)
    assert (second.axes, second.loops, second.certain) == (("p", "k"), ("k",), False)
    assert not first.writes
    assert touched(kernel, first) is None  # sizes are open
    found = touched(bind(kernel, {"M": 5, "N": 2}), second)
    assert found is not None
    places, elements = found
    assert elements.tolist() == places["k"].tolist() == [0, 1, 2, 0, 1, 2]


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_counted_lanes_are_those_that_touch_memory(case: Case) -> None:
    bound = case.bound
    shape = [size.constant or 0 for size in bound.buffer("y").shape]
    for access, (op, loops) in zip(accesses(bound), small_kernels.accesses(bound), strict=True):
        found = touched(bound, access)
        assert found is not None
        expected = []
        for _, element in lanes(bound, op, loops):
            number = 0
            for index, size in zip(element, shape, strict=True):
                number = number * size + index
            expected.append(number)
        assert sorted(set(found[1].tolist())) == sorted(set(expected))
