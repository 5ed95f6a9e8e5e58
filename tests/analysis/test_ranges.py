from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdsl.analysis.ranges import divisor, fits, never_negative, never_negative_if
from kdsl.ir.expr import Expr, cdiv, function, symbol, wrap
from kdsl.ir.kernel import bind
from kdsl.ir.text import parse_kernel

KERNEL = parse_kernel("""
kernel none(x: in f32[N]) {
  size M
  size N
  tile B = 4
  require mod(N, 8) == 0
  require M > N
  program p < cdiv(M, B)
  axis i < B
  axis j < N
}
""")
M, N, B, P, I, J = (symbol(name) for name in ("M", "N", "B", "p", "i", "j"))
QUOTIENTS = [cdiv(M, B), function("floordiv", M, B), function("next_pow2", N), cdiv(cdiv(N, B), 2)]


@pytest.mark.parametrize(
    "form",
    [
        B * cdiv(M, B) - M,
        M + B - 1 - B * cdiv(M, B),
        M - B * function("floordiv", M, B),
        B * function("floordiv", M, B) + B - 1 - M,
        function("next_pow2", N) - N,
        2 * B * cdiv(cdiv(M, B), 2) - M,
        N * B * cdiv(M, B) - M * N,
    ],
)
def test_quotients_are_estimated(form: Expr) -> None:
    assert never_negative(KERNEL, form)
    assert not never_negative(KERNEL, form - 1)


@settings(max_examples=200, deadline=None)
@given(
    terms=st.lists(
        st.tuples(st.integers(-2, 2), st.sampled_from([wrap(1), B, 2 * B, N]), st.sampled_from([wrap(1), *QUOTIENTS])),
        min_size=1,
        max_size=3,
    ),
    sizes=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.integers(1, 5)), min_size=8, max_size=8),
)
def test_no_estimate_proves_what_is_false(
    terms: list[tuple[int, Expr, Expr]], sizes: list[tuple[int, int, int]]
) -> None:
    form: Expr = sum((factor * other * quotient for factor, other, quotient in terms), M - N)
    if never_negative(KERNEL, form):
        for m, n, b in sizes:
            assert form.evaluate({"M": m, "N": 8 * n, "B": b}) >= 0


def test_premises_and_constraints_prove() -> None:
    assert never_negative_if(KERNEL, N - 1 - I + J, [N - 1 - I])
    assert never_negative_if(KERNEL, M - 1 - N, [])  # M > N
    assert never_negative_if(KERNEL, 2 * N - 2 - I - J, [N - 1 - I])
    assert not never_negative_if(KERNEL, N - 1 - 2 * I, [N - 1 - I])


def test_divisors_come_from_coefficients_and_constraints() -> None:
    assert divisor(KERNEL, 4 * P + 6 * I) == 2
    assert divisor(KERNEL, N * P + 16 * I) == 8
    assert divisor(KERNEL, 3 * N) == 24
    assert divisor(KERNEL, wrap(0)) == 0
    assert divisor(KERNEL, B * P) == 1


def test_a_form_fits_where_its_ends_do() -> None:
    small, large = (bind(KERNEL, {"M": m, "N": 8}) for m in (100, 2**29 + 1))
    form = 16 * (B * P + I)
    assert fits(small, form.substitute({"B": 4}), 32)
    assert not fits(large, form.substitute({"B": 4}), 32)
    assert fits(large, form.substitute({"B": 4}), 64)
    assert not fits(KERNEL, form, 64)
