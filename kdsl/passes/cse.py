"""cse: an op that computes what an op before it did, in its own region or one around it, takes that result.

before:
    kernel twice(y: out f32[8]) {
      axis n < 8
      %i: i32[n] = index {form = n}
      %j: i32[n] = index {form = n}
      %a: f32[n] = cast %i
      %b: f32[n] = cast %j
      %c: f32[n] = add %a, %b
      store y[n] = %c
    }
after:
    kernel twice(y: out f32[8]) {
      axis n < 8
      %i: i32[n] = index {form = n}
      %a: f32[n] = cast %i
      %c: f32[n] = add %a, %a
      store y[n] = %c
    }
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from kdsl.ir.kernel import Kernel, Op, Region, Value
from kdsl.ir.ops import OPS
from kdsl.ir.rewrite import Rewriter


def cse(kernel: Kernel) -> Kernel:
    """The kernel with each pure value computed once where the first computation dominates the others."""
    return _Reuse(kernel).run()


class _Reuse(Rewriter):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.available: dict[Hashable, Value] = {}

    def region(self, region: Region) -> Region:
        around = dict(self.available)
        inner = super().region(region)
        self.available = around
        return inner

    def visit(self, op: Op) -> Sequence[Op]:
        if OPS[op.name].effect != "none" or op.regions or len(op.results) != 1:
            return [op]
        attributes = tuple((name, _exact(op.attributes[name])) for name in sorted(op.attributes))
        key = (op.name, op.operands, attributes, op.result.dtype, op.result.axes)
        if key in self.available:
            self.instead[op.result.name] = self.available[key]
            return []
        self.available[key] = op.result
        return [op]


def _exact(attribute: Any) -> Hashable:
    """Python calls 0.0, -0.0, 0 and False equal; here they are not."""
    if isinstance(attribute, tuple):
        return tuple(_exact(item) for item in attribute)
    return (type(attribute), repr(attribute)) if isinstance(attribute, int | float) else attribute
