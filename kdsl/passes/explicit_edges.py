"""explicit_edges: what invalid lanes do becomes bounds, fills and selects; tile axes lose their bounds.

Targets have no invalid lanes, only lanes that hold something. Loads and stores get the bounds of the axes they vary
over; what reduces or contracts along an axis gets its identity in the lanes that were invalid: by the fill of a load
where that reaches it unchanged, else by a select.

before:
    kernel row_sum(x: in f32[M, N], y: out f32[M]) {
      size M
      size N
      tile BN = 128
      program m < M
      axis n < BN where n < N
      %x: f32[m, n] = load x[m, n]
      %sum: f32[m] = reduce %x {axis = n, combine = add}
      %e: f32[m, n] = sqrt %x
      %sum_e: f32[m] = reduce %e {axis = n, combine = add}
      %y: f32[m] = div %sum, %sum_e
      store y[m] = %y
    }
after:
    kernel row_sum(x: in f32[M, N], y: out f32[M]) {
      size M
      size N
      tile BN = 128
      program m < M
      axis n < BN
      %x: f32[m, n] = load x[m, n] where n < N fill 0.0
      %sum: f32[m] = reduce %x {axis = n, combine = add}
      %e: f32[m, n] = sqrt %x
      %inside: bool[n] = in_bounds {bounds = [n < N]}
      %outside: f32 = constant {value = 0.0}
      %e.1: f32[m, n] = select %inside, %e, %outside
      %sum_e: f32[m] = reduce %e.1 {axis = n, combine = add}
      %y: f32[m] = div %sum, %sum_e
      store y[m] = %y
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kdsl.analysis.constants import number, same_bits
from kdsl.analysis.validity import Padding, simplify, slacks
from kdsl.ir.dtypes import BOOL, I32, DType
from kdsl.ir.expr import symbol
from kdsl.ir.kernel import Bound, Kernel, Op, Value, walk
from kdsl.ir.meaning import identity
from kdsl.ir.ops import is_pointwise
from kdsl.ir.type_rules import axis_bounds, form_axes
from kdsl.passes.rewrite import Rewriter, map_ops, retype


def explicit_edges(kernel: Kernel) -> Kernel:
    """The kernel in which no axis has bounds, and every lane that once was invalid is kept out by hand."""
    bounded = _with_access_bounds(kernel)
    filled = _Masker(_with_fills(bounded)).run()
    return retype(replace(filled, axes=tuple(replace(axis, bounds=()) for axis in kernel.axes)))


def _with_access_bounds(kernel: Kernel) -> Kernel:
    """Loads and stores with the bounds of the axes they vary over, on top of their own."""

    def change(op: Op) -> Op:
        if op.name not in ("load", "store"):
            return op
        own = op.attributes.get("bounds", ())
        named = form_axes(kernel, [*op.attributes["index"], *own])
        axes = kernel.with_validity([*named, *(name for value in op.operands for name in value.axes)])
        return _bounded(op, simplify(kernel, [*own, *axis_bounds(kernel, axes)]))

    return map_ops(kernel, change)


def _bounded(op: Op, bounds: tuple[Bound, ...]) -> Op:
    attributes = {name: value for name, value in op.attributes.items() if name != "bounds"}
    if not bounds:
        return replace(op, attributes={name: value for name, value in attributes.items() if name != "fill"})
    return replace(op, attributes=attributes | {"bounds": bounds})


# -- what a consumer needs -----------------------------------------------------------------------------------------


def _edge(kernel: Kernel, op: Op, source: Value) -> tuple[Bound, ...]:
    """The bounds that decide which lanes of an operand take part in a reduce or dot, as far as they may fail."""
    if op.name not in ("reduce", "dot"):
        return ()
    return simplify(kernel, axis_bounds(kernel, kernel.decided_along(op.attributes["axis"], source.axes)))


def _neutral(op: Op, dtype: DType) -> Any:
    """What a lane must hold to count for nothing."""
    return _python(0 if op.name == "dot" else identity(op.attributes["combine"], dtype), dtype)


def _python(value: Any, dtype: DType) -> Any:
    """A number as an attribute of that type."""
    return float(value) if dtype.is_float else bool(value) if dtype == BOOL else int(value)


def _is_prefix(axis: str, bounds: Sequence[Bound]) -> bool:
    """Whether lanes inside the bounds all come before those outside."""
    slopes = [slack.coefficient(axis) for bound in bounds for slack in slacks(bound)]
    return all(slope is not None and slope.constant is not None and slope.constant <= 0 for slope in slopes)


# -- fills ---------------------------------------------------------------------------------------------------------

_OTHER_FILLS = (0, -np.inf, np.inf, 1)


def _with_fills(kernel: Kernel) -> Kernel:
    """Loads that have no fill get the one that spares their first consumer a select, if there is one."""
    definitions = {value.name: op for op in walk(kernel.body) for value in op.results}
    fills: dict[str, Any] = {}
    for op in walk(kernel.body):
        for source in op.operands:
            bounds = _edge(kernel, op, source)
            if not bounds:
                continue
            wanted = number(_neutral(op, source.dtype), source.dtype)
            free = [load for load in _loads_behind(source, definitions) if load.result.name not in fills]
            for fill in (_neutral(op, source.dtype), *_OTHER_FILLS) if free else ():
                if not all(_has_value(load.result.dtype, fill) for load in free):
                    continue
                tried = fills | {load.result.name: _python(fill, load.result.dtype) for load in free}
                held = Padding(kernel, tried).constant(source.name, bounds)
                if held is not None and same_bits(held, wanted):
                    fills = tried
                    break
    return _fill(kernel, fills)


def _loads_behind(value: Value, definitions: dict[str, Op]) -> list[Op]:
    """The bounded loads without a fill that a value is computed from, lane by lane."""
    found: dict[str, Op] = {}
    left, seen = [value], set()
    while left:
        name = left.pop().name
        op = definitions.get(name)
        if op is None or name in seen:
            continue
        seen.add(name)
        if op.name == "load" and "bounds" in op.attributes and "fill" not in op.attributes:
            found[name] = op
        elif is_pointwise(op) or op.name == "broadcast":
            left += op.operands
    return list(found.values())


def _has_value(dtype: DType, value: Any) -> bool:
    if dtype.is_float:
        return True
    if dtype == BOOL or np.isinf(value):
        return value in (0, 1)
    limits = np.iinfo(dtype.numpy)
    return bool(limits.min <= value <= limits.max)


def _fill(kernel: Kernel, fills: dict[str, Any]) -> Kernel:
    def change(op: Op) -> Op:
        if op.name != "load" or op.result.name not in fills:
            return op
        return replace(op, attributes={**op.attributes, "fill": fills[op.result.name]})

    return map_ops(kernel, change)


# -- selects -------------------------------------------------------------------------------------------------------


class _Masker(Rewriter):
    """Puts selects where an invalid lane could take part in a reduce or dot."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.padding = Padding(kernel)

    def visit(self, op: Op) -> Sequence[Op]:
        if op.attributes.get("combine") in ("argmax", "argmin"):
            bounds = _edge(self.kernel, op, op.operands[0])
            if not _is_prefix(op.attributes["axis"], bounds):
                return self.search(op, bounds)
        added: list[Op] = []
        operands = [self.masked(op, source, added) for source in op.operands]
        return [*added, replace(op, operands=tuple(operands))]

    def masked(self, op: Op, source: Value, added: list[Op]) -> Value:
        """The operand with lanes that take no part neutral; the ops that make it so are added."""
        bounds = _edge(self.kernel, op, source)
        if not bounds:
            return source
        neutral = _neutral(op, source.dtype)
        held = self.padding.constant(source.name, bounds)
        if held is not None and same_bits(held, number(neutral, source.dtype)):
            return source
        inside = self.make(op, "in_bounds", (), "inside", bounds=bounds)
        outside = self.make(op, "constant", (), "outside", source.dtype, value=neutral)
        masked = self.make(op, "select", (inside.result, source, outside.result), source.name)
        added += [inside, outside, masked]
        return masked.result

    def search(self, op: Op, bounds: tuple[Bound, ...]) -> Sequence[Op]:
        """argmax or argmin where invalid lanes may come first, and so win a tie: the lowest lane inside that holds the
        extreme or a NaN, and 0 where none is inside."""
        (source,), axis = op.operands, op.attributes["axis"]
        combine = {"argmax": "maximum", "argmin": "minimum"}[op.attributes["combine"]]
        added: list[Op] = []

        def add(
            name: str, operands: Sequence[Value], hint: str, dtype: DType | None = None, **attributes: Any
        ) -> Value:
            added.append(self.make(op, name, operands, hint, dtype, **attributes))
            return added[-1].result

        lanes = self.masked(op, source, added)
        extreme = add("reduce", (lanes,), "extreme", axis=axis, combine=combine)
        found = add("eq", (lanes, extreme), "found")
        if source.dtype.is_float:
            found = add("or", (found, add("ne", (lanes, lanes), "is_nan")), "found")
        found = add("and", (found, add("in_bounds", (), "inside", bounds=bounds)), "found")
        lane = add("index", (), "lane", dtype=I32, form=symbol(axis))
        none = add("index", (), "lanes", dtype=I32, form=self.kernel.axis(axis).extent)
        first = add("reduce", (add("select", (found, lane, none), "candidate"),), "first", axis=axis, combine="minimum")
        zero = add("constant", (), "zero", dtype=I32, value=0)
        chosen = self.make(op, "select", (add("lt", (first, none), "any"), first, zero), "chosen")
        return [*added, replace(chosen, results=op.results)]
