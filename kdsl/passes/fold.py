"""fold: ops on constants become constants, and ops that change nothing go away; never a bit of a float result.

before:
    kernel scale(x: in f32[8], y: out f32[8]) {
      axis n < 8
      %two: f32 = constant {value = 2.0}
      %three: f32 = constant {value = 3.0}
      %six: f32 = mul %two, %three
      %one: f32 = constant {value = 1.0}
      %x: f32[n] = load x[n]
      %same: f32[n] = mul %x, %one
      %y: f32[n] = mul %same, %six
      store y[n] = %y
    }
after:
    kernel scale(x: in f32[8], y: out f32[8]) {
      axis n < 8
      %two: f32 = constant {value = 2.0}
      %three: f32 = constant {value = 3.0}
      %six: f32 = constant {value = 6.0}
      %one: f32 = constant {value = 1.0}
      %x: f32[n] = load x[n]
      %y: f32[n] = mul %x, %six
      store y[n] = %y
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kdsl.analysis.constants import evaluate, number, same_bits
from kdsl.ir.dtypes import BF16, BOOL, F16
from kdsl.ir.kernel import Kernel, Op, Value
from kdsl.ir.meaning import Array
from kdsl.ir.rewrite import Rewriter


def fold(kernel: Kernel) -> Kernel:
    """The kernel with constants computed and ops dropped that give one of their operands."""
    return _Fold(kernel).run()


class _Fold(Rewriter):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.known: dict[str, Array] = {}

    def visit(self, op: Op) -> Sequence[Op]:
        if op.name == "broadcast":
            (value,) = op.operands
            if value.name in self.known:
                self.known[op.result.name] = self.known[value.name]
            return self.give(op, value) if op.result.axes == value.axes else [op]
        operands = [self.known.get(value.name) for value in op.operands]
        given = [operand for operand in operands if operand is not None]
        result = evaluate(op, given) if len(given) == len(operands) and len(op.results) == 1 else None
        if result is not None:
            self.known[op.result.name] = result
            return [op] if op.name == "constant" else self.constant(op, result)
        unchanged = _unchanged(op, operands)
        return [op] if unchanged is None else self.give(op, unchanged)

    def give(self, op: Op, value: Value) -> Sequence[Op]:
        """The value in place of the op's result, broadcast if that varies over more axes."""
        missing = tuple(name for name in op.result.axes if name not in value.axes)
        if missing:
            return [replace(op, name="broadcast", operands=(value,), attributes={"axes": missing})]
        self.instead[op.result.name] = value
        return []

    def constant(self, op: Op, result: Array) -> Sequence[Op]:
        dtype = op.result.dtype
        value = bool(result) if dtype == BOOL else int(result) if dtype.is_integer else result.astype(float).item()
        attributes = {"value": value}
        if not op.result.axes:
            return [replace(op, name="constant", operands=(), attributes=attributes)]
        constant = self.make(op, "constant", (), op.result.name, op.result.dtype, **attributes)
        return [constant, *self.give(op, constant.result)]


def _unchanged(op: Op, operands: Sequence[Array | None]) -> Value | None:
    """The operand that the op gives as it is, if it does."""
    if op.name == "cast" and op.operands[0].dtype == op.result.dtype and not op.attributes.get("saturate"):
        # A target may compute with more than 16 bits: there, a cast is where the author wants the rounding.
        return None if op.result.dtype in (F16, BF16) else op.operands[0]
    if op.name == "select":
        _, yes, no = op.operands
        if yes == no:
            return yes
        return None if operands[0] is None else yes if operands[0] else no
    if op.name in _NEUTRAL_RIGHT:
        left, right = op.operands
        neutral = number(_NEUTRAL_RIGHT[op.name], op.result.dtype)
        if operands[1] is not None and same_bits(operands[1], neutral):
            return left
        if op.name in ("add", "mul") and operands[0] is not None and same_bits(operands[0], neutral):
            return right
    return None


# x + -0.0 is x for every float, x + 0.0 is not for x = -0.0. As an integer, -0.0 is 0.
_NEUTRAL_RIGHT = {"add": -0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}
