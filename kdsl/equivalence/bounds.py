"""Error bounds: how far any conforming implementation on a target may be from the oracle's values.

A kernel is evaluated, and each value has two arrays: the oracle's own, and an absolute error bound in f64. Errors pass
through an op by its error rule; what the op itself rounds, on the target and in the oracle, is added. A bound is
infinite where the value hangs on a comparison that rounding can flip: such an element is undecided. Of an i1 value the
bound is the distance within which its comparison flips, and 0 where it is decided.

There are two bounds, by the same rules; they differ in how n roundings of one op add up (`rounding`).

hard       n u, in any order: the worst case
expected   about sqrt(n) u, as roundings have both signs: at most 1 element in 10^4 is outside. Only the roundings of
           one op count as independent; errors of different ops add, for they may hang together.

Sources: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 2002, chapters 2 to 4; Higham and Mary, A new
approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kdsl.equivalence import regions, rounding
from kdsl.equivalence.accesses import Tally, spoil, tallies
from kdsl.equivalence.model import Model
from kdsl.equivalence.propagation import propagate
from kdsl.equivalence.regions import doubled, error_of
from kdsl.interpreter import mode_of
from kdsl.interpreter.batched import programs_in_a_box
from kdsl.interpreter.grid import boxes, grid
from kdsl.interpreter.memory import take_arguments, worst
from kdsl.interpreter.program import Program
from kdsl.ir.dtypes import BOOL, F64
from kdsl.ir.kernel import Kernel, Op, Region, Value, walk
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS
from kdsl.runtime.target import AccuracyTable

# What may hang on data: evaluated for one program at a time, so that no program is undecided for another.
_CONTROL = frozenset({"if", "while", "let"})


@dataclass(frozen=True)
class Bounded:
    """The oracle's written arrays by name, and for each the absolute error bounds (f64, inf where undecided)."""

    values: dict[str, Array]
    bounds: dict[str, Array]  # hard
    expected: dict[str, Array] = field(default_factory=dict)


def error_bounds(
    kernel: Kernel, arguments: Mapping[str, Any], accuracy: AccuracyTable, same_casts: bool = True
) -> Bounded:
    """Run a bound kernel on the oracle and bound what a target of that accuracy may give instead, hard and expected.

    The hard bounds hold for any order of summation within an op, and for intermediate arithmetic that keeps more
    precision than the text says. Casts round exactly: what is the same before is the same after. Without `same_casts`
    they do not, as where another evaluation of the formula casts other values (weights relative to another maximum).

    Raises KdslError as `interpreter.run` does.
    """
    found = hard_bounds(kernel, arguments, accuracy, same_casts)
    if not any(np.any((bound > 0) & np.isfinite(bound)) for bound in found.bounds.values()):
        return replace(found, expected=found.bounds)  # exact or undecided throughout: no rounding to add up
    expected = bounds_of(kernel, arguments, Model(accuracy, same_casts, rounding.likely_gamma)).bounds
    return replace(found, expected={name: np.minimum(bound, found.bounds[name]) for name, bound in expected.items()})


def hard_bounds(
    kernel: Kernel, arguments: Mapping[str, Any], accuracy: AccuracyTable, same_casts: bool = True
) -> Bounded:
    """The hard bounds alone, as `error_bounds`, in half the time."""
    return bounds_of(kernel, arguments, Model(accuracy, same_casts))


def bounds_of(kernel: Kernel, arguments: Mapping[str, Any], model: Model) -> Bounded:
    """The bounds that a model gives."""
    memory, scalars = take_arguments(kernel, arguments, worst)
    errors = {buffer.name: np.zeros(memory[buffer.name].shape) for buffer in kernel.written}
    sums, spoiled = tallies(kernel.body, memory), set[str]()
    one = mode_of(kernel) == "stepped" or any(op.name in _CONTROL for op in walk(kernel.body))
    with np.errstate(all="ignore"):
        for box in boxes(grid(kernel), 1 if one else programs_in_a_box(kernel)):
            BoundedProgram(kernel, memory, scalars, box, errors, sums, spoiled, model).run(kernel.body, [])
    for name in spoiled:
        errors[name][...] = np.inf
    for buffer in kernel.written:
        if buffer.dtype == BOOL:  # whatever is the reach of the comparison
            errors[buffer.name] = np.where(errors[buffer.name] > 0, np.inf, 0.0)
    bounds = {name: array * (1 + rounding.SLACK) for name, array in errors.items()}
    return Bounded({name: memory[name] for name in errors}, bounds)


