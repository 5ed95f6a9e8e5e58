"""Integer forms over all points of a kernel's axes: their least and greatest values, signs and known divisors.

Proofs are sound and simple: an axis stands at the end of its range that makes the form smallest, and what is left must
cancel syntactically or be a sum of non-negative terms, where a quotient times its divisor counts as its numerator give
or take a remainder. Nothing here looks at bounds unless they are given as premises.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdsl.ir.expr import FUNCTIONS, Atom, Expr, Function, IntLike, Symbol, function, symbol, wrap
from kdsl.ir.kernel import Constraint, Kernel

Interval = tuple[int, int]


def interval(kernel: Kernel, form: Expr, known: Mapping[str, Interval] | None = None) -> Interval | None:
    """The least and the greatest value of a form over all lanes of all programs, or None where a size is not bound.

    `known` has the ends of symbols that are no axes, or that go before an axis's own. Exact for a form that is linear
    in axes whose extents are constant; otherwise it may be too wide. Where an axis has no points at all, the form has
    no values and the interval means nothing.
    """
    low = high = 0
    for monomial, coefficient in form.terms:
        ends: Interval = (coefficient, coefficient)
        for atom in monomial:
            other = _atom_interval(kernel, atom, known or {})
            if other is None:
                return None
            corners = [a * b for a in ends for b in other]
            ends = min(corners), max(corners)
        low, high = low + ends[0], high + ends[1]
    return low, high


def _atom_interval(kernel: Kernel, atom: Atom, known_symbols: Mapping[str, Interval]) -> Interval | None:
    if isinstance(atom, Symbol):
        if atom.name in known_symbols:
            return known_symbols[atom.name]
        extent = next((axis.extent for axis in kernel.axes if axis.name == atom.name), None)
        points = None if extent is None else interval(kernel, extent, known_symbols)
        return None if points is None else (0, max(0, points[1] - 1))
    arguments = [interval(kernel, argument, known_symbols) for argument in atom.arguments]
    known = [ends for ends in arguments if ends is not None]
    if len(known) < len(arguments):
        return None
    if atom.name in ("cdiv", "floordiv", "mod"):
        (low, high), (divisor, same) = known
        if divisor != same or divisor <= 0:
            return None
        if atom.name == "mod":
            one_period = low // divisor == high // divisor
            return (low % divisor, high % divisor) if one_period else (0, divisor - 1)
        known = [(low, high), (divisor, divisor)]
    # min, max and next_pow2 grow with every argument, a quotient with its numerator.
    function = FUNCTIONS[atom.name]
    return int(function(*(low for low, _ in known))), int(function(*(high for _, high in known)))


def _is_exact(kernel: Kernel, form: Expr) -> bool:
    """Whether the interval of the form has values of the form for ends."""
    return form.affine is not None and all(
        axis.extent.constant is not None for axis in kernel.axes if axis.name in form.symbols
    )


def never_negative(kernel: Kernel, form: Expr) -> bool:
    """Whether the form is provably at least zero for every point of every axis, and all sizes that the kernel takes."""
    ends = interval(kernel, form)
    if ends is not None and (ends[0] >= 0 or _is_exact(kernel, form)):
        return ends[0] >= 0
    for monomial, coefficient in form.terms:
        if len(monomial) == 1 and isinstance(monomial[0], Function) and monomial[0].name in ("min", "max"):
            rest = form - Expr(((monomial, coefficient),))
            choices = (never_negative(kernel, rest + argument * coefficient) for argument in monomial[0].arguments)
            return all(choices) if (monomial[0].name == "min") == (coefficient > 0) else any(choices)
    # Tile axes before loops before programs: an extent may depend on axes of the kinds that come earlier.
    for axis in reversed(kernel.axes):
        if axis.name not in form.symbols:
            continue
        slope = form.coefficient(axis.name)
        if slope is None:
            return False
        if never_negative(kernel, slope):
            return never_negative(kernel, form.substitute({axis.name: 0}))
        if never_negative(kernel, -slope):
            return never_negative(kernel, form.substitute({axis.name: axis.extent - 1}))
        return False
    return any(
        _sum_of_non_negatives(kernel, lower)
        for facts in _divisibility(kernel)
        for lower in _at_most(kernel, form.substitute(facts))
    )


def _at_most(kernel: Kernel, form: Expr) -> Iterator[Expr]:
    """The form and others that are nowhere greater: quotients times their divisor, and powers of two, estimated."""
    yield form
    for monomial, coefficient in form.terms:
        for place, atom in enumerate(monomial):
            if isinstance(atom, Symbol) or atom.name not in ("cdiv", "floordiv", "next_pow2"):
                continue
            factor = Expr(((monomial[:place] + monomial[place + 1 :], coefficient),))
            estimate = _estimate(kernel, atom, factor, above=coefficient < 0)
            if estimate is not None:
                yield from _at_most(kernel, form - Expr(((monomial, coefficient),)) + estimate)


def _estimate(kernel: Kernel, atom: Function, factor: Expr, above: bool) -> Expr | None:
    """A form no greater than factor * atom, where the factor is at most zero if `above`, else at least zero."""
    if atom.name == "next_pow2":
        return factor * atom.arguments[0] if not above and _sum_of_non_negatives(kernel, factor) else None
    numerator, divisor = atom.arguments
    times = function("floordiv", factor, divisor)
    if times * divisor != factor or not _sum_of_non_negatives(kernel, divisor):
        return None
    if not _sum_of_non_negatives(kernel, -times if above else times):
        return None
    # b*cdiv(a, b) is at least a and at most a + b - 1; b*floordiv(a, b) at least a - b + 1 and at most a.
    if atom.name == "cdiv":
        return times * (numerator + divisor - 1 if above else numerator)
    return times * (numerator if above else numerator - divisor + 1)


def _sum_of_non_negatives(kernel: Kernel, form: Expr) -> bool:
    tiles = {tile.name for tile in kernel.tiles}
    least = 0
    for monomial, coefficient in form.terms:
        if not monomial:
            least += coefficient
        elif coefficient < 0 or not all(_atom_never_negative(atom) for atom in monomial):
            return False
        elif all(isinstance(atom, Symbol) and atom.name in tiles for atom in monomial):
            least += coefficient  # a tile size is at least 1
    return least >= 0


def _atom_never_negative(atom: Atom) -> bool:
    """Sizes and tile parameters are; so are functions of such. Only for forms in which no axis is left."""
    if isinstance(atom, Symbol) or atom.name == "next_pow2":
        return True
    return all(
        coefficient >= 0 and all(map(_atom_never_negative, monomial))
        for argument in atom.arguments
        for monomial, coefficient in argument.terms
    )


def _divisibility(kernel: Kernel) -> Iterable[Mapping[str, IntLike]]:
    """Ways to write sizes as multiples, from constraints `mod(N, c) == 0`: N = c*q for a new symbol q."""
    multiples: dict[str, list[Expr]] = {}
    for constraint in kernel.constraints:
        atoms = [atom for monomial, _ in constraint.left.terms for atom in monomial]
        if constraint.comparison != "==" or constraint.right != wrap(0) or len(atoms) != 1:
            continue
        (atom,) = atoms
        if isinstance(atom, Function) and atom.name == "mod" and constraint.left.terms[0][1] == 1:
            size, divisor = atom.arguments
            names = [name for name in size.symbols if size == symbol(name) and name not in divisor.symbols]
            for name in names:
                multiples.setdefault(name, []).append(divisor * symbol(f"{name}/({divisor})"))
    for choice in itertools.product(*multiples.values()):
        yield dict(zip(multiples, choice, strict=True))


def never_negative_if(kernel: Kernel, form: Expr, premises: Sequence[Expr]) -> bool:
    """Whether the form is provably at least zero wherever all the premises are: by itself, or less one or two of them.

    Proven from what `never_negative` proves, the premises, and the kernel's constraints on its sizes.
    """
    given = [*premises, *(slack for constraint in kernel.constraints for slack in _slacks(constraint))]
    if never_negative(kernel, form):
        return True
    for place, one in enumerate(given):
        if _cancels(one, form):
            rest = form - one
            others = (other for other in given[place:] if _cancels(other, rest))
            if never_negative(kernel, rest) or any(never_negative(kernel, rest - other) for other in others):
                return True
    return False


def _cancels(premise: Expr, form: Expr) -> bool:
    """Whether taking the premise off shrinks a term of the form: else it cannot help."""
    terms = dict(form.terms)
    return any(monomial and coefficient * terms.get(monomial, 0) > 0 for monomial, coefficient in premise.terms)


def _slacks(constraint: Constraint) -> list[Expr]:
    """Forms that are at least zero because the constraint holds."""
    difference = constraint.right - constraint.left
    return {
        "<=": [difference],
        "<": [difference - 1],
        ">=": [-difference],
        ">": [-difference - 1],
        "==": [difference, -difference],
        "!=": [],
    }[constraint.comparison]


def divisor(kernel: Kernel, form: Expr) -> int:
    """The largest integer that is known to divide every value of the form; 0 if the form is the constant 0.

    Known from coefficients, and from constraints `mod(N, c) == 0` for an integer c.
    """
    multiples: dict[str, int] = {}
    for facts in _divisibility(kernel):
        for name, multiple in facts.items():
            terms = wrap(multiple).terms
            if len(terms) == 1 and len(terms[0][0]) == 1:
                multiples[name] = math.lcm(multiples.get(name, 1), terms[0][1])
    found = 0
    for monomial, coefficient in form.terms:
        factors = (multiples.get(atom.name, 1) for atom in monomial if isinstance(atom, Symbol))
        found = math.gcd(found, coefficient * math.prod(factors))
    return found


def fits(kernel: Kernel, form: Expr, bits: int) -> bool:
    """Whether every value of the form provably fits a signed integer of that many bits. For bound kernels.

    The value alone: intermediate results of an evaluation in another order may not.
    """
    ends = interval(kernel, form)
    return ends is not None and -(2 ** (bits - 1)) <= ends[0] and ends[1] < 2 ** (bits - 1)
