"""Another implementation that keeps to an accuracy table: each op as wrong as it may be, at random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kdsl.equivalence import rounding
from kdsl.interpreter.stepped import Program, points, take_arguments, worst
from kdsl.ir.dtypes import F32, F64
from kdsl.ir.kernel import Kernel, Op
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS
from kdsl.runtime.target import AccuracyTable, accuracy_of

UNROUNDED = frozenset({"maximum", "minimum", "abs", "neg", "floor", "ceil", "select"})


def conforming_run(
    kernel: Kernel, arguments: Mapping[str, Any], accuracy: AccuracyTable, seed: int, share: float
) -> dict[str, Array]:
    """Run a bound kernel with errors of up to `share` of what each op is allowed. With 0 it is computed in f64.

    Intermediate f32 values keep more precision in half of the seeds; casts round exactly.
    """
    memory, scalars = take_arguments(kernel, arguments, worst)
    generator = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        for point in points(kernel):
            program = Conforming(kernel, memory, scalars, point, worst)
            program.accuracy, program.generator, program.share = accuracy, generator, share
            program.keeps_precision = share == 0 or seed % 2 == 0
            program.run(kernel.body, [])
    return {buffer.name: memory[buffer.name] for buffer in kernel.written}


class Conforming(Program):
    accuracy: AccuracyTable
    generator: np.random.Generator
    share: float
    keeps_precision: bool

    def evaluate(self, op: Op) -> list[Array]:
        if op.name in ("reduce", "dot") and op.result.dtype.is_float:
            return [self.accumulate(op)]
        if OPS[op.name].pointwise is not None and op.result.dtype.is_float:
            return [self.compute(op)]
        return super().evaluate(op)

    def compute(self, op: Op) -> Array:
        pointwise = OPS[op.name].pointwise
        assert pointwise is not None
        operands = [self.align(self.values[v.name], v.axes, op.result.axes) for v in op.operands]
        wide = [array.astype(np.float64) if array.dtype != bool else array for array in operands]
        exact = np.asarray(pointwise(*wide), dtype=np.float64)
        if op.name in UNROUNDED:
            return exact
        allowed = accuracy_of(self.accuracy, op.name, op.result.dtype)
        # Half an ulp is for rounding to the type: now, or when it is stored.
        amount = (allowed.ulp - 0.5) * rounding.ulp(np.abs(exact), op.result.dtype) + allowed.absolute
        return self.rounded(op, exact + self.noise(exact.shape) * amount)

    def accumulate(self, op: Op) -> Array:
        evaluate = OPS[op.name].evaluate
        assert evaluate is not None
        wide = retyped(op)
        operands = [self.values[value.name].astype(np.float64) for value in op.operands]
        (exact,) = evaluate(self, wide, operands)
        if op.name == "reduce" and op.attributes["combine"] != "add":
            return exact
        (magnitude,) = evaluate(self, wide, [np.abs(operand) for operand in operands])
        terms = np.asarray(float(self.size(op.attributes["axis"])))
        amount = rounding.gamma(np.maximum(terms - 2, 0), 2.0**-24) * magnitude
        return self.rounded(op, exact + self.noise(exact.shape) * amount)

    def noise(self, shape: tuple[int, ...]) -> Array:
        """All one way or at random: errors add up in both."""
        drawn = self.generator.uniform(-1, 1, shape) if self.generator.random() < 0.5 else np.ones(shape)
        return np.asarray(drawn * self.share * self.generator.choice([-1.0, 1.0]))

    def rounded(self, op: Op, array: Array) -> Array:
        """A 16-bit result is rounded at once here, so that its store rounds nothing more."""
        if self.keeps_precision and op.result.dtype in (F32, F64):
            return array
        return array.astype(op.result.dtype.numpy).astype(np.float64)


def retyped(op: Op) -> Op:
    from dataclasses import replace

    return replace(
        op,
        operands=tuple(replace(value, dtype=F64) for value in op.operands),
        results=tuple(replace(value, dtype=F64) for value in op.results),
    )
