from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdsl.ir.expr import FUNCTIONS, Expr, cdiv, function, symbol, wrap
from kdsl.ir.text import parse_kernel

NAMES = ("a", "b", "c")
a, b, c = (symbol(name) for name in NAMES)
numbers = st.integers(-20, 20)
environments = st.fixed_dictionaries({name: numbers for name in NAMES})


def combined(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    divisor = st.integers(1, 9) | st.integers(-9, -1)
    return st.one_of(
        st.builds(lambda x, y: x + y, inner, inner),
        st.builds(lambda x, y: x - y, inner, inner),
        st.builds(lambda x, y: x * y, inner, inner),
        st.builds(function, st.sampled_from(["cdiv", "floordiv", "mod"]), inner, divisor),
        st.builds(function, st.sampled_from(["min", "max"]), inner, inner, inner),
        st.builds(lambda x: function("next_pow2", x), inner),
    )


exprs = st.recursive(st.builds(symbol, st.sampled_from(NAMES)) | st.builds(wrap, numbers), combined, max_leaves=8)


def parse(text: str) -> Expr:
    declared = "".join(f"size {name}\n" for name in NAMES)
    return parse_kernel(f"kernel f() {{ {declared} axis n < {text} }}").axis("n").extent


@given(exprs, exprs, exprs)
def test_arithmetic_has_one_form(x: Expr, y: Expr, z: Expr) -> None:
    assert x + y == y + x
    assert x * y == y * x
    assert (x + y) + z == x + (y + z)
    assert (x * y) * z == x * (y * z)
    assert (x + y) * z == x * z + y * z
    assert x - x == wrap(0)
    assert wrap(0) - (-x) == x
    assert x * 1 == x + 0 == x
    assert hash(x + y) == hash(y + x)


@given(exprs, exprs, exprs)
def test_min_and_max_do_not_depend_on_order_or_nesting(x: Expr, y: Expr, z: Expr) -> None:
    for name in ("min", "max"):
        assert function(name, x, y, z) == function(name, z, x, y) == function(name, x, function(name, y, z))
        assert function(name, x, x) == x


def test_min_and_max_drop_what_a_constant_decides() -> None:
    assert function("min", a * b, c, a * b + 3) == function("min", a * b, c)
    assert function("max", a * b, c, a * b + 3) == function("max", a * b + 3, c)


@given(exprs, environments)
def test_folding_keeps_the_value(x: Expr, environment: dict[str, int]) -> None:
    value = x.evaluate(environment)
    assert type(value) is int
    assert x.substitute(environment) == wrap(value)
    assert x.substitute(environment).constant == value


@given(exprs, exprs, environments)
def test_evaluation_and_substitution_commute(x: Expr, inner: Expr, environment: dict[str, int]) -> None:
    replaced = x.substitute({"a": inner})
    assert replaced.evaluate(environment) == x.evaluate({**environment, "a": inner.evaluate(environment)})
    half = x.substitute({"b": environment["b"]})
    assert half.evaluate(environment) == x.evaluate(environment)
    assert "b" not in half.symbols


@given(exprs)
def test_substitution_is_simultaneous(x: Expr) -> None:
    there = x.substitute({"a": b, "b": a})
    assert there.substitute({"a": b, "b": a}) == x


@given(exprs)
def test_text_parses_back(x: Expr) -> None:
    assert parse(str(x)) == x


@given(exprs, st.lists(environments, min_size=3, max_size=3))
def test_arrays_evaluate_like_integers(x: Expr, environments: list[dict[str, int]]) -> None:
    arrays = {name: np.array([each[name] for each in environments]) for name in NAMES}
    expected = [x.evaluate(each) for each in environments]
    got = np.broadcast_to(x.evaluate(arrays), 3)
    if max(map(abs, expected)) < 2**62:
        assert got.tolist() == expected


@given(exprs, exprs, environments)
def test_a_linear_expression_is_its_coefficient_times_the_symbol_plus_the_rest(
    x: Expr, y: Expr, environment: dict[str, int]
) -> None:
    slope, offset = x.without("a"), y.without("a")
    linear = slope * a + offset
    assert linear.coefficient("a") == slope
    assert linear.without("a") == offset
    found = x.coefficient("a")
    if found is not None:
        assert "a" not in found.symbols
        assert found * a + x.without("a") == x


@pytest.mark.parametrize("form", [a * a, function("mod", a, 3), a * cdiv(a, 2), b * function("min", a, b)])
def test_what_is_not_linear_has_no_coefficient(form: Expr) -> None:
    assert form.coefficient("a") is None
    assert form.coefficient("c") == wrap(0)


EXPECTED: dict[str, Any] = {
    "cdiv": lambda x, y: x // y + (x % y != 0),
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x - y * (x // y),
    "min": min,
    "max": max,
    "next_pow2": lambda x: next(2**k for k in range(99) if 2**k >= x),
}


def test_every_function_has_an_expectation() -> None:
    assert EXPECTED.keys() == FUNCTIONS.keys()


@given(st.sampled_from(sorted(EXPECTED)), numbers, numbers.filter(bool))
def test_functions_agree_with_python(name: str, x: int, y: int) -> None:
    arguments = (x,) if name == "next_pow2" else (x, y)
    expected = EXPECTED[name](*arguments)
    assert function(name, *arguments).constant == expected
    symbols = [symbol(each) for each in NAMES[: len(arguments)]]
    assert function(name, *symbols).evaluate(dict(zip(NAMES, arguments, strict=False))) == expected


@given(exprs, exprs.filter(lambda y: len(y.terms) == 1), environments)
def test_a_product_divided_by_its_factor_is_the_other(x: Expr, y: Expr, environment: dict[str, int]) -> None:
    assert (x * y) // y == cdiv(x * y, y) == x
    assert (x * y) % y == wrap(0)


@pytest.mark.parametrize("name", ["cdiv", "floordiv", "mod"])
def test_division_by_the_constant_zero_is_an_error(name: str) -> None:
    for numerator in (wrap(4), a):
        with pytest.raises(ZeroDivisionError):
            function(name, numerator, 0)


def test_functions_check_their_name_and_arguments() -> None:
    with pytest.raises(KeyError):
        function("gcd", a, b)
    for name, arguments in [("cdiv", (a,)), ("mod", (a, b, c)), ("next_pow2", (a, b)), ("min", ())]:
        with pytest.raises(ValueError, match=name):
            function(name, *arguments)


def test_only_integers_are_wrapped() -> None:
    assert wrap(np.int32(3)) == wrap(3)
    with pytest.raises(TypeError):
        wrap(2.5)  # type: ignore[arg-type]  # the mistake that is tested


def test_expressions_print_as_a_person_writes_them() -> None:
    assert str(1 + c - 2 * a * b) == "-2*a*b + c + 1"
    assert str(cdiv(a + 1, b) * 3 - b) == "-b + 3*cdiv(a + 1, b)"
    assert str(wrap(0)) == "0"
