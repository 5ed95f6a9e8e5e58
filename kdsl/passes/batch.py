"""batch(axis, k): one program, or one iteration of a loop, does the work of k: axis becomes k*axis + lane.

A tile axis that the lanes extend grows k-fold (a bigger tile: `BM*m_block + m` with m < BM); where there is none, lane
is a new tile axis (rows, as below). What varied over the axis varies over the lanes, too. If k does not divide the
number of points, the last lanes are invalid.

Legal for a program axis on which programs in different places are `disjoint`, and for a loop axis whose iterations are,
where each carried value only gathers (`acc = acc + f` with f from this iteration alone: add, maximum, minimum, and,
or): the lanes are reduced first, or the dot or reduction that makes f contracts k times as much.

Branches and trip counts that vary over the lanes: see `predicate.py`. A causal loop, whose end varies over the lanes,
has rows and no bigger tile: that would multiply lanes past a row's end by 0, which is no 0 for what is not finite.

before:
    kernel row_sum(x: in f32[M, D], y: out f32[M]) {
      size M
      size D
      program m < M
      axis d < D
      %x: f32[m, d] = load x[m, d]
      %s: f32[m] = reduce %x {axis = d, combine = add}
      store y[m] = %s
    }
after:
    kernel row_sum(x: in f32[M, D], y: out f32[M]) {
      size M
      size D
      program m < cdiv(M, 4)
      axis m_lane < 4 where 4*m + m_lane < M
      axis d < D
      %x: f32[m, m_lane, d] = load x[4*m + m_lane, d]
      %s: f32[m, m_lane] = reduce %x {axis = d, combine = add}
      store y[4*m + m_lane] = %s
    }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kdsl.analysis.disjoint import disjoint
from kdsl.analysis.gathering import Gathering, gatherings
from kdsl.analysis.ranges import never_negative_if
from kdsl.analysis.validity import slacks
from kdsl.diagnostics import KdslError, Location, fail
from kdsl.ir.expr import Expr, cdiv, symbol, wrap
from kdsl.ir.kernel import Axis, Bound, Kernel, Op, Value, map_expressions, walk
from kdsl.ir.ops import OPS
from kdsl.ir.rewrite import Rewriter, unused_symbol
from kdsl.passes.drop_breakpoints import drop_breakpoints
from kdsl.passes.predicate import Predicator


@dataclass(frozen=True)
class Plan:
    """What is batched: `point` is the axis before, `tile` the tile axis that the lanes extend, or None for rows.

    `lane` is the new axis; for a bigger tile, a symbol that must cancel.
    """

    kernel: Kernel
    point: Axis
    factor: int
    lane: str
    tile: Axis | None
    gathered: tuple[Gathering, ...]

    def refuse(self, location: Location | None, problem: str, instead: str = "batch another axis") -> KdslError:
        place = location or self.kernel.location
        return fail("K0801", place, axis=self.point.name, factor=self.factor, problem=problem, instead=instead)


def batch(kernel: Kernel, axis: str, factor: int) -> Kernel:
    """The kernel with `factor` points of a program or loop axis at once.

    Results are the same but for the order in which a loop's sums are taken. Raises KdslError K0801, with the op's
    place, where that is not legal or not proven to be, or where an op has no form with the lanes.
    """
    points = {each.name: each for each in kernel.axes if each.kind != "tile"}
    lane = unused_symbol(kernel, f"{axis}_lane")
    if axis not in points or factor < 1:
        problem = f"{axis} is no program or loop axis" if axis not in points else "there is no such number of lanes"
        known = ", ".join(points) or "none"
        raise fail(
            "K0801", kernel.location, axis=axis, factor=factor, problem=problem, instead=f"the axes are: {known}"
        )
    if factor == 1:
        return kernel
    kernel = drop_breakpoints(kernel)  # a debugger stops in one point at a time
    plan = Plan(kernel, points[axis], factor, lane, None, ())
    _check_effects(plan)
    if plan.point.kind == "loop":
        plan = replace(plan, gathered=_gathered(plan))
    for tile in (each for each in kernel.axes if each.kind == "tile"):
        batched = _batched(replace(plan, tile=tile)) if _extends(plan, tile) else None
        if batched is not None:
            return batched
    batched = _batched(plan)
    assert batched is not None  # rows always have forms
    return batched


# -- legality ------------------------------------------------------------------------------------------------------


def _check_effects(plan: Plan) -> None:
    """Raise K0801 unless the points may run at once: no shared element with a write, no order that can be seen."""
    loop = plan.point.name if plan.point.kind == "loop" else None
    for op in _inside(plan):
        effect = OPS[op.name].effect
        if effect == "atomic" and (op.results or op.attributes.get("combine") == "exchange"):
            raise plan.refuse(op.location, f"what {op.name} gives or leaves depends on the order of the programs")
        if effect == "atomic" and loop is not None:
            raise plan.refuse(op.location, f"{op.name} happens once for each iteration", "batch a program axis")
        if op.name == "print":
            raise plan.refuse(op.location, "a print shows one program at a time", "leave it out")
    answer = disjoint(plan.kernel, plan.point.name)
    if not answer.proven:
        certain = "" if answer.verdict == "no" else "it is not proven that points are independent: "
        raise plan.refuse(answer.op.location if answer.op else None, certain + answer.reason)


def _inside(plan: Plan) -> Sequence[Op]:
    """The ops that happen for each point."""
    if plan.point.kind == "program":
        return list(walk(plan.kernel.body))
    loops = [op for op in walk(plan.kernel.body) if op.name == "for" and op.attributes["axis"] == plan.point.name]
    return [op for loop in loops for region in loop.regions for op in walk(region)]


def _gathered(plan: Plan) -> tuple[Gathering, ...]:
    """How each value that the loop carries is gathered. Raises K0801 for one that is not."""
    found: list[Gathering] = []
    for op in walk(plan.kernel.body):
        if op.name == "for" and op.attributes["axis"] == plan.point.name:
            for carried, gathering in gatherings(op):
                if isinstance(gathering, Op):
                    problem = f"%{carried.name} does not only gather: an iteration needs what the one before it left"
                    raise plan.refuse(gathering.location or op.location, problem)
                found += [gathering] if gathering is not None else []
    return tuple(found)


def _extends(plan: Plan, tile: Axis) -> bool:
    """Whether nothing looks at the tile as a whole, but for what makes the gathered values of a loop."""
    makers = {id(gathering.maker) for gathering in plan.gathered if _contracts(gathering, tile)}
    if len(makers) < len(plan.gathered):
        return False
    for op in walk(plan.kernel.body):
        if id(op) not in makers and tile.name in _named_axes(op):
            return False
        batched = op.name == "for" and op.attributes["axis"] == plan.point.name
        if batched and any(tile.name in argument.axes for argument in op.regions[0].arguments):
            return False  # what is carried would grow
        if OPS[op.name].effect == "atomic" and not any(tile.name in value.axes for value in op.operands):
            return False  # it happens once for each point
    return True


def _contracts(gathering: Gathering, tile: Axis) -> bool:
    maker = gathering.maker
    if maker is None or not gathering.used_once or maker.attributes.get("axis") != tile.name:
        return False
    return gathering.combine == ("add" if maker.name == "dot" else maker.attributes.get("combine", ""))


def _named_axes(op: Op) -> set[str]:
    """The axes that an op does something along: of others it takes each point for itself."""
    if op.name in ("broadcast", "poison", "for"):
        return set()
    kinds = dict(OPS[op.name].attributes)
    axes = [value for name, value in op.attributes.items() if kinds[name] in ("axis", "axes")]
    return {name for value in axes for name in ((value,) if isinstance(value, str) else value)}


# -- the substitution ----------------------------------------------------------------------------------------------


def _batched(plan: Plan) -> Kernel | None:
    """The kernel after the substitution, or None where lanes do not extend the tile."""
    point, lane, tile = symbol(plan.point.name), symbol(plan.lane), plan.tile
    values: dict[str, Expr] = {plan.point.name: plan.factor * point + lane}
    if tile is not None:
        values[tile.name] = symbol(tile.name) - tile.extent * lane
    left: list[Expr] = []

    def change(form: Expr) -> Expr:
        changed = form.substitute(values)
        left.extend([changed] if plan.lane in changed.symbols else [])
        return changed

    kernel = map_expressions(plan.kernel, change)
    if tile is not None and left:
        return None
    kernel = replace(kernel, axes=_axes(plan, kernel))
    if tile is None:
        kernel = _Lanes(kernel, plan).run()
    return Predicator(kernel, plan.lane, plan.refuse).run()


def _axes(plan: Plan, kernel: Kernel) -> tuple[Axis, ...]:
    """The axes after: fewer points, and the bigger tile or the lanes before all other tile axes."""
    point, tile, count = symbol(plan.point.name), plan.tile, plan.point.extent
    shorter = replace(plan.point, extent=cdiv(count, plan.factor))
    axes = [shorter if axis.name == plan.point.name else axis for axis in kernel.axes]
    if tile is None:
        grown = Axis(plan.lane, "tile", wrap(plan.factor))
        guard = Bound(plan.factor * point + symbol(plan.lane), None, count)
        place = next((i for i, axis in enumerate(axes) if axis.kind == "tile"), len(axes))
        axes.insert(place, grown)
    else:
        place = next(i for i, axis in enumerate(axes) if axis.name == tile.name)
        grown = replace(axes[place], extent=plan.factor * tile.extent)
        guard = Bound(tile.extent * plan.factor * point + symbol(tile.name), None, tile.extent * count)
        axes[place] = grown
    widened = replace(kernel, axes=tuple(axes))
    given = [slack for bound in grown.bounds for slack in slacks(bound)]
    if not all(never_negative_if(widened, slack, given) for slack in slacks(guard)):
        axes[place] = replace(grown, bounds=(*grown.bounds, guard))
    return tuple(axes)


class _Lanes(Rewriter):
    """Gathered values are reduced over the lanes first; an atomic happens in each. Types are left for later."""

    def __init__(self, kernel: Kernel, plan: Plan) -> None:
        super().__init__(kernel)
        self.plan = plan
        self.combining = {gathering.result: gathering for gathering in plan.gathered}

    def visit(self, op: Op) -> Sequence[Op]:
        gathering = self.combining.get(op.results[0].name) if len(op.results) == 1 else None
        if gathering is not None:
            attributes = {"axis": self.plan.lane, "combine": gathering.combine}
            return self.first(op, gathering.place, "reduce", attributes)
        if OPS[op.name].effect == "atomic" and self.plan.point.kind == "program":
            return self.first(op, 0, "broadcast", {"axes": (self.plan.lane,)})
        return [op]

    def first(self, op: Op, place: int, name: str, attributes: Mapping[str, object]) -> Sequence[Op]:
        """An op on one operand of another, before that."""
        value = op.operands[place]
        result = Value(self.fresh(value.name), value.dtype)
        added = Op(name, (value,), (result,), attributes, location=op.location)
        operands = (*op.operands[:place], result, *op.operands[place + 1 :])
        return [added, replace(op, operands=operands)]
