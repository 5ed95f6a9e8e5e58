"""Which lanes mean something: whether bounds always hold, follow from one another, and what lanes outside them hold.

One algebra: every end of a bound is a *slack*, an integer form that is at least zero where the bound holds, so that
"always holds" and "follows from" are both `never_negative` of a form. Proofs are sound and simple: an axis stands at
the end of its range that makes the form smallest, and what is left must cancel syntactically or be a sum of
non-negative terms.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kdsl.analysis.constants import evaluate, number, same_bits
from kdsl.ir.dtypes import BOOL
from kdsl.ir.expr import FUNCTIONS, Atom, Expr, Function, IntLike, Symbol, symbol, wrap
from kdsl.ir.kernel import Bound, Kernel, Op, walk
from kdsl.ir.meaning import Array

Interval = tuple[int, int]

# -- integer forms -------------------------------------------------------------------------------------------------


def interval(kernel: Kernel, form: Expr) -> Interval | None:
    """The least and the greatest value of a form over all lanes of all programs, or None where a size is not bound.

    Exact for a form that is linear in axes whose extents are constant; otherwise it may be too wide. Where an axis has
    no points at all, the form has no values and the interval means nothing.
    """
    low = high = 0
    for monomial, coefficient in form.terms:
        ends: Interval = (coefficient, coefficient)
        for atom in monomial:
            other = _atom_interval(kernel, atom)
            if other is None:
                return None
            corners = [a * b for a in ends for b in other]
            ends = min(corners), max(corners)
        low, high = low + ends[0], high + ends[1]
    return low, high


def _atom_interval(kernel: Kernel, atom: Atom) -> Interval | None:
    if isinstance(atom, Symbol):
        extents = {axis.name: axis.extent for axis in kernel.axes}
        points = interval(kernel, extents[atom.name]) if atom.name in extents else None
        return None if points is None else (0, max(0, points[1] - 1))
    arguments = [interval(kernel, argument) for argument in atom.arguments]
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


def never_negative(kernel: Kernel, form: Expr) -> bool:
    """Whether the form is provably at least zero for every point of every axis, and all sizes that the kernel takes."""
    ends = interval(kernel, form)
    if ends is not None and ends[0] >= 0:
        return True
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
    return any(_sum_of_non_negatives(kernel, form.substitute(facts)) for facts in _divisibility(kernel))


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


# -- bounds --------------------------------------------------------------------------------------------------------


def slacks(bound: Bound) -> list[Expr]:
    """The forms that are all at least zero exactly where the bound holds."""
    found: list[Expr] = []
    if bound.lower is not None:
        found += [bound.form - end for end in _ends("max", bound.lower)]
    if bound.upper is not None:
        found += [end - bound.form - 1 for end in _ends("min", bound.upper)]
    return found


def _ends(name: str, end: Expr) -> Sequence[Expr]:
    """`f < min(a, b)` is `f < a and f < b`; so for max below."""
    if len(end.terms) == 1 and end.terms[0][1] == 1 and len(end.terms[0][0]) == 1:
        (atom,) = end.terms[0][0]
        if isinstance(atom, Function) and atom.name == name:
            return atom.arguments
    return (end,)


def holds_always(kernel: Kernel, bounds: Iterable[Bound]) -> bool:
    """Whether the bounds provably hold on every lane of every program."""
    return all(never_negative(kernel, slack) for bound in bounds for slack in slacks(bound))


def follows(kernel: Kernel, conclusion: Bound, premise: Bound) -> bool:
    """Whether the conclusion provably holds wherever the premise does."""
    return all(
        never_negative(kernel, wanted) or any(never_negative(kernel, wanted - given) for given in slacks(premise))
        for wanted in slacks(conclusion)
    )


def simplify(kernel: Kernel, bounds: Iterable[Bound]) -> tuple[Bound, ...]:
    """Bounds that hold on the same lanes: without ends that always hold or that follow from another."""
    sides = [
        side
        for bound in bounds
        for side in (Bound(bound.form, bound.lower), Bound(bound.form, None, bound.upper))
        if slacks(side) and not holds_always(kernel, [side])
    ]
    kept: list[Bound] = []
    for side in sides:
        if not any(follows(kernel, side, other) for other in kept):
            kept = [other for other in kept if not follows(kernel, other, side)] + [side]
    merged: list[Bound] = []
    for side in kept:
        # A lower and an upper end of one form are one bound again, as the author wrote them.
        for place, other in enumerate(merged):
            if other.form == side.form and (other.lower is None, side.lower is None) in ((True, False), (False, True)):
                lower, upper = (side, other) if other.lower is None else (other, side)
                merged[place] = Bound(side.form, lower.lower, upper.upper)
                break
        else:
            merged.append(side)
    return tuple(merged)


# -- padding -------------------------------------------------------------------------------------------------------

# Ops that every target computes as the table does; of others only exp of -inf is relied on.
_ROUNDED = {"add", "sub", "mul", "cast"}
_EXACT = {"maximum", "minimum", "and", "or", "xor", "not", "eq", "ne", "lt", "le", "gt", "ge", "neg", "abs"}


def _exact_everywhere(op: Op, operands: Sequence[Array]) -> bool:
    """Whether a target's result is the table's, so that a pad lane's value may be relied on."""
    return op.name in _ROUNDED | _EXACT or (op.name in ("exp", "exp2") and bool(np.isneginf(operands[0])))


