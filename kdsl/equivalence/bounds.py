"""Hard error bounds: how far any conforming implementation on a target may be from the oracle's values.

A kernel is evaluated once, and each value has two arrays: the oracle's own, and an absolute error bound in f64. Errors
pass through an op by its error rule; what the op itself rounds, on the target and in the oracle, is added. A bound is
infinite where the value hangs on a comparison that rounding can flip: such an element is undecided. Of an i1 value the
bound is the distance within which its comparison flips, and 0 where it is decided.

Sources: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 2002, chapters 2 to 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kdsl.equivalence.lanes import doubled, error_of, spoil
from kdsl.equivalence.propagation import propagate
from kdsl.equivalence.rounding import SLACK
from kdsl.interpreter.stepped import Program, points, take_arguments, worst
from kdsl.ir.dtypes import F64
from kdsl.ir.kernel import Kernel, Op, Region, Value
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS
from kdsl.runtime.target import AccuracyTable

# Ops whose regions are run on lanes of any size: their errors are found for the whole op.
COMBINED = frozenset({"reduce_by", "scan_by"})


@dataclass(frozen=True)
class Bounded:
    """The oracle's written arrays by name, and for each the absolute error bounds (f64, inf where undecided)."""

    values: dict[str, Array]
    bounds: dict[str, Array]


def hard_bounds(
    kernel: Kernel, arguments: Mapping[str, Any], accuracy: AccuracyTable, same_casts: bool = True
) -> Bounded:
    """Run a bound kernel on the oracle and bound what a target of that accuracy may give instead.

    The bounds hold for any order of summation within an op, and for intermediate arithmetic that keeps more precision
    than the text says. Casts round exactly: what is the same before is the same after. Without `same_casts` they do
    not, as where another evaluation of the formula casts other values (weights relative to another maximum).

    Raises KdslError as `interpreter.run` does.
    """
    memory, scalars = take_arguments(kernel, arguments, worst)
    errors = {buffer.name: np.zeros(memory[buffer.name].shape) for buffer in kernel.written}
    with np.errstate(all="ignore"):
        for point in points(kernel):
            BoundedProgram(kernel, memory, scalars, point, errors, accuracy, same_casts).run(kernel.body, [])
    bounds = {name: array * (1 + SLACK) for name, array in errors.items()}
    return Bounded({name: memory[name] for name in errors}, bounds)


class BoundedProgram(Program):
    """One program whose values have errors, under names of their own beside the values."""

    def __init__(
        self,
        kernel: Kernel,
        memory: dict[str, Array],
        scalars: dict[str, Any],
        point: dict[str, int],
        error_memory: dict[str, Array],
        accuracy: AccuracyTable,
        same_casts: bool,
    ) -> None:
        super().__init__(kernel, memory, scalars, point, worst)
        self.error_memory, self.accuracy, self.same_casts = error_memory, accuracy, same_casts
        self.undecided = False  # whether control in the op that is evaluated hangs on what rounding can flip
        self.bounding = True

    def evaluate(self, op: Op) -> list[Array]:
        if not self.bounding:
            return super().evaluate(op)
        if op.name == "if":
            self.condition_error = self.error(op.operands[0])
        if op.name in ("for", "if", "while"):
            around, self.undecided = self.undecided, False
            both = super().evaluate(doubled(op))
            results, errors = both[: len(op.results)], both[len(op.results) :]
            if self.undecided:  # another way through may have been taken
                spoil(self, [op])
                errors = [np.full(error.shape, np.inf) for error in errors]
            self.undecided |= around
        elif op.name in COMBINED:
            with self.unbounded():
                results = super().evaluate(op)
            errors = propagate(self, op, results)
        else:
            results = super().evaluate(op)
            errors = propagate(self, op, results)
        for value, error in zip(op.results, errors, strict=True):
            self.values[error_of(value).name] = error
        return results

    def branch(self, op: Op, condition: Array) -> list[Array]:
        self.undecided |= bool(self.condition_error.any())
        return super().branch(op, condition)

    def test(self, region: Region, carried: Sequence[Array]) -> Array:
        condition = super().test(region, carried)
        self.undecided |= bool(self.error(region.ops[-1].operands[0]).any())
        return condition

    @contextmanager
    def unbounded(self) -> Iterator[None]:
        """Ops inside are evaluated without their errors."""
        before, self.bounding = self.bounding, False
        try:
            yield
        finally:
            self.bounding = before

    def error(self, value: Value) -> Array:
        """The errors of a value."""
        return self.values[error_of(value).name]

    def on_all(self, op: Op, operands: Sequence[Array], keep: int = 0) -> list[Array]:
        """What an op without rounding of its own does to other operands, in f64 but for the first `keep`; those
        results count as exact."""
        evaluate = OPS[op.name].evaluate
        assert evaluate is not None, op.name
        wide = _in_f64(op, {})
        wide = replace(wide, operands=(*op.operands[:keep], *wide.operands[keep:]))
        wide = replace(wide, results=(*op.results[:keep], *wide.results[keep:]))
        with self.unbounded():
            results = evaluate(self, wide, list(operands))
        kept = [np.zeros(np.shape(result)) for result in results[:keep]]
        return [*kept, *(np.where(np.isnan(result), np.inf, result) for result in results[keep:])]

    def wide(self, op: Op, axes: tuple[str, ...] | None = None) -> list[Array]:
        """The operands as f64, aligned to the result's axes (or others)."""
        to = op.result.axes if axes is None else axes
        return [self.align(self.values[value.name], value.axes, to).astype(np.float64) for value in op.operands]

    def errors(self, op: Op, axes: tuple[str, ...] | None = None) -> list[Array]:
        """The operands' errors, aligned alike."""
        to = op.result.axes if axes is None else axes
        return [self.align(self.values[error_of(value).name], value.axes, to) for value in op.operands]

    def in_f64(self, op: Op, *operands: Array, **attributes: Any) -> Array:
        """What the op gives of other operands of the same axes, in f64: sums of errors, products of magnitudes."""
        evaluate = OPS[op.name].evaluate
        assert evaluate is not None, op.name
        (result,) = evaluate(self, _in_f64(op, attributes), list(operands))
        return result

    @contextmanager
    def on_errors(self) -> Iterator[None]:
        """Loads and stores inside go to the errors of the memory's elements."""
        memory, poison = self.memory, self.poison
        self.memory, self.poison = self.error_memory, lambda dtype, shape: np.zeros(shape)
        try:
            yield
        finally:
            self.memory, self.poison = memory, poison


def _in_f64(op: Op, attributes: Mapping[str, Any]) -> Op:
    return replace(
        op,
        operands=tuple(replace(value, dtype=F64) for value in op.operands),
        results=tuple(replace(value, dtype=F64) for value in op.results),
        attributes={**op.attributes, **attributes},
    )
