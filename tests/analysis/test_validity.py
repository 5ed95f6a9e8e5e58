from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdsl.analysis.ranges import interval, never_negative
from kdsl.analysis.validity import Padding, follows, holds_always, simplify
from kdsl.ir.expr import Expr, cdiv, function, symbol, wrap
from kdsl.ir.kernel import Bound, Kernel, bind
from kdsl.ir.text import parse_kernel

HEAD = """
kernel none(x: in f32[N], y: inout f32[N]) {{
  size M
  size N
  size D
  tile BM = 4
  require mod(N, 8) == 0
  program m_block < cdiv(M, BM)
  loop n_block < cdiv(N, 8)
  loop causal < cdiv(min(BM*m_block + BM, N), 8)
  axis m < BM
  axis n < 8
  axis d < D
{body}
}}
"""
KERNEL = parse_kernel(HEAD.format(body=""))


def bound(text: str) -> Bound:
    """A bound, read as the text form reads it."""
    kernel = parse_kernel(HEAD.format(body=f"%b: bool = in_bounds {{bounds = [{text}]}}"))
    (only,) = kernel.body.ops[0].attributes["bounds"]
    assert isinstance(only, Bound)
    return only


@pytest.mark.parametrize(
    "text",
    [
        "d < D",
        "0 <= d < D + 1",
        "0 <= BM*m_block + m",
        "8*n_block + n < N",  # N is a multiple of 8
        "8*n_block + n - m < N",
        "n < min(8, 8 + n_block)",
        "m - n < BM",
        "max(m - BM, 0 - n) <= 0",
        "0 <= m*n_block",
        "0 <= n - min(n, m_block)",
    ],
)
def test_bounds_that_hold_everywhere(text: str) -> None:
    assert holds_always(KERNEL, [bound(text)])


@pytest.mark.parametrize(
    "text",
    [
        "BM*m_block + m < M",  # nothing says that BM divides M
        "d + 1 < D",
        "1 <= d",
        "m < 8",
        "d < N",
        "8*causal + n < N - 1",
        "n < min(8, n_block)",
        "mod(d, 4) < 3",
        "0 <= n - max(n, m_block)",
    ],
)
def test_bounds_that_may_fail(text: str) -> None:
    assert not holds_always(KERNEL, [bound(text)])


@pytest.mark.parametrize(("rows", "holds"), [(8, True), (7, False), (9, False)])
def test_integers_decide_once_bound(rows: int, holds: bool) -> None:
    """4*m_block + m < M: 2 blocks of 4 rows are 8 rows."""
    kernel = bind(KERNEL, {"M": rows, "N": 8, "D": 3})
    assert holds_always(kernel, [bound("BM*m_block + m < M").substitute({"BM": 4, "M": rows})]) == holds


def forms() -> st.SearchStrategy[Expr]:
    leaves = st.sampled_from([symbol(name) for name in ("m_block", "n_block", "causal", "m", "n", "d")])
    leaves = leaves | st.integers(-5, 5).map(wrap)
    return st.recursive(
        leaves, lambda inner: st.builds(combine, st.sampled_from(OPERATORS), inner, inner), max_leaves=4
    )


OPERATORS = ["+", "-", "*", "min", "max", "cdiv", "floordiv", "mod"]


def combine(operator: str, left: Expr, right: Expr) -> Expr:
    if operator in "+-*":
        return {"+": left + right, "-": left - right, "*": left * right}[operator]
    # A divisor is a positive constant.
    return function(operator, left, right if operator in ("min", "max") else 1 + abs(right.constant or 2))


def points(kernel: Kernel) -> list[dict[str, int]]:
    """Every point of every axis, loops within their programs."""
    found: list[dict[str, int]] = [{}]
    for axis in kernel.axes:
        found = [point | {axis.name: i} for point in found for i in range(axis.extent.evaluate(point))]
    return found


@settings(max_examples=150, deadline=None)
@given(form=forms(), m=st.integers(1, 9), n=st.sampled_from([8, 16]), d=st.integers(1, 3))
def test_proofs_are_sound_and_intervals_cover(form: Expr, m: int, n: int, d: int) -> None:
    kernel = bind(KERNEL, {"M": m, "N": n, "D": d}, {"BM": 3})
    every = [form.evaluate(point) for point in points(kernel)]
    ends = interval(kernel, form)
    assert ends is not None
    assert ends[0] <= min(every) and max(every) <= ends[1]
    if never_negative(kernel, form):
        assert min(every) >= 0
    if never_negative(KERNEL, form) and m % 4 == 0:
        assert min(form.evaluate(point) for point in points(bind(KERNEL, {"M": m, "N": n, "D": d}))) >= 0


