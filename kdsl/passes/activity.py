"""with_activity: loops whose trip count varies over lanes run as often as the longest lane needs.

A lane that is through keeps what it carries (a select), and touches no memory (a bound). Part of `batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kdsl.analysis.ranges import never_negative
from kdsl.diagnostics import KdslError, Location
from kdsl.ir.dtypes import BOOL
from kdsl.ir.expr import Atom, Expr, Symbol, function, symbol
from kdsl.ir.kernel import Bound, Kernel, Op, Region, Value
from kdsl.ir.ops import OPS
from kdsl.ir.rewrite import Rewriter

Refuse = Callable[[Location | None, str], KdslError]


def with_activity(kernel: Kernel, lane: str, refuse: Refuse) -> Kernel:
    """The kernel with no loop extent that mentions the lane; types are to be inferred anew.

    `refuse` makes the error for a trip count that neither grows nor falls with the lane, and for what a lane that is
    through cannot be kept from doing.
    """
    varying = {axis.name: axis.extent for axis in kernel.axes if axis.kind == "loop" and lane in axis.extent.symbols}
    if not varying:
        return kernel
    return _Activity(kernel, lane, varying, refuse).run()


class _Activity(Rewriter):
    """`around` are the bounds that say which lanes are still in the loops around an op."""

    def __init__(self, kernel: Kernel, lane: str, varying: dict[str, Expr], refuse: Refuse) -> None:
        super().__init__(kernel)
        self.lane, self.refuse = lane, refuse
        self.bounds = {name: Bound(symbol(name), None, extent) for name, extent in varying.items()}
        self.around: list[Bound] = []
        axes = (
            replace(axis, extent=self.longest(axis.extent)) if axis.name in varying else axis for axis in kernel.axes
        )
        self.kernel = replace(kernel, axes=tuple(axes))

    def longest(self, extent: Expr) -> Expr:
        """The greatest extent of any valid lane."""
        lanes = self.kernel.axis(self.lane)
        last = lanes.extent - 1
        for bound in lanes.bounds:  # lane + rest < limit
            assert bound.upper is not None
            last = function("min", last, bound.upper - 1 - bound.form.without([self.lane]))
        way = _direction(self.kernel, extent, self.lane)
        if way is None:
            raise self.refuse(None, f"the trip count {extent} neither grows nor falls with the lane")
        return extent.substitute({self.lane: last if way > 0 else 0})

    def region(self, region: Region) -> Region:
        ops: list[Op] = []
        for op in region.ops:
            bound = self.bounds.get(op.attributes["axis"]) if op.name == "for" else None
            self.around += [bound] if bound is not None else []
            regions = tuple(self.region(inner) for inner in op.regions)
            if bound is not None:
                self.around.pop()
                regions = (self.keep(regions[0], bound, op),)
            ops += self.visit(replace(op, regions=regions))
        return replace(region, ops=tuple(ops))

    def keep(self, body: Region, bound: Bound, loop: Op) -> Region:
        """The body of a loop in which lanes that are through keep what they carry."""
        *ops, final = body.ops
        inside = Value(self.fresh("active"), BOOL)
        ops.append(Op("in_bounds", (), (inside,), {"bounds": (bound,)}, location=loop.location))
        kept = []
        for argument, value in zip(body.arguments, final.operands, strict=True):
            kept.append(Value(self.fresh(value.name), value.dtype))
            ops.append(Op("select", (inside, value, argument), (kept[-1],), location=loop.location))
        return replace(body, ops=(*ops, replace(final, operands=tuple(kept))))

    def visit(self, op: Op) -> Sequence[Op]:
        if not self.around:
            return [op]
        effect = OPS[op.name].effect
        if op.name == "while" or (effect not in ("none", "define") and op.name not in ("load", "store")):
            raise self.refuse(op.location, f"{op.name} in a loop whose trip count varies over the lanes")
        # What does not vary over the lanes is read when any of them is in the loop; in two loops, no one lane may be.
        if op.name == "store" or (op.name == "load" and (self.varies(op) or len(self.around) > 1)):
            bounds = (*op.attributes.get("bounds", ()), *self.around)
            return [replace(op, attributes={**op.attributes, "bounds": bounds})]
        return [op]

    def varies(self, load: Op) -> bool:
        forms = [*load.attributes["index"], *load.attributes.get("bounds", ())]
        named = self.kernel.order(name for form in forms for name in form.symbols)
        return self.lane in self.kernel.with_validity(named)


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
