"""How often a loop runs whose trip count varies over lanes: as often as the longest lane needs. Part of `batch`."""

from __future__ import annotations

from kdsl.analysis.ranges import never_negative
from kdsl.ir.expr import Atom, Expr, Symbol, function
from kdsl.ir.kernel import Kernel


def longest(kernel: Kernel, extent: Expr, lane: str) -> Expr | None:
    """The greatest value that a trip count has in any valid lane; None where it neither grows nor falls with the lane,
    or varies over other lanes, too."""
    lanes = kernel.axis(lane)
    last = lanes.extent - 1
    for bound in lanes.bounds:  # lane + rest < limit
        if bound.upper is None or bound.form.coefficient(lane) is None:
            return None
        last = function("min", last, bound.upper - 1 - bound.form.without([lane]))
    way = _direction(kernel, extent, lane)
    if way is None:
        return None
    most = extent.substitute({lane: last if way > 0 else 0})
    return None if any(kernel.axis(name).kind == "tile" for name in kernel.order(most.symbols)) else most


def _direction(kernel: Kernel, form: Expr, name: str) -> int | None:
    """Whether a form grows (1), falls (-1) or stays (0) as the symbol grows; None where that is not clear."""
    found = {0}
    for monomial, coefficient in form.terms:
        moving = [atom for atom in monomial if name in Expr((((atom,), 1),)).symbols]
        rest = Expr(((tuple(atom for atom in monomial if atom not in moving), 1),))
        if not moving:
            continue
        way = _atom_direction(kernel, moving[0], name)
        if len(moving) > 1 or way is None or not never_negative(kernel, rest):
            return None
        found.add(way if coefficient > 0 else -way)
    return None if found >= {1, -1} else sum(found)


def _atom_direction(kernel: Kernel, atom: Atom, name: str) -> int | None:
    if isinstance(atom, Symbol):
        return 1
    arguments = atom.arguments
    if atom.name == "mod":
        return None
    if atom.name in ("cdiv", "floordiv"):
        if name in arguments[1].symbols or not never_negative(kernel, arguments[1]):
            return None
        arguments = arguments[:1]
    ways = [_direction(kernel, argument, name) for argument in arguments]
    known = {way for way in ways if way is not None}
    return None if None in ways or known >= {1, -1} else sum(known)
