"""drop_breakpoints: no target stops for a debugger.

before:
    kernel copy(x: in f32[8], y: out f32[8]) {
      loop t < 4
      axis n < 8
      %x: f32[n] = load x[n]
      breakpoint
      %y: f32[n] = exp %x
      for t () {
        breakpoint
        store y[n] = %y
        yield
      }
    }
after:
    kernel copy(x: in f32[8], y: out f32[8]) {
      loop t < 4
      axis n < 8
      %x: f32[n] = load x[n]
      %y: f32[n] = exp %x
      for t () {
        store y[n] = %y
        yield
      }
    }
"""

from __future__ import annotations

from dataclasses import replace

from kdsl.ir.kernel import Kernel, Region, walk


def drop_breakpoints(kernel: Kernel) -> Kernel:
    """The kernel without its breakpoints."""
    if not any(op.name == "breakpoint" for op in walk(kernel.body)):
        return kernel
    return replace(kernel, body=_region(kernel.body))


def _region(region: Region) -> Region:
    kept = (op for op in region.ops if op.name != "breakpoint")
    return replace(region, ops=tuple(replace(op, regions=tuple(map(_region, op.regions))) for op in kept))
