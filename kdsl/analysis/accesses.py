"""What a kernel does to memory: each access with the axes it happens along and the bounds that its lanes keep.

`disjoint`, `parallel` and `covers` look at these; `touched` evaluates them, for kernels small enough to ask every lane.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kdsl.analysis.forms import Forms
from kdsl.analysis.ranges import interval, never_negative_if
from kdsl.analysis.validity import slacks
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Bound, Kernel, Op, Region
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS
from kdsl.ir.type_rules import axis_bounds, form_axes

# The most lanes that are evaluated to answer a question by asking all of them.
LARGEST_COUNT = 1 << 20


@dataclass(frozen=True)
class Answer:
    """`yes` is proven, `no` comes with a witness, `unknown` is neither. `reason` says which proof, witness or doubt."""

    verdict: Literal["yes", "no", "unknown"]
    reason: str
    op: Op | None = None

    @property
    def proven(self) -> bool:
        return self.verdict == "yes"


@dataclass(frozen=True)
class Access:
    """One op's access to a buffer.

    `index` is None where the places are computed (load_at and such) and no form is known that gives them. `axes` are
    all program axes, the loops around, and the tile axes it varies over; `bounds` hold on every lane that touches
    memory. Where it happens, how often and with which values depends on `varies`: two programs that differ on other
    axes only do the same. `around` are the ops in whose regions it is, outermost first.
    """

    op: Op
    buffer: str
    index: tuple[Expr, ...] | None
    bounds: tuple[Bound, ...]
    axes: tuple[str, ...]
    varies: tuple[str, ...]
    around: tuple[Op, ...]

    @property
    def writes(self) -> bool:
        return OPS[self.op.name].effect != "read"

    @property
    def loops(self) -> tuple[str, ...]:
        """The axes of the loops around, outermost first."""
        return tuple(op.attributes["axis"] for op in self.around if op.name == "for")

    @property
    def certain(self) -> bool:
        """Whether it happens in every lane that keeps the bounds: no branch, while or mask decides."""
        return not self.op.attributes.get("masked") and all(op.name == "for" for op in self.around)

    @property
    def repeated(self) -> bool:
        """Whether a program may come to it more than once."""
        return any(op.name in ("for", "while") for op in self.around)


def accesses(kernel: Kernel) -> tuple[Access, ...]:
    """All accesses in order of the text."""
    return tuple(_accesses(kernel, Forms(kernel), kernel.body, (), frozenset()))


def _accesses(
    kernel: Kernel, forms: Forms, region: Region, around: tuple[Op, ...], deciding: frozenset[str]
) -> Iterator[Access]:
    grid = [axis.name for axis in kernel.program_axes]
    for op in region.ops:
        if "buffer" in op.attributes:
            named = form_axes(kernel, [*op.attributes.get("index", ()), *op.attributes.get("bounds", ())])
            lanes = kernel.with_validity({*named, *(name for value in op.operands for name in value.axes)})
            bounds = (*op.attributes.get("bounds", ()), *axis_bounds(kernel, lanes))
            loops = [outer.attributes["axis"] for outer in around if outer.name == "for"]
            axes = kernel.order({*grid, *loops, *lanes})
            varies = kernel.order(deciding.union(lanes))
            yield Access(op, op.attributes["buffer"], forms.places(op), bounds, axes, varies, around)
        for inner in op.regions:
            yield from _accesses(kernel, forms, inner, (*around, op), deciding | _deciding(kernel, op))


def _deciding(kernel: Kernel, op: Op) -> frozenset[str]:
    """The axes on which it depends whether and how often the regions of an op run."""
    if op.name == "for":
        return frozenset(form_axes(kernel, [kernel.axis(op.attributes["axis"]).extent]))
    values = [*op.operands, *(value for region in op.regions for value in region.arguments)]
    if op.name == "while":
        values += op.regions[0].ops[-1].operands
    return frozenset(name for value in values for name in value.axes)


def stays_inside(kernel: Kernel, access: Access) -> bool:
    """Whether no lane that touches memory leaves the buffer, proven from its index forms and bounds for all sizes."""
    if access.index is None:
        return False
    given = [slack for bound in access.bounds for slack in slacks(bound)]
    return all(
        never_negative_if(kernel, end, given)
        for form, size in zip(access.index, kernel.buffer(access.buffer).shape, strict=True)
        for end in (form, size - 1 - form)
    )


def touched(kernel: Kernel, access: Access) -> tuple[dict[str, Array], Array] | None:
    """Every lane of a bound kernel that touches memory: its place on each axis, and its element (row-major number).

    Elements outside the buffer are left out. None for computed places, an unbound kernel or too many lanes.
    """
    extents = _extents(kernel, access)
    if access.index is None or extents is None or math.prod(extents.values()) > LARGEST_COUNT:
        return None
    count = tuple(extents.values())
    places = dict(zip(extents, np.indices(count, sparse=True), strict=True))
    inside = np.ones(count, bool)
    for name, place in places.items():
        inside &= place < kernel.axis(name).extent.evaluate(places)
    for bound in access.bounds:
        form = bound.form.evaluate(places)
        inside &= True if bound.lower is None else bound.lower.evaluate(places) <= form
        inside &= True if bound.upper is None else form < bound.upper.evaluate(places)
    element = np.zeros(count, np.int64)
    for form, extent in zip(access.index, kernel.buffer(access.buffer).shape, strict=True):
        size = extent.constant
        assert size is not None  # as _extents found
        index = np.asarray(form.evaluate(places))
        inside &= (index >= 0) & (index < size)
        element = element * size + index
    lanes = {name: np.broadcast_to(place, count)[inside] for name, place in places.items()}
    return lanes, element[inside]


def _extents(kernel: Kernel, access: Access) -> Mapping[str, int] | None:
    """How many points each axis has at most, or None where that is not known."""
    if any(size.constant is None for size in kernel.buffer(access.buffer).shape):
        return None
    forms: list[Expr | Bound] = [*(access.index or ()), *access.bounds]
    symbols = {name for form in forms for name in form.symbols}
    if not symbols <= set(access.axes):
        return None  # a size, or an integer that only a run knows
    found: dict[str, int] = {}
    for name in access.axes:
        ends = interval(kernel, kernel.axis(name).extent)
        if ends is None:
            return None
        found[name] = max(0, ends[1])
    return found
