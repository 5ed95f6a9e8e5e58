"""Masking, a part of explicit_edges: ops along an axis get operands in which invalid lanes count for nothing.

A reduce, scan or dot gets its identity there, a histogram a number that it does not count, a sort the key that comes
last. A combine by a region has no identity: it is lifted, with a bool that says whether a lane is real. Indexed access
gets the bounds into its mask, an assertion holds outside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kdsl.analysis.constants import number, same_bits
from kdsl.analysis.validity import Padding, simplify, slacks
from kdsl.ir.dtypes import BOOL, I32, I64, U8, DType
from kdsl.ir.expr import symbol
from kdsl.ir.kernel import Bound, Kernel, Op, Region, Value
from kdsl.ir.meaning import identity
from kdsl.ir.ops import OPS
from kdsl.ir.rewrite import Rewriter
from kdsl.ir.type_rules import axis_bounds

# Ops for which a lane that holds the right number takes no part, wherever it stands.
NEUTRAL = frozenset({"reduce", "scan", "dot"})
# Ops whose operands share their lanes: which of them take part is decided by the axes of all.
_TOGETHER = frozenset({"sort", "reduce_by", "scan_by"})


def edge(kernel: Kernel, op: Op, source: Value) -> tuple[Bound, ...]:
    """The bounds that decide which lanes of an operand take part in an op along an axis, as far as they may fail."""
    if op.name not in NEUTRAL | _TOGETHER | {"topk", "histogram"}:
        return ()
    axes = {name for value in op.operands for name in value.axes} if op.name in _TOGETHER else source.axes
    return simplify(kernel, axis_bounds(kernel, kernel.decided_along(op.attributes["axis"], kernel.order(axes))))


def neutral(op: Op, dtype: DType) -> Any:
    """What a lane must hold to count for nothing."""
    return as_attribute(0 if op.name == "dot" else identity(op.attributes["combine"], dtype), dtype)


def as_attribute(value: Any, dtype: DType) -> Any:
    """A number as an attribute of that type."""
    return float(value) if dtype.is_float else bool(value) if dtype == BOOL else int(value)


def _last(dtype: DType, descending: bool) -> Any:
    """The key that no other comes after; NaN is the largest."""
    if dtype.is_float:
        return -np.inf if descending else np.nan
    if dtype == BOOL:
        return not descending
    return as_attribute(np.iinfo(dtype.numpy).min if descending else np.iinfo(dtype.numpy).max, dtype)


def _is_prefix(axis: str, bounds: Sequence[Bound]) -> bool:
    """Whether lanes inside the bounds all come before those outside."""
    slopes = [slack.coefficient(axis) for bound in bounds for slack in slacks(bound)]
    return all(slope is not None and slope.constant is not None and slope.constant <= 0 for slope in slopes)


class Masker(Rewriter):
    """Puts selects where an invalid lane could take part."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.padding = Padding(kernel)
        self.added: list[Op] = []

    def visit(self, op: Op) -> Sequence[Op]:
        self.added = []
        rule = _RULES.get(op.name)
        changed = op if rule is None else rule(self, op)
        return [*self.added, changed]

    def add(
        self, like: Op, name: str, operands: Sequence[Value], hint: str, dtype: DType | None = None, **attributes: Any
    ) -> Value:
        """Put an op before the one that is visited; gives its result."""
        self.added.append(self.make(like, name, operands, hint, dtype, **attributes))
        return self.added[-1].result

    def inside(self, op: Op, bounds: tuple[Bound, ...]) -> Value:
        return self.add(op, "in_bounds", (), "inside", bounds=bounds)

    # -- ops with an identity --------------------------------------------------------------------------------------

    def mask(self, op: Op) -> Op:
        if op.attributes.get("combine") in ("argmax", "argmin"):
            bounds = edge(self.kernel, op, op.operands[0])
            if not _is_prefix(op.attributes["axis"], bounds):
                return self.search(op, bounds)
        return replace(op, operands=tuple(self.masked(op, source, neutral(op, source.dtype)) for source in op.operands))

    def masked(self, op: Op, source: Value, outside: Any) -> Value:
        """The operand with that number in lanes that take no part."""
        bounds = edge(self.kernel, op, source)
        if not bounds:
            return source
        held = self.padding.constant(source.name, bounds)
        if held is not None and same_bits(held, number(outside, source.dtype)):
            return source
        inside = self.inside(op, bounds)
        other = self.add(op, "constant", (), "outside", source.dtype, value=outside)
        return self.add(op, "select", (inside, source, other), source.name)

    def search(self, op: Op, bounds: tuple[Bound, ...]) -> Op:
        """argmax or argmin where invalid lanes may come first, and so win a tie: the lowest lane inside that holds the
        extreme or a NaN, and 0 where none is inside."""
        (source,), axis = op.operands, op.attributes["axis"]
        combine = {"argmax": "maximum", "argmin": "minimum"}[op.attributes["combine"]]
        lanes = self.masked(op, source, neutral(op, source.dtype))
        extreme = self.add(op, "reduce", (lanes,), "extreme", axis=axis, combine=combine)
        found = self.add(op, "eq", (lanes, extreme), "found")
        if source.dtype.is_float:
            found = self.add(op, "or", (found, self.add(op, "ne", (lanes, lanes), "is_nan")), "found")
        found = self.add(op, "and", (found, self.inside(op, bounds)), "found")
        lane = self.add(op, "index", (), "lane", I32, form=symbol(axis))
        none = self.add(op, "index", (), "lanes", I32, form=self.kernel.axis(axis).extent)
        candidate = self.add(op, "select", (found, lane, none), "candidate")
        first = self.add(op, "reduce", (candidate,), "first", axis=axis, combine="minimum")
        zero = self.add(op, "constant", (), "zero", I32, value=0)
        chosen = self.make(op, "select", (self.add(op, "lt", (first, none), "any"), first, zero), "chosen")
        return replace(chosen, results=op.results)

    def histogram(self, op: Op) -> Op:
        (source,) = op.operands
        if edge(self.kernel, op, source) and source.dtype.kind == "uint":
            wide = I64 if source.dtype.bits >= 32 else I32  # u64 past i64 wraps to what is not counted either
            source = self.add(op, "cast", (source,), source.name, wide)
        return replace(op, operands=(self.masked(op, source, -1),))

    # -- orders ----------------------------------------------------------------------------------------------------

    def sort(self, op: Op) -> Op:
        """Invalid keys come last and stay behind their equals, if invalid lanes do; else see `packed`."""
        keys, axis, descending = op.operands[0], op.attributes["axis"], bool(op.attributes.get("descending"))
        bounds = edge(self.kernel, op, keys)
        if _is_prefix(axis, bounds):
            return replace(op, operands=(self.masked(op, keys, _last(keys.dtype, descending)), *op.operands[1:]))
        one = self.add(op, "cast", (self.inside(op, bounds),), "real", I32)
        count = self.add(op, "scan", (one,), "rank", axis=axis, combine="add")
        rank = self.add(op, "sub", (count, self.add(op, "constant", (), "one", I32, value=1)), "rank")
        packed = self.packed(op, op.operands, bounds, descending)
        gathers = [self.make(op, "gather", (value, rank), value.name, axis=axis) for value in packed]
        for gather, result in zip(gathers, op.results, strict=True):
            self.instead[result.name] = gather.result
        *first, last = gathers
        self.added += first
        return last

    def packed(self, op: Op, operands: Sequence[Value], bounds: tuple[Bound, ...], descending: bool) -> list[Value]:
        """The operands in the order of the first, valid lanes before all others."""
        axis = op.attributes["axis"]
        outside = self.add(op, "cast", (self.add(op, "not", (self.inside(op, bounds),), "outside"),), "outside", U8)
        keys, *others = operands
        keys, outside, *others = self.sorted(op, (keys, outside, *others), axis, descending)
        return self.sorted(op, (outside, keys, *others), axis, False)[1:]

    def sorted(self, like: Op, operands: Sequence[Value], axis: str, descending: bool) -> list[Value]:
        attributes = {"axis": axis, **({"descending": True} if descending else {})}
        op = Op("sort", tuple(operands), (), attributes, location=like.location)
        types = OPS["sort"].infer(self.kernel, op)
        hints = [value.name for value in operands]
        results = tuple(Value(self.fresh(hint), *each) for hint, each in zip(hints, types, strict=True))
        self.added.append(replace(op, results=results))
        return list(results)

    def topk(self, op: Op) -> Op:
        (source,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
        bounds = edge(self.kernel, op, source)
        if _is_prefix(axis, bounds):
            return replace(op, operands=(self.masked(op, source, _last(source.dtype, descending=True)),))
        lane = self.add(op, "index", (), "lane", I32, form=symbol(axis))
        values, lanes = self.packed(op, (source, lane), bounds, descending=True)
        place = self.add(op, "index", (), "place", I32, form=symbol(target))
        gathers = [self.make(op, "gather", (value, place), value.name, axis=axis) for value in (values, lanes)]
        for gather, result in zip(gathers, op.results, strict=True):
            self.instead[result.name] = gather.result
        self.added.append(gathers[0])
        return gathers[1]

    # -- combines by a region --------------------------------------------------------------------------------------

    def lift(self, op: Op) -> Op:
        """The combine with a bool more: a run of lanes without a real one leaves the other run as it is."""
        bounds = edge(self.kernel, op, op.operands[0])
        if not bounds:
            return op
        (region,), count = op.regions, len(op.operands)
        inside = self.inside(op, bounds)
        axes = region.arguments[0].axes
        left, right = (Value(self.fresh(hint), BOOL, axes) for hint in ("left_real", "right_real"))
        *ops, final = region.ops
        outer, self.added = self.added, []
        both = self.add(op, "and", (left, right), "both")
        settled = []
        for a, b, c in zip(region.arguments[:count], region.arguments[count:], final.operands, strict=True):
            one = self.add(op, "select", (left, a, b), "one")
            settled.append(self.add(op, "select", (both, c, one), c.name))
        settled.append(self.add(op, "or", (left, right), "either"))
        ops += self.added
        self.added = outer
        arguments = (*region.arguments[:count], left, *region.arguments[count:], right)
        lifted = Region(arguments, (*ops, replace(final, operands=tuple(settled))))
        op = replace(op, operands=(*op.operands, inside), regions=(lifted,))
        (*_, (dtype, result_axes)) = OPS[op.name].infer(self.kernel, op)
        return replace(op, results=(*op.results, Value(self.fresh("real"), dtype, result_axes)))

    # -- access and reports ----------------------------------------------------------------------------------------

    def access(self, op: Op) -> Op:
        """The axes' bounds in the mask. An atomic happens once for each lane, also of axes that only bounds mention."""
        named = self.kernel.order(name for value in op.operands for name in value.axes)
        axes = self.kernel.with_validity(named)
        bounds = simplify(self.kernel, axis_bounds(self.kernel, axes))
        if op.name in ("atomic", "atomic_cas") and axis_bounds(self.kernel, axes):
            first = self.add(op, "broadcast", (op.operands[0],), op.operands[0].name, axes=axes)
            op = replace(op, operands=(first, *op.operands[1:]))
        if not bounds:
            return op
        mask = self.inside(op, bounds)
        operands = op.operands
        if op.attributes.get("masked"):
            *operands_before, own = operands
            mask, operands = self.add(op, "and", (own, mask), own.name), tuple(operands_before)
        return replace(op, operands=(*operands, mask), attributes={**op.attributes, "masked": True})

    def check(self, op: Op) -> Op:
        (condition,) = op.operands
        bounds = simplify(self.kernel, axis_bounds(self.kernel, self.kernel.with_validity(condition.axes)))
        if not bounds:
            return op
        outside = self.add(op, "not", (self.inside(op, bounds),), "outside")
        return replace(op, operands=(self.add(op, "or", (condition, outside), condition.name),))


_RULES: dict[str, Callable[[Masker, Op], Op]] = {
    **dict.fromkeys(NEUTRAL, Masker.mask),
    "histogram": Masker.histogram,
    "sort": Masker.sort,
    "topk": Masker.topk,
    **dict.fromkeys(("reduce_by", "scan_by"), Masker.lift),
    **dict.fromkeys(("load_at", "store_at", "atomic", "atomic_cas"), Masker.access),
    "assert": Masker.check,
}
