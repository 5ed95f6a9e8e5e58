"""dce: what reaches no effect goes away, carried values of loops included.

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
        if op.name in ("for", "while"):
            op = _loop(op, used)
        elif op.name == "if":
            op = _branch(op, used)
        else:
            op = replace(op, regions=tuple(_region(inner, used) for inner in op.regions))
        used.update(value.name for value in op.operands)
        kept.append(op)
    return replace(region, ops=tuple(reversed(kept)))


def _has_effect(op: Op) -> bool:
    return OPS[op.name].effect not in ("none", "read") or any(
        _has_effect(inner) for body in op.regions for inner in walk(body)
    )


def _loop(op: Op, used: set[str]) -> Op:
    """The loop without carried values that neither its results nor its live ops need; a `while` has a test, too."""
    *tests, body = op.regions
    live = [result.name in used for result in op.results]
    while True:
        needed: set[str] = set()
        lean = [_region(test, needed) for test in tests] + [_region(_yielding(body, live), needed)]
        wider = [
            old or any(region.arguments[place].name in needed for region in op.regions)
            for place, old in enumerate(live)
        ]
        if wider == live:
            break
        live = wider
    used |= needed
    regions = tuple(replace(region, arguments=_where(region.arguments, live)) for region in lean)
    return replace(op, operands=_where(op.operands, live), results=_where(op.results, live), regions=regions)


def _branch(op: Op, used: set[str]) -> Op:
    """The branch without results that nothing uses."""
    live = [result.name in used for result in op.results]
    regions = tuple(_region(_yielding(region, live), used) for region in op.regions)
    return replace(op, results=_where(op.results, live), regions=regions)


def _yielding(region: Region, live: Sequence[bool]) -> Region:
    """The region that yields the live values only."""
    *ops, final = region.ops
    return replace(region, ops=(*ops, replace(final, operands=_where(final.operands, live))))


def _where(items: Sequence[T], live: Sequence[bool]) -> tuple[T, ...]:
    return tuple(item for item, kept in zip(items, live, strict=True) if kept)
