"""Words and their arithmetic against Python's integers and fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kdsl.equivalence.algebra.field import Field, accumulate, fold
from kdsl.equivalence.algebra.words import (
    MINUS,
    NAN,
    ONE,
    PLUS,
    UNDEFINED,
    ZERO,
    P,
    Q,
    encode,
    has_q,
    mod_p,
    mod_q,
)

FIELD = Field((7,))
SPECIAL = np.array([MINUS, PLUS, NAN, UNDEFINED])


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def residues(words: Any) -> list[tuple[int, int | None]]:
    flat = np.asarray(words).reshape(-1)
    return [(int(mod_p(w)), int(mod_q(w)) if has_q(w) else None) for w in flat]


def drawn(count: int) -> Any:
    return FIELD.random((count,))


def test_the_primes_are_a_safe_prime_and_its_half() -> None:
    assert is_prime(P) and is_prime(Q) and P == 2 * Q + 1 < 2**31
    assert P % 4 == 3  # so that -1 is no square, and a sign may be whether a number is one


@pytest.mark.parametrize("number", [0.0, 1.0, -1.0, 0.1, -2.5e-8, 1e30, 5e-324, 1.7976931348623157e308, 3 * 2.0**40])
def test_a_float_is_its_fraction(number: float) -> None:
    exact = Fraction(number)
    expected = tuple(exact.numerator * pow(exact.denominator, -1, prime) % prime for prime in (P, Q))
    assert residues(encode(np.array(number))) == [expected]


def test_infinities_and_nan_are_symbols() -> None:
    assert encode(np.array([-np.inf, np.inf, np.nan])).tolist() == [MINUS, PLUS, NAN]


def test_arithmetic_is_that_of_integers_mod_both_primes() -> None:
    x, y = drawn(50), drawn(50)
    for (a, c), (b, d), total, difference, product, ratio in zip(
        residues(x),
        residues(y),
        residues(FIELD.add(x, y)),
        residues(FIELD.subtract(x, y)),
        residues(FIELD.multiply(x, y)),
        residues(FIELD.divide(x, y)),
        strict=True,
    ):
        assert c is not None and d is not None
        assert total == ((a + b) % P, (c + d) % Q)
        assert difference == ((a - b) % P, (c - d) % Q)
        assert product == (a * b % P, c * d % Q)
        assert ratio == (a * pow(b, -1, P) % P, c * pow(d, -1, Q) % Q)


def test_matrices_multiply_as_sums_of_products() -> None:
    x, y = FIELD.random((2, 5, 300)), FIELD.random((1, 300, 4))
    product = FIELD.matmul(x, y)
    for place in np.ndindex(2, 5, 4):
        terms = zip(residues(x[place[0], place[1]]), residues(y[0, :, place[2]]), strict=True)
        sums = [(a * b, (c or 0) * (d or 0)) for (a, c), (b, d) in terms]
        assert residues(product[place]) == [(sum(s for s, _ in sums) % P, sum(s for _, s in sums) % Q)]
    x[0, 0, 0], x[1, 2, 3] = PLUS, UNDEFINED  # which go another way
    special = FIELD.matmul(x, y)
    assert (special[1, 2] == UNDEFINED).all() and np.isin(special[0, 0], [PLUS, MINUS]).all()
    special[0, 0], special[1, 2] = product[0, 0], product[1, 2]
    assert (special == product).all()


def exp(x: Any) -> Any:
    return FIELD.exponential("exp", np.exp, x)


def test_exp_turns_sums_into_products() -> None:
    x, y = drawn(50), drawn(50)
    assert (mod_p(exp(FIELD.add(x, y))) == mod_p(FIELD.multiply(exp(x), exp(y)))).all()
    assert len(np.unique(exp(x))) == 50
    assert exp(np.array([ZERO, MINUS, PLUS])).tolist() == [ONE, ZERO, PLUS]
    other = FIELD.exponential("exp2", np.exp2, x)
    assert (mod_p(other) != mod_p(exp(x))).all()


def test_what_came_from_an_exp_is_no_exponent() -> None:
    x, y = drawn(9), drawn(9)
    for once in (exp(x), FIELD.add(exp(x), y), FIELD.multiply(y, exp(x)), FIELD.divide(y, exp(x))):
        assert not has_q(once).any() and (exp(once) == UNDEFINED).all()
    total = FIELD.matmul(exp(x)[np.newaxis], y[:, np.newaxis])
    assert (exp(total) == UNDEFINED).all()


def test_undefined_stays_undefined() -> None:
    x = np.full(9, UNDEFINED)
    results = [FIELD.add(x, drawn(9)), FIELD.multiply(x, np.full(9, ZERO)), FIELD.divide(drawn(9), x), exp(x)]
    results += [FIELD.negate(x), FIELD.extreme(np.less_equal, x, drawn(9)), FIELD.function("sin", np.sin, x)]
    results += [FIELD.rounded("bf16", np.asarray, x), FIELD.add(x, np.full(9, PLUS)), FIELD.divide(drawn(9), 0 * x)]
    assert all((result == UNDEFINED).all() for result in results)


def test_infinities_follow_ieee() -> None:
    numbers = np.array([-np.inf, np.inf, np.nan, 0.0, 2.0, -3.0])
    words = FIELD.name(numbers)
    x, y = np.meshgrid(np.arange(6), np.arange(6))
    rest = (x < 3) | (y < 3)  # where a special number takes part
    x, y = x[rest], y[rest]
    for mine, ufunc in ((FIELD.add, np.add), (FIELD.multiply, np.multiply), (FIELD.divide, np.divide)):
        expected = ufunc(numbers[x], numbers[y])
        unsigned = (numbers[y] == 0) & (ufunc is np.divide) & np.isinf(expected)
        assert (mine(words[x], words[y])[~unsigned] == encode(expected)[~unsigned]).all()
    assert (FIELD.extreme(np.greater_equal, words[x], words[y]) == encode(np.maximum(numbers[x], numbers[y])))[
        ~np.isin(numbers[x], [2, -3]) | ~np.isin(numbers[y], [2, -3])
    ].all()


def test_signs_multiply_and_powers_are_positive() -> None:
    x, y = drawn(60), drawn(60)
    sign = FIELD.sign
    assert set(sign(x)) == {-1.0, 1.0}
    assert (sign(FIELD.multiply(x, y)) == sign(x) * sign(y)).all()
    assert (sign(FIELD.negate(x)) == -sign(x)).all()
    assert (sign(exp(x)) == 1).all()
    assert sign(FIELD.name(np.array([0.3, -7.5]))).tolist() == [1, -1]


def test_a_selector_is_associative_commutative_idempotent_and_any() -> None:
    x, y, z = drawn(60), drawn(60), drawn(60)

    def larger(a: Any, b: Any) -> Any:
        return FIELD.extreme(np.greater_equal, a, b)

    assert (larger(x, larger(y, z)) == larger(larger(x, y), z)).all()
    assert (larger(x, y) == larger(y, x)).all() and (larger(x, x) == x).all()
    assert 10 < (larger(x, y) == x).sum() < 50
    assert (FIELD.compare(np.less, x, y) == (larger(x, y) != x)).all()
    assert (fold(larger, x, MINUS) == accumulate(larger, x)[-1]).all()
    for special, expected in ((MINUS, x), (PLUS, np.full(60, PLUS)), (NAN, np.full(60, NAN))):
        assert (larger(x, np.full(60, special)) == expected).all()


def test_a_rounding_keeps_what_it_gave() -> None:
    def rounded(x: Any) -> Any:
        return FIELD.rounded("bf16", np.asarray, x)

    x = drawn(200)
    once = rounded(x)
    assert (rounded(once) == once).all()
    assert 20 < (once == x).sum() < 80  # one in four is kept
    assert (rounded(np.array([ZERO, ONE, MINUS])) == np.array([ZERO, ONE, MINUS])).all()


def test_a_function_gives_equal_results_of_equal_operands() -> None:
    x = drawn(20)
    y = FIELD.subtract(FIELD.add(x, x), x)
    assert (FIELD.function("sin", np.sin, x) == FIELD.function("sin", np.sin, y)).all()
    assert (FIELD.function("sin", np.sin, x) != FIELD.function("cos", np.cos, x)).all()
    assert FIELD.function("cos", np.cos, np.array([ZERO])).tolist() == [ONE]
    assert FIELD.function("sqrt", np.sqrt, FIELD.name(np.array([9.0]))) == encode(np.array([3.0]))


def test_what_hangs_on_an_undefined_number_changes_with_the_coins() -> None:
    field, x = Field((1,)), np.full(64, UNDEFINED)
    outcomes = []
    for toss in range(2):
        field.toss(toss)
        assert not field.tossed
        outcomes.append(field.compare(np.equal, x, x))
        assert field.tossed
    assert (outcomes[0] != outcomes[1]).all()
    field.toss(0)
    field.compare(np.less, drawn(9), drawn(9))
    assert not field.tossed
