"""Predicated: types inferred anew after lanes came in; what only some of the lanes do is done by all, without effect.

Part of `batch`. A branch whose condition varies over lanes becomes both its branches and a select; a loop runs as often
as its longest lane needs, a while as long as any lane goes on, and lanes that are through keep what they carry. In
lanes that would not do it, memory is not touched: by a bound where the condition is one, else by a mask, for which a
box becomes an access at computed places (and those are not proven `disjoint`: batch such a kernel once, not twice).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kdsl.analysis.conditions import Conditions, negated
from kdsl.analysis.ranges import never_negative_if
from kdsl.analysis.validity import slacks
from kdsl.diagnostics import KdslError, Location
from kdsl.ir.dtypes import BOOL, I32
from kdsl.ir.expr import Expr, symbol
from kdsl.ir.kernel import Bound, Integer, Kernel, Op, Region, Value, walk
from kdsl.ir.ops import OPS
from kdsl.ir.rewrite import Retyper, unused_symbol
from kdsl.ir.type_rules import OpTypeError, axis_bounds, form_axes
from kdsl.passes.activity import longest

Refuse = Callable[[Location | None, str], KdslError]


@dataclass(frozen=True)
class Part:
    """A condition under which ops happen: its value, the bounds that say the same if there are such, and whether some
    lane is sure to meet it."""

    value: Value
    bounds: tuple[Bound, ...] | None
    some: bool


class Predicator(Retyper):
    """Types inferred anew; `refuse` makes the error, at an op's place, for what has no form with the lanes.

    `around` are the conditions of what is being visited. Those of a loop or a while hold from the op on that computes
    them (`starts`) to the end of the body.
    """

    declared = True

    def __init__(self, kernel: Kernel, lane: str, refuse: Refuse) -> None:
        super().__init__(kernel)
        self.lane, self.refuse = lane, refuse
        self.around: list[Part] = []
        self.starts: dict[str, Part] = {}
        self.trips = {axis.name: axis.extent for axis in kernel.axes if axis.kind == "loop"}
        self.counted: dict[str, tuple[Op, str]] = {}  # loop axes whose trip count is computed: for which loop, its name
        self.conditions = Conditions()

    def run(self) -> Kernel:
        kernel = super().run()
        # An axis over which nothing loops still has a trip count.
        axes = (
            replace(axis, extent=axis.extent.substitute({self.lane: 0})) if axis.kind == "loop" else axis
            for axis in kernel.axes
        )
        return replace(kernel, axes=tuple(axes))

    def region(self, region: Region) -> Region:
        outside = len(self.around)
        region = super().region(region)
        del self.around[outside:]
        return region

    def visit(self, op: Op) -> Sequence[Op]:
        try:
            rule = _RULES.get(op.name)
            ops = self.plain(op) if rule is None else rule(self, op)
        except OpTypeError as error:
            raise self.refuse(op.location, f"{op.name}: {error}") from None
        for value in op.results:
            if value.name in self.starts:
                self.around.append(self.starts[value.name])
        return ops

    def plain(self, op: Op) -> list[Op]:
        """The op as it is, with new types."""
        self.conditions.note(op)
        return list(super().visit(op))

    def lanes_of(self, value: Value) -> tuple[str, ...]:
        """The tile axes that a value varies over now."""
        return self.kernel.tile_axes(self.instead[value.name])

    def new(self, ops: list[Op], like: Op, name: str, operands: Sequence[Value], hint: str, **more: Any) -> Value:
        """Put an op behind others; operands are values of the kernel before, and so is its result."""
        dtype = more.pop("dtype", None)
        made = self.make(like, name, [self.instead[value.name] for value in operands], hint, dtype, **more)
        self.instead[made.result.name] = made.result
        ops.append(made)
        return made.result

    # -- branches ----------------------------------------------------------------------------------------------------

    def branch(self, op: Op) -> list[Op]:
        (condition,) = op.operands
        if not self.lanes_of(condition):
            return self.plain(op)
        ops: list[Op] = []
        bounds = self.conditions.bounds(condition.name)
        sides = [Part(condition, bounds, False)]
        sides.append(Part(self.new(ops, op, "not", (condition,), "otherwise"), negated(bounds), False))
        for part, region in zip(sides, op.regions, strict=True):
            self.around.append(part)
            for inner in region.ops[:-1]:
                ops += self.visit(inner)
            self.around.pop()
        yielded = (region.ops[-1].operands for region in op.regions)
        for result, then, otherwise in zip(op.results, *yielded, strict=True):
            ops += self.plain(Op("select", (condition, then, otherwise), (result,), location=op.location))
        return ops

    # -- loops -------------------------------------------------------------------------------------------------------

    def loop(self, op: Op) -> list[Op]:
        ops: list[Op] = []
        axis = op.attributes["axis"]
        extent = self.trips[axis]
        if not any(self.kernel.axis(name).kind == "tile" for name in self.kernel.order(extent.symbols)):
            return self.plain(op)
        direct = not extent.symbols & {integer.name for integer in self.kernel.integers}
        most = longest(self.kernel, extent, self.lane) if direct and self.lane in extent.symbols else None
        if most is None:
            most = self.count(op, axis, extent, ops)
        axes = (replace(each, extent=most) if each.name == axis else each for each in self.kernel.axes)
        self.kernel = replace(self.kernel, axes=tuple(axes))
        bounds = (Bound(symbol(axis), None, extent),)
        active = Value(self.fresh("active"), BOOL)
        self.starts[active.name] = Part(active, bounds, True)
        test = Op("in_bounds", (), (active,), {"bounds": bounds}, location=op.location)
        body = self.keeping(op.regions[0], active, (test,), op)
        return [*ops, *self.plain(replace(op, regions=(body,)))]

    def count(self, op: Op, axis: str, extent: Expr, ops: list[Op]) -> Expr:
        """Compute the greatest trip count of any lane, and name it."""
        loop, name = self.counted.setdefault(axis, (op, unused_symbol(self.kernel, f"{axis}_count")))
        if loop is not op:
            raise self.refuse(op.location, f"two loops over {axis}, whose trip count varies over the lanes")
        value = self.new(ops, op, "index", (), "trips", dtype=I32, form=extent)
        for lanes in self.lanes_of(value):
            value = self.new(ops, op, "reduce", (value,), "most", axis=lanes, combine="maximum")
        integers = [each for each in self.kernel.integers if each.name != name]
        self.kernel = replace(self.kernel, integers=(*integers, Integer(name, value.axes)))
        ops.append(Op("let", (value,), (), {"integer": name}, location=op.location))
        return symbol(name)

    def keeping(self, body: Region, active: Value, before: Sequence[Op], like: Op) -> Region:
        """The body, after other ops, where lanes that are not active keep what they carry."""
        *ops, final = body.ops
        kept = []
        for argument, value in zip(body.arguments, final.operands, strict=True):
            kept.append(Value(self.fresh(value.name), value.dtype))
            ops.append(Op("select", (active, value, argument), (kept[-1],), location=like.location))
        return replace(body, ops=(*before, *ops, replace(final, operands=tuple(kept))))

    def repeat(self, op: Op) -> list[Op]:
        """A while whose condition varies over lanes tests twice: whether any lane goes on, and in the body which."""
        test, body = op.regions
        *tests, final = test.ops
        (condition,) = final.operands
        for part in self.around:
            met = Value(self.fresh("goes_on"), BOOL)
            tests.append(Op("and", (condition, part.value), (met,), location=op.location))
            condition = met
        test = replace(test, ops=(*tests, replace(final, operands=(condition,))))
        try:
            return self.plain(replace(op, regions=(test, body)))
        except OpTypeError:
            lanes = self.lanes_of(condition)
            if not lanes:
                raise
        for inner in walk(Region((), tuple(tests))):
            if OPS[inner.name].effect not in ("none", "read"):
                raise self.refuse(inner.location, f"{inner.name} in the test of a while that only some lanes make")
        renamed = {old.name: new for old, new in zip(test.arguments, body.arguments, strict=True)}
        copied = [self.copied(inner, renamed) for inner in tests]
        goes_on = renamed[condition.name]
        self.starts[goes_on.name] = Part(goes_on, None, True)
        body = self.keeping(body, goes_on, copied, op)
        for name in lanes:
            any_lane = Value(self.fresh("any"), BOOL)
            attributes = {"axis": name, "combine": "or"}
            tests.append(Op("reduce", (condition,), (any_lane,), attributes, location=op.location))
            condition = any_lane
        test = replace(test, ops=(*tests, replace(final, operands=(condition,))))
        return self.plain(replace(op, regions=(test, body)))

    def copied(self, op: Op, renamed: dict[str, Value]) -> Op:
        """The op once more, with results of its own."""
        operands = tuple(renamed.get(value.name, value) for value in op.operands)
        regions = []
        for region in op.regions:
            renamed |= {v.name: replace(v, name=self.fresh(v.name)) for v in region.arguments}
            arguments = tuple(renamed[v.name] for v in region.arguments)
            regions.append(Region(arguments, tuple(self.copied(inner, renamed) for inner in region.ops)))
        renamed |= {value.name: replace(value, name=self.fresh(value.name)) for value in op.results}
        results = tuple(renamed[value.name] for value in op.results)
        return replace(op, operands=operands, results=results, regions=tuple(regions))

    # -- effects -----------------------------------------------------------------------------------------------------

    def mask(self, op: Op, ops: list[Op], own: Sequence[Value] = ()) -> Value:
        """Whether an op happens in each lane: all the conditions around it, and its own."""
        first, *others = (*own, *(part.value for part in self.around))
        for other in others:
            first = self.new(ops, op, "and", (first, other), "mask")
        return first

    def box(self, op: Op) -> list[Op]:
        """A load or a store of a box."""
        if not self.around or (op.name == "load" and self.may_read(op)):
            return self.plain(op)
        own = op.attributes.get("bounds", ())
        parts = [part.bounds for part in self.around]
        if None not in parts:
            bounds = (*own, *(bound for part in parts for bound in part or ()))
            return self.plain(replace(op, attributes={**op.attributes, "bounds": bounds}))
        ops: list[Op] = []
        places = [self.new(ops, op, "index", (), "place", dtype=I32, form=form) for form in op.attributes["index"]]
        inside = [self.new(ops, op, "in_bounds", (), "inside", bounds=own)] if own else []
        operands = (*op.operands, *places, self.mask(op, ops, inside))
        kept = {name: value for name, value in op.attributes.items() if name in ("buffer", "fill")}
        return [
            *ops,
            *self.plain(replace(op, name=f"{op.name}_at", operands=operands, attributes={**kept, "masked": True})),
        ]

    def may_read(self, op: Op) -> bool:
        """Whether a load is as good in lanes that would not do it: what is the same in all is read when any lane gets
        there, and what is inside the tensor anyhow does no harm."""
        forms, own = op.attributes["index"], op.attributes.get("bounds", ())
        axes = self.kernel.with_validity(form_axes(self.kernel, [*forms, *own]))
        if len(self.around) == 1 and self.around[0].some and self.lane not in axes:
            return True
        given = [slack for bound in (*own, *axis_bounds(self.kernel, axes)) for slack in slacks(bound)]
        if any(each.name in form.symbols for each in self.kernel.integers for form in forms):
            return False
        shape = self.kernel.buffer(op.attributes["buffer"]).shape
        ends = (end for form, size in zip(forms, shape, strict=True) for end in (form, size - 1 - form))
        return all(never_negative_if(self.kernel, end, given) for end in ends)

    def places(self, op: Op) -> list[Op]:
        """Access at computed places."""
        if not self.around:
            return self.plain(op)
        ops: list[Op] = []
        operands, own = (op.operands[:-1], op.operands[-1:]) if op.attributes.get("masked") else (op.operands, ())
        operands = (*operands, self.mask(op, ops, own))
        return [*ops, *self.plain(replace(op, operands=operands, attributes={**op.attributes, "masked": True}))]

    def check(self, op: Op) -> list[Op]:
        if not self.around:
            return self.plain(op)
        ops: list[Op] = []
        outside = self.new(ops, op, "not", (self.mask(op, ops),), "outside")
        holds = self.new(ops, op, "or", (*op.operands, outside), "holds")
        return [*ops, *self.plain(replace(op, operands=(holds,)))]

    def name(self, op: Op) -> list[Op]:
        """An integer varies over what its value does; where it is not named, it is 0."""
        ops: list[Op] = []
        (value,), name = op.operands, op.attributes["integer"]
        if self.around:
            zero = self.new(ops, op, "constant", (), "zero", dtype=value.dtype, value=0)
            value = self.new(ops, op, "select", (self.mask(op, ops), value, zero), value.name)
        axes = self.instead[value.name].axes
        integers = (
            replace(each, axes=self.kernel.order({*each.axes, *axes})) if each.name == name else each
            for each in self.kernel.integers
        )
        self.kernel = replace(self.kernel, integers=tuple(integers))
        return [*ops, *self.plain(replace(op, operands=(value,)))]


_RULES: dict[str, Callable[[Predicator, Op], list[Op]]] = {
    "if": Predicator.branch,
    "for": Predicator.loop,
    "while": Predicator.repeat,
    "let": Predicator.name,
    "assert": Predicator.check,
    **dict.fromkeys(("load", "store"), Predicator.box),
    **dict.fromkeys(("load_at", "store_at", "atomic", "atomic_cas"), Predicator.places),
}
