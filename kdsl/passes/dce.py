"""dce: what reaches no store goes away, carried values of loops included.

before:
    kernel copy(x: in f32[8], y: out f32[8]) {
      loop t < 4
      axis n < 8
      %zero: f32 = constant {value = 0.0}
      %x: f32[n] = load x[n]
      %unused: f32[n] = exp %x
      %sum: f32[n], %counted: f32 = for t (%a: f32[n] = %x, %count: f32 = %zero) {
        %b: f32[n] = add %a, %x
        %more: f32 = add %count, %count
        yield %b, %more
      }
      store y[n] = %sum
    }
after:
    kernel copy(x: in f32[8], y: out f32[8]) {
      loop t < 4
      axis n < 8
      %x: f32[n] = load x[n]
      %sum: f32[n] = for t (%a: f32[n] = %x) {
        %b: f32[n] = add %a, %x
        yield %b
      }
      store y[n] = %sum
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from kdsl.ir.kernel import Kernel, Op, Region, walk
from kdsl.ir.ops import OPS

T = TypeVar("T")


def dce(kernel: Kernel) -> Kernel:
    """The kernel without ops that have no effect and whose results nothing uses."""
    return replace(kernel, body=_region(kernel.body, set()))


def _region(region: Region, used: set[str]) -> Region:
    """The region without dead ops. `used` names the values that are needed, and gets those that its ops need."""
    kept: list[Op] = []
    for op in reversed(region.ops):
        if not _has_effect(op) and not any(value.name in used for value in op.results) and op.name != "yield":
            continue
        if op.name == "for":
            op = _loop(op, used)
        used.update(value.name for value in op.operands)
        kept.append(op)
    return replace(region, ops=tuple(reversed(kept)))


def _has_effect(op: Op) -> bool:
    return OPS[op.name].effect == "write" or any(_has_effect(inner) for body in op.regions for inner in walk(body))


def _loop(op: Op, used: set[str]) -> Op:
    """The loop without carried values that neither its results nor its live ops need."""
    (body,) = op.regions
    live = [result.name in used for result in op.results]
    while True:
        final = body.ops[-1]
        trimmed = replace(body, ops=(*body.ops[:-1], replace(final, operands=_where(final.operands, live))))
        needed: set[str] = set()
        lean = _region(trimmed, needed)
        wider = [old or argument.name in needed for old, argument in zip(live, body.arguments, strict=True)]
        if wider == live:
            break
        live = wider
    used |= needed
    lean = replace(lean, arguments=_where(body.arguments, live))
    return replace(op, operands=_where(op.operands, live), results=_where(op.results, live), regions=(lean,))


def _where(items: Sequence[T], live: Sequence[bool]) -> tuple[T, ...]:
    return tuple(item for item, kept in zip(items, live, strict=True) if kept)
