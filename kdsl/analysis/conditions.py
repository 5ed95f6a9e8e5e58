"""Conditions as bounds: which bools say no more than that an integer form lies between two others."""

from __future__ import annotations

from collections.abc import Callable

from kdsl.ir.dtypes import I32, I64
from kdsl.ir.expr import Expr, wrap
from kdsl.ir.kernel import Bound, Op

_COMPARISONS: dict[str, Callable[[Expr, Expr], Bound]] = {
    "lt": lambda a, b: Bound(a, None, b),
    "le": lambda a, b: Bound(a, None, b + 1),
    "gt": lambda a, b: Bound(a, b + 1),
    "ge": lambda a, b: Bound(a, b),
    "eq": lambda a, b: Bound(a, b, b + 1),
}


class Conditions:
    """What is known of the ops noted so far, in order, by the names of their results."""

    def __init__(self) -> None:
        self._forms: dict[str, Expr] = {}
        self._bounds: dict[str, tuple[Bound, ...]] = {}

    def note(self, op: Op) -> None:
        names = [value.name for value in op.operands]
        if op.name == "index":
            self._forms[op.result.name] = op.attributes["form"]
        elif op.name == "constant" and op.result.dtype in (I32, I64):
            self._forms[op.result.name] = wrap(op.attributes["value"])
        elif op.name == "in_bounds":
            self._bounds[op.result.name] = op.attributes["bounds"]
        elif op.name == "and" and all(name in self._bounds for name in names):
            self._bounds[op.result.name] = tuple(bound for name in names for bound in self._bounds[name])
        elif op.name in _COMPARISONS and all(name in self._forms for name in names):
            self._bounds[op.result.name] = (_COMPARISONS[op.name](*(self._forms[name] for name in names)),)

    def bounds(self, name: str) -> tuple[Bound, ...] | None:
        """The bounds that all hold exactly where the value is true, or None."""
        return self._bounds.get(name)


def negated(bounds: tuple[Bound, ...] | None) -> tuple[Bound, ...] | None:
    """The bound that holds exactly where these do not, if there is one."""
    if bounds is None or len(bounds) != 1 or (bounds[0].lower is None) == (bounds[0].upper is None):
        return None
    (bound,) = bounds
    return (Bound(bound.form, bound.upper) if bound.lower is None else Bound(bound.form, None, bound.lower),)
