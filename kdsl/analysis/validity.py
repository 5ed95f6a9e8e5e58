"""Which lanes mean something: whether bounds always hold, follow from one another, and what lanes outside them hold.

One algebra: every end of a bound is a *slack*, an integer form that is at least zero where the bound holds, so that
"always holds" and "follows from" are both `never_negative` of a form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kdsl.analysis.constants import evaluate, number, same_bits
from kdsl.analysis.ranges import never_negative
from kdsl.ir.dtypes import BOOL
from kdsl.ir.expr import Expr, Function
from kdsl.ir.kernel import Bound, Kernel, Op, walk
from kdsl.ir.meaning import Array

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