@dataclass
class Padding:
    """What values are known to hold in lanes where bounds fail. For kernels whose loads have explicit bounds.

    `fills` are fills of loads by result name, tried in place of their own.
    """

    kernel: Kernel
    fills: Mapping[str, Any] = field(default_factory=dict)
    _outside: dict[Expr, dict[str, Array]] = field(default_factory=dict)

    def constant(self, name: str, bounds: Iterable[Bound]) -> Array | None:
        """The one number (a 0-d array of the value's dtype) in all lanes where any of the bounds fails, or None."""
        found: list[Array] = []
        for slack in (slack for bound in bounds for slack in slacks(bound)):
            known = self._where_negative(slack).get(name)
            if known is None:
                return None
            found.append(known)
        return found[0] if found and all(same_bits(found[0], other) for other in found) else None

    def _where_negative(self, slack: Expr) -> dict[str, Array]:
        """What is known of every value in lanes where the slack is negative."""
        if slack not in self._outside:
            known: dict[str, Array] = {}
            for op in walk(self.kernel.body):
                if len(op.results) == 1 and not op.regions:
                    number = self._number(op, slack, known)
                    if number is not None:
                        known[op.result.name] = number
            self._outside[slack] = known
        return self._outside[slack]

    def _number(self, op: Op, slack: Expr, known: Mapping[str, Array]) -> Array | None:
        if op.name == "constant":
            return evaluate(op, [])
        if op.name in ("load", "in_bounds"):
            fill = False if op.name == "in_bounds" else self.fills.get(op.result.name, op.attributes.get("fill"))
            if fill is None or not self._fails(op.attributes.get("bounds", ()), slack):
                return None
            return number(fill, op.result.dtype)
        operands = [known.get(value.name) for value in op.operands]
        if op.name == "broadcast":
            return operands[0]
        if op.name == "select":
            condition, yes, no = operands
            return _selected(condition, yes, no)
        if op.name == "and" and op.result.dtype == BOOL and any(held is not None and not held for held in operands):
            return np.asarray(False)
        given = [operand for operand in operands if operand is not None]
        if len(given) < len(operands) or not given or not _exact_everywhere(op, given):
            return None
        return evaluate(op, given)

    def _fails(self, bounds: Iterable[Bound], slack: Expr) -> bool:
        """Whether one of the bounds fails wherever the slack is negative: whether the slack follows from it."""
        return any(never_negative(self.kernel, slack - own) for bound in bounds for own in slacks(bound))


def _selected(condition: Array | None, yes: Array | None, no: Array | None) -> Array | None:
    if condition is not None:
        return yes if condition else no
    return yes if yes is not None and no is not None and same_bits(yes, no) else None
