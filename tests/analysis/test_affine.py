from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdsl.analysis.affine import FlatTail, Range, affine, distribute, flat_tail, separable
from kdsl.ir.expr import Expr, cdiv, symbol, wrap
from kdsl.ir.kernel import Kernel, bind
from kdsl.ir.text import parse_kernel

KERNEL = """
kernel read(x: in f32[M, N], y: in f32[M*N]) {{
  size M
  size N
  tile BM = 4
  program p < cdiv(M, BM)
  loop k < 3
  axis m < BM
  axis n < N
  {body}
}}
"""
P, I, J, N, B = (symbol(name) for name in ("p", "m", "n", "N", "BM"))


def kernel(body: str = "") -> Kernel:
    return parse_kernel(KERNEL.format(body=body))


@pytest.mark.parametrize(
    ("form", "coefficients", "constant"),
    [
        (B * P + I, {"p": B, "m": wrap(1)}, wrap(0)),
        (N * P + 2 * J - 3 * N, {"p": N, "n": wrap(2)}, -3 * N),
        (2 * (P // 4) + P % 4, {"p//4": wrap(2), "p%4": wrap(1)}, wrap(0)),
        (P + P // N, {"p//N": N + 1, "p%N": wrap(1)}, wrap(0)),
        ((8 * P + J) // 4, {"p": wrap(2), "n//4": wrap(1)}, wrap(0)),
        ((8 * P + J) % 4, {"n%4": wrap(1)}, wrap(0)),
        (cdiv(N, 4), {}, cdiv(N, 4)),
    ],
)
def test_forms_are_affine_in_axes_and_parts_of_axes(form: Expr, coefficients: dict[str, Expr], constant: Expr) -> None:
    for each in (kernel(), bind(kernel(), {"M": 8, "N": 5})):
        values = {} if each.sizes else {"N": 5, "BM": 4}
        found = affine(each, form.substitute(values))
        assert found is not None
        if not values:
            assert (found.coefficients, found.constant) == (coefficients, constant)


@pytest.mark.parametrize("form", [P * I, P // 4 + P // 8, P // I, (P + I) // 4, symbol("k") * (P // 2)])
def test_other_forms_are_not(form: Expr) -> None:
    assert affine(kernel(), form) is None


FORMS = st.sampled_from([P, I, J, 4 * P + I, P // 2, P % 2, (4 * P + I) // 2, (2 * P + J) % 2, 3 * J, I // 2])


@settings(max_examples=100, deadline=None)
@given(terms=st.lists(st.tuples(st.integers(-3, 3), FORMS), max_size=3), constant=st.integers(-3, 3))
def test_the_affine_form_has_the_same_values(terms: list[tuple[int, Expr]], constant: int) -> None:
    form: Expr = sum((factor * each for factor, each in terms), wrap(constant))
    found = affine(kernel(), form)
    for p, m, n in itertools.product(range(4), repeat=3):
        point = {"p": p, "m": m, "n": n}
        assert distribute(kernel(), form).evaluate(point) == form.evaluate(point)
        if found is not None:
            parts = {split.quotient.name: point[split.axis.name] // 2 for split in found.splits}
            parts |= {split.remainder.name: point[split.axis.name] % 2 for split in found.splits}
            assert found.form.evaluate(point | parts) == form.evaluate(point)


def test_an_access_is_a_range_in_each_dimension() -> None:
    box = kernel("%x: f32[p, m, n] = load x[BM*p + m, N - 1 - n]").body.ops[0]
    assert separable(kernel(), box) == (Range(B * P, "m"), Range(N - 1, "n", wrap(-1)))
    point = kernel("%x: f32[p, m] = load x[p, 2*m + 1]").body.ops[0]
    assert separable(kernel(), point) == (Range(P), Range(wrap(1), "m", wrap(2)))
    for index in ("m, m", "m + n, 0", "m*n, 0", "floordiv(m, 2), 0"):
        axes = ", ".join(name for name in "mn" if name in index.replace("floordiv", ""))
        other = kernel(f"%x: f32[{axes}] = load x[{index}]").body.ops[0]
        assert separable(kernel(), other) is None


def test_a_flat_tail_is_full_rows_and_one_ragged_last_row() -> None:
    def tail(where: str) -> FlatTail | None:
        load = kernel(f"%x: f32[p, m] = load y[BM*p + m] where {where}").body.ops[0]
        return flat_tail(kernel(), load.attributes["bounds"])

    assert tail("BM*p + m < N") == FlatTail("p", "m", B, N)
    for where in ("2*p + m < N", "BM*p + 2*m < N", "0 <= BM*p + m < N", "m < N", "BM*p + m + 1 < N"):
        assert tail(where) is None