class BoundedProgram(Program):
    """A box of programs whose values have errors, under names of their own beside the values."""

    companions = (regions.ERROR_OF,)

    def __init__(
        self,
        kernel: Kernel,
        memory: dict[str, Array],
        scalars: dict[str, Any],
        place: Mapping[str, int | range],
        error_memory: dict[str, Array],
        tallies: dict[str, Tally],
        spoiled: set[str],
        model: Model,
    ) -> None:
        super().__init__(kernel, memory, scalars, place, worst)
        self.error_memory, self.tallies, self.spoiled, self.model = error_memory, tallies, spoiled, model
        self.undecided = False  # whether control in the op that is evaluated hangs on what rounding can flip
        self.lost = False  # whether an integer does that forms mention: then all that follows is undecided
        self.orders: Array | None = None  # in a combine: how often a lane's roundings count, for any grouping
        self.smooth: Region | None = None  # a combine whose arguments' errors move it to first order
        self.bounding = True

    def run(self, region: Region, arguments: Sequence[Array]) -> list[Array]:
        if region is self.smooth:
            return regions.joined(self, region, arguments)
        return super().run(region, arguments)

    def show(self, message: str, arrays: Sequence[Array]) -> None:
        """Nothing: the author's prints are for their own runs."""

    def evaluate(self, op: Op) -> list[Array]:
        if not self.bounding:
            return super().evaluate(op)
        if op.name in ("for", "if", "while"):
            results, errors = self._control(op)
        elif op.name in regions.COMBINED:
            results, errors = regions.combined(self, op)
        else:
            results = super().evaluate(op)
            errors = propagate(self, op, results)
        self.lost |= op.name == "let" and bool(self.error(op.operands[0]).any())
        for value, error in zip(op.results, errors, strict=True):
            self.values[error_of(value).name] = np.full_like(error, np.inf) if self.lost else error
        return results

    def _control(self, op: Op) -> tuple[list[Array], list[Array]]:
        around, self.undecided = self.undecided, False
        if op.name == "if":
            self._ask(op.operands[0])
        both = super().evaluate(doubled(op))
        results, errors = both[: len(op.results)], both[len(op.results) :]
        if self.undecided:  # another way through may have been taken
            spoil(self, [op])
            errors = [np.full(error.shape, np.inf) for error in errors]
        self.undecided |= around
        return results, errors

    def _ask(self, condition: Value) -> None:
        self.undecided |= bool(self.error(condition).any())

    def test(self, region: Region, carried: Sequence[Array]) -> Array:
        condition = super().test(region, carried)
        self._ask(region.ops[-1].operands[0])
        return condition

    @contextmanager
    def unbounded(self) -> Iterator[None]:
        """Ops inside are evaluated without their errors."""
        before, self.bounding = self.bounding, False
        try:
            yield
        finally:
            self.bounding = before

    # -- what rules ask --------------------------------------------------------------------------------------------

    def own(self, op: Op, amount: Array) -> Array:
        """What an op itself rounds: nothing where it is not heard, and in a combine once for each of the lanes."""
        if not self.model.heard(op):
            return np.zeros_like(amount)
        return amount if self.orders is None else np.where(amount == 0, 0.0, amount * self.orders)

    def error(self, value: Value) -> Array:
        """The errors of a value."""
        return self.values[error_of(value).name]

    def inexact(self, values: Sequence[Value], axes: Sequence[str]) -> Array:
        """Where, over axes, any of the values is not certain: those of other axes count in all lanes of these."""
        anywhere = np.zeros([1] * len(axes), bool)
        for value in values:
            gone = tuple(place for place, name in enumerate(value.axes) if name not in axes)
            found = np.asarray((self.error(value) > 0).any(axis=gone))
            anywhere = anywhere | self.align(found, tuple(name for name in value.axes if name in axes), tuple(axes))
        return anywhere

    def terms(self, op: Op, axes: Sequence[str]) -> Array:
        """How many valid lanes an op along an axis has in each lane of the other axes (f64)."""
        axis, names = op.attributes["axis"], self.kernel.order({*axes, op.attributes["axis"]})
        valid = self.valid(self.kernel.decided_along(axis, names), names)
        place = names.index(axis)
        return np.asarray(valid.sum(axis=place) * (self.size(axis) / valid.shape[place]), dtype=np.float64)

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
    def on_errors(self, memory: dict[str, Array] | None = None) -> Iterator[None]:
        """Loads and stores inside go to the errors of the memory's elements, or to other arrays of f64."""
        before, poison = self.memory, self.poison
        self.memory = self.error_memory if memory is None else memory
        self.poison = lambda dtype, shape: np.zeros(shape)
        try:
            yield
        finally:
            self.memory, self.poison = before, poison


def _in_f64(op: Op, attributes: Mapping[str, Any]) -> Op:
    return replace(
        op,
        operands=tuple(replace(value, dtype=F64) for value in op.operands),
        results=tuple(replace(value, dtype=F64) for value in op.results),
        attributes={**op.attributes, **attributes},
    )