@given(st.lists(st.tuples(st.integers(-4, 4), st.sampled_from(["m_block", "n_block", "m", "n", "d"])), max_size=4))
def test_intervals_of_linear_forms_are_exact(terms: list[tuple[int, str]]) -> None:
    form = wrap(1)
    for coefficient, name in terms:
        form = form + coefficient * symbol(name)
    kernel = bind(KERNEL, {"M": 8, "N": 16, "D": 3})
    every = [form.evaluate(point) for point in points(kernel)]
    assert interval(kernel, form) == (min(every), max(every))


def test_intervals_of_functions() -> None:
    kernel = bind(KERNEL, {"M": 8, "N": 16, "D": 3})
    assert interval(kernel, symbol("n") % 4) == (0, 3)
    assert interval(kernel, symbol("d") % 4) == (0, 2)  # within one period
    assert interval(kernel, cdiv(symbol("n") - 3, 4)) == (0, 1)
    assert interval(kernel, function("min", symbol("d"), 1 - symbol("m_block"))) == (0, 1)
    assert interval(KERNEL, symbol("d")) is None


def test_a_bound_follows_from_a_stronger_one() -> None:
    assert follows(KERNEL, bound("n < N"), bound("n < min(N, M)"))
    assert follows(KERNEL, bound("n < N"), bound("n < N - 2"))
    assert follows(KERNEL, bound("n < N"), bound("n + m < N"))
    assert not follows(KERNEL, bound("n < min(N, M)"), bound("n < N"))
    assert not follows(KERNEL, bound("n < N"), bound("n < M"))


def test_simplify_keeps_what_is_needed_as_it_was_written() -> None:
    given_bounds = [bound("0 <= d < D"), bound("1 <= d < M"), bound("d < min(M, D)"), bound("1 <= d < M")]
    assert [str(one) for one in simplify(KERNEL, given_bounds)] == ["1 <= d < M"]


PADDED = """
  %x: f32[n_block, n] = load x[8*n_block + n] where 8*n_block + n < M fill -inf
  %zero: f32 = constant {value = 0.0}
  %e: f32[n_block, n] = exp %x
  %half: bf16[n_block, n] = cast %e
  %spread: bf16[n_block, m, n] = broadcast %half {axes = [m]}
  %y: f32[n_block, n] = load y[8*n_block + n] where 8*n_block + n < M
  %sum: f32[n_block, n] = add %e, %y
  %log: f32[n_block, n] = log %e
  %in: bool[n_block, n] = in_bounds {bounds = [8*n_block + n < min(M, 5)]}
  %kept: f32[n_block, n] = select %in, %y, %zero
  %other: bool[n_block, n] = in_bounds {bounds = [n_block + n < 5]}
  %both: bool[n_block, n] = and %other, %in
  %held: f32[n_block, n] = select %both, %y, %e
  %mixed: f32[n_block, n] = select %other, %x, %zero
  %alike: f32[n_block, n] = select %other, %e, %zero
"""


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("x", -np.inf),
        ("e", 0.0),
        ("half", 0.0),
        ("spread", 0.0),
        ("y", None),
        ("sum", None),
        ("log", None),  # log of 0 differs between targets
        ("kept", 0.0),
        ("held", 0.0),
        ("mixed", None),
        ("alike", 0.0),
    ],
)
def test_padding_flows_through_what_every_target_computes_alike(name: str, number: float | None) -> None:
    head = HEAD.replace("  require mod(N, 8) == 0\n", "").replace("{body}", "BODY").format().replace("BODY", PADDED)
    held = Padding(parse_kernel(head)).constant(name, [bound("8*n_block + n < M")])
    assert (None if held is None else float(held)) == number


def test_padding_says_nothing_where_another_bound_fails() -> None:
    head = HEAD.replace("{body}", "BODY").format().replace("BODY", PADDED)
    padding = Padding(parse_kernel(head))
    assert padding.constant("x", [bound("8*n_block + n < M + 1")]) is not None
    assert padding.constant("x", [bound("8*n_block + n < M - 1")]) is None
    assert padding.constant("x", [bound("8*n_block + n < M"), bound("m < M")]) is None
