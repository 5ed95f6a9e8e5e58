"""Symbolic integers: extents, index forms and bounds, kept as polynomials in canonical form.

An `Expr` is a sum of integer multiples of products of atoms. An atom is a symbol (a size, a tile parameter, an axis)
or a function that is no polynomial: `cdiv floordiv mod min max next_pow2`. Two expressions are equal when their
canonical forms are: nothing cleverer, so that what a pass may rely on is what a reader can see.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union

IntLike = Union["Expr", int]


@dataclass(frozen=True, order=True)
class Symbol:
    """A named integer. Axes, sizes and tile parameters share one name space within a kernel."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Function:
    """An integer function of expressions that no polynomial states."""

    name: str
    arguments: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


Atom = Symbol | Function
Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class Expr:
    """A polynomial: `terms` pairs each product of atoms with its integer coefficient, in printing order."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: IntLike) -> Expr:
        total = dict(self.terms)
        for monomial, coefficient in wrap(other).terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return _canonical(total)

    def __radd__(self, other: int) -> Expr:
        return self + other

    def __neg__(self) -> Expr:
        return Expr(tuple((monomial, -coefficient) for monomial, coefficient in self.terms))

    def __sub__(self, other: IntLike) -> Expr:
        return self + (-wrap(other))

    def __rsub__(self, other: int) -> Expr:
        return wrap(other) - self

    def __mul__(self, other: IntLike) -> Expr:
        total: dict[Monomial, int] = {}
        for left, left_coefficient in self.terms:
            for right, right_coefficient in wrap(other).terms:
                monomial = tuple(sorted(left + right, key=str))
                total[monomial] = total.get(monomial, 0) + left_coefficient * right_coefficient
        return _canonical(total)

    def __rmul__(self, other: int) -> Expr:
        return self * other

    def __floordiv__(self, other: IntLike) -> Expr:
        return function("floordiv", self, other)

    def __mod__(self, other: IntLike) -> Expr:
        return function("mod", self, other)

    @cached_property
    def constant(self) -> int | None:
        """The integer it is, or None when it depends on a symbol."""
        if not self.terms:
            return 0
        (monomial, coefficient), *rest = self.terms
        return coefficient if not monomial and not rest else None

    @cached_property
    def affine(self) -> tuple[int, dict[str, int]] | None:
        """Its constant and the coefficients of its symbols, or None when it is no sum of such terms."""
        constant, coefficients = 0, {}
        for monomial, coefficient in self.terms:
            if not monomial:
                constant = coefficient
            elif len(monomial) == 1 and isinstance(monomial[0], Symbol):
                coefficients[monomial[0].name] = coefficient
            else:
                return None
        return constant, coefficients

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of all symbols in it, also inside functions."""
        names: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, Symbol):
                    names.add(atom.name)
                else:
                    names.update(*(argument.symbols for argument in atom.arguments))
        return frozenset(names)

    def coefficient(self, name: str) -> Expr | None:
        """What multiplies the symbol, or None when the expression is not linear in it."""
        total: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms:
            rest = tuple(atom for atom in monomial if atom != Symbol(name))
            if any(name in Expr((((atom,), 1),)).symbols for atom in rest) or len(monomial) - len(rest) > 1:
                return None
            if len(rest) < len(monomial):
                total[rest] = total.get(rest, 0) + coefficient
        return _canonical(total)

    def without(self, names: Iterable[str]) -> Expr:
        """The terms in which none of the symbols occurs."""
        gone = set(names)
        return Expr(tuple(term for term in self.terms if not Expr((term,)).symbols & gone))

    def substitute(self, values: Mapping[str, IntLike]) -> Expr:
        """The expression with symbols replaced, folded again."""
        if not self.symbols & values.keys():
            return self

        def replace(atom: Atom) -> Expr:
            if isinstance(atom, Symbol):
                return wrap(values[atom.name]) if atom.name in values else Expr((((atom,), 1),))
            return function(atom.name, *(argument.substitute(values) for argument in atom.arguments))

        total = wrap(0)
        for monomial, coefficient in self.terms:
            product = wrap(coefficient)
            for atom in monomial:
                product = product * replace(atom)
            total = total + product
        return total

    def evaluate(self, environment: Mapping[str, Any]) -> Any:
        """Its value where the environment gives an int or an integer array (broadcast together) for each symbol."""
        total: Any = 0
        for monomial, coefficient in self.terms:
            product: Any = coefficient
            for atom in monomial:
                if isinstance(atom, Symbol):
                    product = product * environment[atom.name]
                else:
                    arguments = [argument.evaluate(environment) for argument in atom.arguments]
                    product = product * FUNCTIONS[atom.name](*arguments)
            total = total + product
        return total

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            sign = " - " if coefficient < 0 else " + "
            factors = [str(abs(coefficient))] if abs(coefficient) != 1 or not monomial else []
            factors += [str(atom) for atom in monomial]
            text += (sign if text else "-" if coefficient < 0 else "") + "*".join(factors)
        return text or "0"


