"""Mutators of masks, fills and bounds: lanes beyond an edge take part, or lanes inside do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kdsl.equivalence.mutation.changes import Change, InPlace, attribute, bound_lists, on_ops, without
from kdsl.ir.kernel import Bound, Kernel, Op


def bound_dropped(kernel: Kernel) -> Iterator[Change]:
    """A bound of an axis or an access is not there."""
    for each in bound_lists(kernel):
        for place, bound in enumerate(each.bounds):
            yield each.change(f"without {bound}", place, ())


def bound_flipped(kernel: Kernel) -> Iterator[Change]:
    """A bound holds where it should not, and nowhere else."""
    for each in bound_lists(kernel):
        for place, bound in enumerate(each.bounds):
            for end in (bound.lower, bound.upper):
                if end is not None:
                    flipped = Bound(bound.form, end, None) if end is bound.upper else Bound(bound.form, None, end)
                    yield each.change(f"{flipped} in place of {bound}", place, [flipped])


def bound_off_by_one(kernel: Kernel) -> Iterator[Change]:
    """An end of a bound is one too low or too high."""
    for each in bound_lists(kernel):
        for place, bound in enumerate(each.bounds):
            for step in (-1, 1):
                for name, end in (("lower", bound.lower), ("upper", bound.upper)):
                    if end is not None:
                        moved = Bound(bound.form, **{"lower": bound.lower, "upper": bound.upper, name: end + step})
                        yield each.change(f"{moved} in place of {bound}", place, [moved])


@on_ops("select")
def select_dropped(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """One arm is taken whatever the condition is."""
    yield "the first arm always", op.operands[1]
    yield "the second arm always", op.operands[2]


@on_ops("select")
def select_flipped(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """Each arm is taken where the other one should be."""
    condition, yes, no = op.operands
    yield "arms swapped", replace(op, operands=(condition, no, yes))


@on_ops("load_at", "store_at", "atomic", "atomic_cas")
def mask_dropped(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """An access at computed places has no mask."""
    if op.attributes.get("masked"):
        yield "without its mask", replace(without(op, "masked"), operands=op.operands[:-1])


@on_ops("load", "load_at")
def fill_dropped(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """Lanes outside are poison."""
    if "fill" in op.attributes:
        yield f"without fill {op.attributes['fill']}", without(op, "fill")


@on_ops("load", "load_at")
def fill_wrong(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """Lanes outside hold another number."""
    if "fill" in op.attributes:
        old = op.attributes["fill"]
        new = type(old)(not old)
        yield f"fill {new} in place of {old}", attribute(op, fill=new)
