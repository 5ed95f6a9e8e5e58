"""explicit_edges: what invalid lanes do becomes bounds, fills and selects; tile axes lose their bounds.

Targets have no invalid lanes, only lanes that hold something. Memory access gets the bounds of the axes it varies over;
what works along an axis gets operands in which the lanes that were invalid count for nothing: by the fill of a load
where that reaches it unchanged, else by a select (`masking.py`).

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

from dataclasses import replace
from typing import Any

import numpy as np

from kdsl.analysis.constants import number, same_bits
from kdsl.analysis.validity import Padding, simplify
from kdsl.ir.dtypes import BOOL, DType, holds_number
from kdsl.ir.kernel import Bound, Kernel, Op, Value, walk
from kdsl.ir.ops import is_pointwise
from kdsl.ir.rewrite import map_ops, retype
from kdsl.ir.type_rules import axis_bounds, form_axes
from kdsl.passes.masking import NEUTRAL, Masker, as_attribute, edge, neutral


def explicit_edges(kernel: Kernel) -> Kernel:
    """The kernel in which no axis has bounds, and every lane that once was invalid is kept out by hand."""
    bounded = _with_access_bounds(kernel)
    filled = Masker(_with_fills(bounded)).run()
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


# -- fills ---------------------------------------------------------------------------------------------------------

_OTHER_FILLS = (0, -np.inf, np.inf, 1)


def _with_fills(kernel: Kernel) -> Kernel:
    """Loads that have no fill get the one that spares their first consumer a select, if there is one."""
    definitions = {value.name: op for op in walk(kernel.body) for value in op.results}
    fills: dict[str, Any] = {}
    for op in walk(kernel.body):
        for source in op.operands:
            bounds = edge(kernel, op, source)
            if not bounds or op.name not in NEUTRAL:
                continue
            wanted = number(neutral(op, source.dtype), source.dtype)
            free = [load for load in _loads_behind(source, definitions) if load.result.name not in fills]
            for fill in (neutral(op, source.dtype), *_OTHER_FILLS) if free else ():
                if not all(_has_value(load.result.dtype, fill) for load in free):
                    continue
                tried = fills | {load.result.name: as_attribute(fill, load.result.dtype) for load in free}
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
    return holds_number(dtype, int(value))


def _fill(kernel: Kernel, fills: dict[str, Any]) -> Kernel:
    def change(op: Op) -> Op:
        if op.name != "load" or op.result.name not in fills:
            return op
        return replace(op, attributes={**op.attributes, "fill": fills[op.result.name]})

    return map_ops(kernel, change)
