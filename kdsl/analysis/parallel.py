"""Whether the programs of a grid may run at once: no element that one of them writes is touched by another.

Two programs touch different elements where an index form tells them apart: `BM*m_block + m` does so for m_block if m
has at most BM lanes. Programs that no form tells apart do no harm to a tensor that is only written, if all write the
same to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kdsl.analysis.ranges import interval
from kdsl.analysis.validity import slacks
from kdsl.ir.expr import Expr, symbol, wrap
from kdsl.ir.kernel import Bound, Kernel, Op, Region, walk
from kdsl.ir.ops import OPS
from kdsl.ir.type_rules import axis_bounds, form_axes

# Ops that are evaluated for one program at a time.
_IN_ORDER = frozenset({"atomic", "atomic_cas", "store_at", "print"})


@dataclass(frozen=True)
class Access:
    """A load or store, the axes that what it does varies over, and the bounds of the lanes that it touches."""

    op: Op
    axes: frozenset[str]
    bounds: tuple[Bound, ...]


def is_parallel(kernel: Kernel) -> bool:
    """Whether no program of a bound kernel is seen to depend on another: sound, but not complete.

    Branches and what happens at computed places or in an order are taken to depend.
    """
    if any(op.name in _IN_ORDER for op in walk(kernel.body)):
        return False
    grid = frozenset(axis.name for axis in kernel.program_axes if axis.extent.constant not in (0, 1))
    touched: dict[str, list[Access]] = {}
    for access in _accesses(kernel, kernel.body, frozenset()):
        touched.setdefault(access.op.attributes["buffer"], []).append(access)
    return all(_is_safe(kernel, grid, accesses) for accesses in touched.values())


def _accesses(kernel: Kernel, region: Region, around: frozenset[str]) -> Iterator[Access]:
    """The loads and stores of a region; `around` are the axes that decide how often it runs."""
    for op in region.ops:
        if "buffer" in op.attributes:
            bounds = op.attributes.get("bounds", ())
            named = form_axes(kernel, [*op.attributes.get("index", ()), *bounds])
            axes = kernel.with_validity([*named, *(name for value in op.operands for name in value.axes)])
            yield Access(op, around.union(axes), (*bounds, *axis_bounds(kernel, axes)))
        if op.name == "for":
            extent = kernel.axis(op.attributes["axis"]).extent
            yield from _accesses(kernel, op.regions[0], around.union(kernel.order(extent.symbols)))
        elif op.name in ("if", "while"):
            carried = [value for region in op.regions for value in region.arguments]
            deciding = around.union(*(value.axes for value in (*op.operands, *carried)))
            for inner in op.regions:
                yield from _accesses(kernel, inner, deciding)


def _is_safe(kernel: Kernel, grid: frozenset[str], accesses: Sequence[Access]) -> bool:
    stores = [access for access in accesses if OPS[access.op.name].effect == "write"]
    if not stores:
        return True
    if any("index" not in access.op.attributes for access in accesses):
        return False  # an element at a computed place may be any of them
    together = grid - _told_apart(kernel, grid, accesses)
    return not together or (len(stores) == len(accesses) and not any(store.axes & together for store in stores))


def _told_apart(kernel: Kernel, grid: frozenset[str], accesses: Sequence[Access]) -> frozenset[str]:
    """The program axes on which programs differ wherever two of the accesses meet in an element."""
    kernels = [_with_lanes(kernel, access.bounds) for access in accesses]
    told: frozenset[str] = frozenset()
    for forms in zip(*(access.op.attributes["index"] for access in accesses), strict=True):
        told |= _told_by(grid, list(zip(kernels, forms, strict=True)))
    return told


def _told_by(grid: frozenset[str], forms: Sequence[tuple[Kernel, Expr]]) -> frozenset[str]:
    """The program axes that the index in one dimension tells apart: leading digits of a number of mixed radix.

    A digit is an axis with the same coefficient in all forms. Numbers that are equal have an equal leading digit if its
    step is longer than all that follows can reach; then the next one leads.
    """
    steps = _common_steps([form for _, form in forms])
    ends = [interval(kernel, form - _sum_of(steps)) for kernel, form in forms]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return frozenset()
    reach = max(high for _, high in known) - min(low for low, _ in known)
    digits = []
    for name in sorted(steps, key=lambda name: abs(steps[name])):
        lasts = [_last(kernel, name) for kernel, _ in forms]
        if None in lasts:
            return frozenset()
        last = max(place for place in lasts if place is not None)
        if last:  # an axis of one point is no digit
            digits.append((name, abs(steps[name]) > reach))
            reach += abs(steps[name]) * last
    leading = itertools.takewhile(lambda digit: digit[1], reversed(digits))
    return grid.intersection(name for name, _ in leading)


def _sum_of(steps: Mapping[str, int]) -> Expr:
    return sum((step * symbol(name) for name, step in steps.items()), wrap(0))


def _last(kernel: Kernel, axis: str) -> int | None:
    """The last point of an axis in a bound kernel, whatever its extent depends on, or None where only a run knows."""
    points = interval(kernel, symbol(axis))
    return None if points is None else points[1]


def _common_steps(forms: Sequence[Expr]) -> dict[str, int]:
    """The axes in which all forms are linear with the same constant coefficient."""
    steps: dict[str, int] = {}
    for name in frozenset.intersection(*(form.symbols for form in forms)):
        first, *others = (form.coefficient(name) for form in forms)
        if first is not None and first.constant and all(other == first for other in others):
            steps[name] = first.constant
    return steps


def _with_lanes(kernel: Kernel, bounds: Iterable[Bound]) -> Kernel:
    """The kernel with tile axes cut where the bounds fail for every program."""
    limits: dict[str, int] = {}
    for slack in (slack for bound in bounds for slack in slacks(bound)):
        for axis in kernel.axes:
            if axis.kind == "tile" and axis.name in slack.symbols and slack.coefficient(axis.name) == wrap(-1):
                ends = interval(kernel, slack + symbol(axis.name))
                if ends is not None:
                    limits[axis.name] = min(limits.get(axis.name, ends[1] + 1), ends[1] + 1)
    cut = [
        replace(axis, extent=wrap(min(axis.extent.constant or 0, max(0, limits[axis.name]))))
        if axis.name in limits
        else axis
        for axis in kernel.axes
    ]
    return replace(kernel, axes=tuple(cut))