def _minimum(*arguments: Any) -> Any:
    return _extreme(min, "minimum", arguments)


def _maximum(*arguments: Any) -> Any:
    return _extreme(max, "maximum", arguments)


def _extreme(scalar: Callable[..., Any], ufunc: str, arguments: tuple[Any, ...]) -> Any:
    if all(isinstance(argument, int) for argument in arguments):
        return scalar(arguments)
    import numpy as np

    result = arguments[0]
    for argument in arguments[1:]:
        result = getattr(np, ufunc)(result, argument)
    return result


def _next_pow2(value: Any) -> Any:
    if not isinstance(value, int):
        import numpy as np

        return np.vectorize(_next_pow2, otypes=[np.int64])(np.asarray(value).astype(object))
    return 1 << max(0, value - 1).bit_length()


# Division by zero stays Python's error: a size of zero is a valid shape but never a divisor.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cdiv": lambda a, b: -(-a // b),
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": _minimum,
    "max": _maximum,
    "next_pow2": _next_pow2,
}


# How many arguments each takes; None for any number.
_ARITY = {"cdiv": 2, "floordiv": 2, "mod": 2, "min": None, "max": None, "next_pow2": 1}


def wrap(value: IntLike) -> Expr:
    """An Expr of an int, or the Expr itself. Raises TypeError for what is no integer."""
    if isinstance(value, Expr):
        return value
    number = operator.index(value)
    return Expr((((), number),)) if number else Expr(())


def symbol(name: str) -> Expr:
    """The expression that is one symbol."""
    return Expr((((Symbol(name),), 1),))


def function(name: str, *arguments: IntLike) -> Expr:
    """A function of expressions, folded where constants or a common factor allow.

    Raises ZeroDivisionError for a division by the constant zero, KeyError for an unknown function, ValueError for a
    wrong number of arguments.
    """
    wrapped = [wrap(argument) for argument in arguments]
    if not wrapped or _ARITY[name] not in (None, len(wrapped)):
        raise ValueError(f"{name} does not take {len(wrapped)} arguments")
    if name in ("min", "max"):
        return _fold_extreme(name, wrapped)
    constants = [argument.constant for argument in wrapped]
    if all(constant is not None for constant in constants):
        return wrap(int(FUNCTIONS[name](*constants)))
    if name in ("cdiv", "floordiv", "mod"):
        if constants[1] == 0:
            raise ZeroDivisionError(f"{name} of {wrapped[0]} by zero")
        quotient = _divide_exactly(wrapped[0], wrapped[1])
        if quotient is not None:
            return wrap(0) if name == "mod" else quotient
    return Expr((((Function(name, tuple(wrapped)),), 1),))


def cdiv(numerator: IntLike, denominator: IntLike) -> Expr:
    """Division rounded up: how many tiles of `denominator` cover `numerator`."""
    return function("cdiv", numerator, denominator)


def _divide_exactly(numerator: Expr, denominator: Expr) -> Expr | None:
    """numerator / denominator when the denominator is one term that divides every term of the numerator."""
    if len(denominator.terms) != 1:
        return None
    (divisor, divisor_coefficient) = denominator.terms[0]
    total: dict[Monomial, int] = {}
    for monomial, coefficient in numerator.terms:
        rest = list(monomial)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if coefficient % divisor_coefficient:
            return None
        total[tuple(rest)] = coefficient // divisor_coefficient
    return _canonical(total)


def _fold_extreme(name: str, arguments: list[Expr]) -> Expr:
    """min or max, flattened, with those dropped that differ from a kept one by a constant the wrong way."""
    flat: list[Expr] = []
    for argument in arguments:
        atom = argument.terms[0][0][0] if len(argument.terms) == 1 and len(argument.terms[0][0]) == 1 else None
        if isinstance(atom, Function) and atom.name == name and argument.terms[0][1] == 1:
            flat.extend(atom.arguments)
        else:
            flat.append(argument)
    kept: list[Expr] = []
    for argument in flat:
        if any(_dominates(name, other, argument) for other in kept):
            continue
        kept = [other for other in kept if not _dominates(name, argument, other)] + [argument]
    if len(kept) == 1:
        return kept[0]
    return Expr((((Function(name, tuple(sorted(kept, key=str))),), 1),))


def _dominates(name: str, winner: Expr, loser: Expr) -> bool:
    difference = (winner - loser).constant
    return difference is not None and (difference <= 0 if name == "min" else difference >= 0)


def _canonical(terms: Mapping[Monomial, int]) -> Expr:
    """Zero terms dropped; longer products first, then by name, the constant last: the order a person writes."""
    kept = [(monomial, coefficient) for monomial, coefficient in terms.items() if coefficient]
    return Expr(tuple(sorted(kept, key=lambda term: (-len(term[0]), [str(atom) for atom in term[0]]))))
