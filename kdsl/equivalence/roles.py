"""What the integer inputs of a kernel are for, and so between which numbers to draw them.

A *demand* is a value of the kernel that has to lie between two ends: an index inside its tensor, a limit of a loop
inside its dimension. The range of each input grows from a single number, all inputs in turn, until a demand would fail:
so arithmetic on the way, from an offset that is added to a clamp, counts by itself. An input that no range suits, or
whose elements the kernel itself changes before they become an index, is refused: its author has to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kdsl.analysis.accesses import Access, accesses, stays_inside
from kdsl.analysis.ranges import Interval
from kdsl.diagnostics import fail
from kdsl.equivalence.flow import Definitions, sources
from kdsl.equivalence.interval_rules import ends_of
from kdsl.equivalence.intervals import Guards, Intervals
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Buffer, Kernel, Op, Region, Scalar, Value

Pattern = Literal["any", "distinct", "offsets"]
BEYOND = 2  # how far outside the range to draw where the kernel itself guards against it
_FARTHEST = 1 << 20
_STARTS = (0, *(sign * (1 << power) for power in range(12) for sign in (1, -1)))


@dataclass(frozen=True)
class Role:
    """How an integer input is drawn: between `low` and `high`, both included.

    `distinct` elements name places that are stored to, so none comes twice. `offsets` never fall along the dimension
    `along`, from `low` to `high`: the groups between neighbours cover all there is, some of them empty.
    """

    low: int
    high: int
    pattern: Pattern = "any"
    along: int = 0


@dataclass(frozen=True)
class Demand:
    """`what` has to lie in [low, high] in lanes where the guards hold; `inputs` flow into it.

    A `wish` may be broken: a loop's limit beyond its dimension does no harm.
    """

    op: Op
    what: Value | Expr
    low: int
    high: int
    guards: Guards
    inputs: frozenset[str]
    named: bool  # whether through an integer that limits a loop
    wish: bool = False

    def holds(self, ends: Intervals) -> bool:
        narrowed = ends.where(self.guards)
        if narrowed is None:
            return True
        found = narrowed.of(self.what) if isinstance(self.what, Value) else narrowed.form(self.what)
        return found is not None and self.low <= found[0] and found[1] <= self.high


@dataclass
class _Kernel:
    """A bound kernel, where its values come from, and what it demands."""

    kernel: Kernel
    definitions: Definitions
    demands: list[Demand] = field(default_factory=list)

    def demand(self, op: Op, what: Value | Expr, high: int, guards: Guards, wish: bool = False) -> None:
        """An index of a dimension with elements, or a limit of a loop over it, if inputs flow into it."""
        if isinstance(what, Value):
            inputs, named = sources(self.definitions, [what])
        else:
            integers = [self.definitions.named[name] for name in self.definitions.integers_in(what)]
            inputs, named = sources(self.definitions, integers)[0], True
        if inputs and high >= 0:
            self.demands.append(Demand(op, what, 0, high, guards, inputs, named or wish, wish))


def find_roles(kernel: Kernel, given: Mapping[str, Interval]) -> dict[str, Role]:
    """The roles of the integer inputs of a bound kernel that are used as places or limits; others are not there.

    `given` has the ends of those that need none: scalars of the example, what the author declares. A given scalar that
    does not suit these sizes gets a role nevertheless. Raises KdslError K0410 where a range cannot be told.
    """
    found = _Kernel(kernel, Definitions(kernel))
    _collect(found)
    if not found.demands:
        return {}
    ranges = _grow(found, given)
    roles = {name: Role(*ends) for name, ends in ranges.items()}
    for name, along in _offsets(kernel).items():
        if name in roles and len(kernel.buffer(name).shape) > along:
            roles[name] = replace(roles[name], pattern="offsets", along=along)
    for name in _stored_to(found, roles):
        roles[name] = replace(roles[name], pattern="distinct")
    return roles


# -- what is demanded ------------------------------------------------------------------------------------------------


def _collect(found: _Kernel) -> None:
    guarded = {id(op): guards for op, guards in _guarded(found.kernel.body, ())}
    for access in accesses(found.kernel):
        guards = guarded[id(access.op)]
        sizes = [int(size.evaluate({})) for size in found.kernel.buffer(access.buffer).shape]
        if access.index is None:
            for value, size in zip(_places(access.op, len(sizes)), sizes, strict=True):
                found.demand(access.op, value, size - 1, guards)
        elif not stays_inside(found.kernel, access):
            for form, size in zip(access.index, sizes, strict=True):
                found.demand(access.op, form, size - 1, guards)
        for name, size in _limits(found.kernel, access, sizes):
            found.demand(access.op, found.definitions.named[name], size, (), wish=True)


def _guarded(region: Region, guards: Guards) -> Iterator[tuple[Op, Guards]]:
    """Every op with the conditions under which it does something."""
    for op in region.ops:
        mask: Guards = ((op.operands[-1], True),) if op.attributes.get("masked") else ()
        yield op, (*guards, *mask)
        for place, inner in enumerate(op.regions):
            branch: Guards = ((op.operands[0], place == 0),) if op.name == "if" else ()
            if op.name == "while" and place == 1:
                branch = ((op.regions[0].ops[-1].operands[0], True),)
            yield from _guarded(inner, (*guards, *branch))


def _places(op: Op, dimensions: int) -> Sequence[Value]:
    end = len(op.operands) - bool(op.attributes.get("masked"))
    return op.operands[end - dimensions : end]


def _limits(kernel: Kernel, access: Access, sizes: Sequence[int]) -> Iterator[tuple[str, int]]:
    """The named integers that limit the axes of an access, with the size of the dimension that they run over."""
    for form, size in zip(access.index or (), sizes, strict=False):
        for axis in kernel.axes:
            if axis.name in form.symbols:
                named = axis.extent.symbols.union(*(bound.symbols for bound in axis.bounds))
                yield from ((integer.name, size) for integer in kernel.integers if integer.name in named)


# -- ranges ----------------------------------------------------------------------------------------------------------


def _grow(found: _Kernel, given: Mapping[str, Interval]) -> dict[str, Interval]:
    kernel = found.kernel
    parameters = {parameter.name: parameter for parameter in kernel.parameters}
    settled = {name: ends for name, ends in given.items() if isinstance(parameters[name], Buffer)}
    wanted = sorted({name for demand in found.demands for name in demand.inputs} - settled.keys())
    changed = {access.buffer for access in accesses(kernel) if access.writes}
    scalars = {name: given[name] for name in wanted if name in given}

    def ends(ranges: Mapping[str, Interval]) -> Intervals:
        known = {name: ends for name, ends in {**settled, **ranges}.items() if name not in changed}
        return Intervals(found.definitions, known)

    demands = [demand for demand in found.demands if demand.inputs - settled.keys()]
    ranges: dict[str, Interval] = {name: scalars.get(name, (0, 0)) for name in wanted}
    for demand in [demand for demand in demands if not demand.wish]:
        ranges = _start(demand, demands, ranges, ends)
        if not demand.holds(ends(ranges)):
            raise _untold(kernel, demand, settled, changed)
    kept = [demand for demand in demands if demand.holds(ends(ranges))]
    free = [name for name in wanted if ranges[name] != scalars.get(name) and name not in changed]
    caps = {name: _caps(kernel, name, demands) for name in free}
    steps = {(name, side): 1 for name in free for side in (0, 1)}
    falling: set[tuple[str, int]] = set()
    while steps:
        for (name, side), step in list(steps.items()):
            low, high = ranges[name]
            longer = (max(low - step, caps[name][0]), high) if side == 0 else (low, min(high + step, caps[name][1]))
            tried = {**ranges, name: longer}
            if longer != (low, high) and all(demand.holds(ends(tried)) for demand in kept if name in demand.inputs):
                ranges = tried
            else:
                falling.add((name, side))
            steps[name, side] = step // 2 if (name, side) in falling else step * 2
            if not steps[name, side]:
                del steps[name, side]
    return {name: ranges[name] for name in free}


def _start(demand: Demand, demands: Sequence[Demand], ranges: dict[str, Interval], ends: Any) -> dict[str, Interval]:
    """The ranges with one input of a demand at another number, if that makes the demand hold and breaks no other."""
    if demand.holds(ends(ranges)):
        return ranges
    hard = [other for other in demands if not other.wish and other.holds(ends(ranges))]
    for name in sorted(demand.inputs & ranges.keys()):
        for number in _STARTS:
            tried = {**ranges, name: (number, number)}
            if demand.holds(ends(tried)) and all(other.holds(ends(tried)) for other in hard):
                return tried
    return ranges


def _caps(kernel: Kernel, name: str, demands: Sequence[Demand]) -> Interval:
    """How far the range of an input may grow where no demand stops it."""
    own = [demand for demand in demands if name in demand.inputs]
    largest = max((int(size.evaluate({})) for buffer in kernel.buffers for size in buffer.shape), default=0)
    (parameter,) = (parameter for parameter in kernel.parameters if parameter.name == name)
    low, high = ends_of(parameter.dtype)
    if any(demand.named for demand in own):
        return max(low, 0), min(high, _FARTHEST)
    beyond = BEYOND if any(demand.guards for demand in own) else _FARTHEST
    return max(low, -beyond), min(high, largest + beyond)


def _untold(kernel: Kernel, demand: Demand, settled: Mapping[str, Interval], changed: set[str]) -> Exception:
    names = sorted(demand.inputs - settled.keys())
    name = next((name for name in names if name in changed), names[0])
    buffer = demand.op.attributes["buffer"]
    problem = f"its elements become an index of {buffer}"
    if name in changed:
        problem = f"{problem} after the kernel has changed them"
    elif any(parameter.name == name and parameter.dtype.is_float for parameter in kernel.parameters):
        problem = f"{problem}, and they are floats"
    return fail("K0410", demand.op.location, name=name, problem=problem)


# -- patterns --------------------------------------------------------------------------------------------------------


def _offsets(kernel: Kernel) -> dict[str, int]:
    """Inputs of which neighbours are looked at together, as starts[g] and starts[g + 1]; and along which dimension."""
    forms: dict[str, set[tuple[Expr, ...]]] = {}
    for access in accesses(kernel):
        if access.index is not None and access.op.name == "load":
            forms.setdefault(access.buffer, set()).add(access.index)
    found = {}
    for name, indices in forms.items():
        for index in indices:
            for along in range(len(index)):
                if (*index[:along], index[along] + 1, *index[along + 1 :]) in indices:
                    found[name] = along
    return found


def _stored_to(found: _Kernel, roles: Mapping[str, Role]) -> Iterator[str]:
    """The inputs whose elements tell apart the lanes of a store, so that no two of them may be equal.

    Raises KdslError K0410 where there are more of them than places.
    """
    for access in accesses(found.kernel):
        if access.op.name != "store_at":
            continue
        places = _places(access.op, len(found.kernel.buffer(access.buffer).shape))
        flows = [(place, sources(found.definitions, [place])[0] & roles.keys()) for place in places]
        plain = {axis for place, inputs in flows if not inputs for axis in place.axes}
        told = [(place, inputs) for place, inputs in flows if inputs and not set(place.axes) <= plain]
        if not told:
            continue
        fitting = [name for _, inputs in told for name in sorted(inputs) if _fits(found.kernel, name, roles[name])]
        if not fitting:
            name = min(told[0][1])
            problem = f"{access.buffer} is stored to where its elements say, and there are fewer places than elements"
            raise fail("K0410", access.op.location, name=name, problem=problem)
        yield fitting[0]


def _fits(kernel: Kernel, name: str, role: Role) -> bool:
    count = 1
    for parameter in kernel.parameters:
        if parameter.name == name and not isinstance(parameter, Scalar):
            for size in parameter.shape:
                count *= int(size.evaluate({}))
    return count <= role.high - role.low + 1
