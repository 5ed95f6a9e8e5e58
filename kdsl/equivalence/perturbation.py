"""Another implementation that keeps to an accuracy table: each op as wrong as it may be, in one way or another.

What the error bounds claim is checked against it. It computes in f64. An op gives its exact result, moved by up to its
allowance; sums and combines are taken in a random order, each addition as far off as its rounding may be. Programs run
in a random order. Casts round exactly, as they do on every target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdsl.equivalence import rounding
from kdsl.interpreter.grid import boxes, grid
from kdsl.interpreter.memory import take_arguments, worst
from kdsl.interpreter.program import Program
from kdsl.ir.dtypes import F32, F64, DType
from kdsl.ir.kernel import Kernel, Op
from kdsl.ir.meaning import Array, narrow
from kdsl.ir.meaning_tiles import back, lanes_of, last
from kdsl.ir.ops import OPS
from kdsl.runtime.target import AccuracyTable, accuracy_of, addition_of

# Numbers of the type already, so that nothing is rounded.
_UNROUNDED = frozenset({"maximum", "minimum", "abs", "neg", "floor", "ceil", "select", "trunc", "round", "maxnum"})
_UNROUNDED |= frozenset({"minnum", "clamp", "copysign", "fmod"})
_TYPED = frozenset({"bitcast", "dot_scaled", "store", "store_at", "atomic", "atomic_cas"})
# Ways to be wrong: by any amount, by all of it with either sign, all one way.
WAYS = ("any", "either", "up", "down")


@dataclass
class Wrongness:
    """How ops err: the table, the share of the allowance that is used, a way of WAYS, and whether results stay wide."""

    accuracy: AccuracyTable
    generator: np.random.Generator
    share: float = 1.0
    way: str = "any"
    keeps_precision: bool = False

    def noise(self, shape: tuple[int, ...]) -> Array:
        drawn = self.generator.uniform(-1, 1, shape)
        signs = {"any": drawn, "either": np.where(drawn < 0, -1.0, 1.0), "up": np.ones(shape), "down": -np.ones(shape)}
        return np.asarray(self.share * signs[self.way])


def perturbed_run(
    kernel: Kernel, arguments: Mapping[str, Any], accuracy: AccuracyTable, seed: int, share: float = 1.0
) -> dict[str, Array]:
    """Run a bound kernel with errors of up to `share` of what each op is allowed; with 0 in f64, without error.

    Intermediate f32 values keep more precision in half of the seeds. Raises KdslError as `interpreter.run` does.
    """
    memory, scalars = take_arguments(kernel, arguments, worst)
    generator = np.random.default_rng([seed, 0x9E27])
    wrong = Wrongness(accuracy, generator, share, str(generator.choice(WAYS)), share == 0 or seed % 2 == 0)
    programs = list(boxes(grid(kernel), 1))
    with np.errstate(all="ignore"):
        for place in generator.permutation(len(programs)):
            Perturbed(kernel, memory, scalars, programs[place], wrong).run(kernel.body, [])
    return {buffer.name: memory[buffer.name] for buffer in kernel.written}


class Perturbed(Program):
    """One program whose floats are f64, each as wrong as it may be."""

    def __init__(
        self,
        kernel: Kernel,
        memory: dict[str, Array],
        scalars: dict[str, Any],
        place: Mapping[str, int | range],
        wrong: Wrongness,
    ) -> None:
        super().__init__(kernel, memory, scalars, place, worst)
        self.wrong = wrong

    def show(self, message: str, arrays: Sequence[Array]) -> None:
        """Nothing: the author's prints are for their own runs."""

    def evaluate(self, op: Op) -> list[Array]:
        if op.name in ("reduce_by", "scan_by"):
            return self._combine(op)
        if not op.results or not op.results[0].dtype.is_float or op.attributes.get("precision", "ieee") != "ieee":
            return self._plain(op)
        if op.name == "dot":
            return [self._dot(op)]
        if op.name in ("reduce", "scan") and op.attributes["combine"] == "add":
            return [self._sum(op)]
        if OPS[op.name].pointwise is not None:
            return [self._compute(op)]
        return self._plain(op)

    def _plain(self, op: Op) -> list[Array]:
        """An op without rounding of its own, but for those that ask for the type: these get numbers of it."""
        if op.name in _TYPED or "precision" in op.attributes:
            for value in op.operands:
                if value.dtype.is_float:
                    array = self.values[value.name].astype(np.float64)
                    self.values[value.name] = narrow(array, value.dtype.numpy)
        return super().evaluate(op)

    def _compute(self, op: Op) -> Array:
        pointwise, dtype = OPS[op.name].pointwise, op.result.dtype
        assert pointwise is not None
        operands = [self.align(self.values[value.name], value.axes, op.result.axes) for value in op.operands]
        wide = [array if array.dtype == bool else array.astype(np.float64) for array in operands]
        exact = np.asarray(pointwise(*wide), dtype=np.float64)
        if op.name in _UNROUNDED:
            return exact
        allowed = accuracy_of(self.wrong.accuracy, op.name, dtype)
        # Half an ulp is for rounding to the type: now, or when it is stored.
        amount = max(allowed.ulp - 0.5, 0) * rounding.ulp(np.abs(exact), dtype) + allowed.absolute * (exact != 0)
        if op.name in ("exp", "exp2"):  # 1 at 0 on every target: see rounding.is_exact
            amount = np.where(wide[0] == 0, 0.0, amount)
        return self._rounded(exact + self.wrong.noise(exact.shape) * amount, dtype)

    def _rounded(self, array: Array, dtype: DType) -> Array:
        """A 16-bit result is rounded at once, so that its store rounds nothing more."""
        if self.wrong.keeps_precision and dtype in (F32, F64):
            return array
        return narrow(array, dtype.numpy).astype(np.float64)

    # -- sums ------------------------------------------------------------------------------------------------------

    def _sum(self, op: Op) -> Array:
        (source,), axis = op.operands, op.attributes["axis"]
        axes = self.kernel.order({*op.result.axes, axis})
        (lanes,), valid = lanes_of(self, op, [self.values[source.name].astype(np.float64)], axis, axes)
        lanes = np.where(valid, lanes, 0.0)
        if op.name == "reduce":
            return self._rounded(self._added(op, lanes), op.result.dtype)
        lanes = lanes[..., ::-1] if op.attributes.get("reverse") else lanes
        running = np.stack([self._added(op, lanes[..., : place + 1]) for place in range(lanes.shape[-1])], axis=-1)
        running = running[..., ::-1] if op.attributes.get("reverse") else running
        return self._rounded(back(running, axis, axes), op.result.dtype)

    def _dot(self, op: Op) -> Array:
        axis, axes = op.attributes["axis"], self.kernel.order({*op.result.axes, op.attributes["axis"]})
        valid = self.valid(self.kernel.decided_along(axis, axes), axes)
        left, right = (
            np.where(valid, self.align(self.values[value.name], value.axes, axes).astype(np.float64), 0.0)
            for value in op.operands
        )
        terms = last(self, left * right, axes, axis, axes)
        allowed = addition_of(self.wrong.accuracy, op)
        off = max(allowed.ulp - 0.5, 0) * 2.0 ** -self._accumulator(op).mantissa
        return self._rounded(self._added(op, terms * (1 + self.wrong.noise(terms.shape) * off)), op.result.dtype)

    def _accumulator(self, op: Op) -> DType:
        return F64 if op.result.dtype == F64 else F32

    def _added(self, op: Op, lanes: Array) -> Array:
        """The sum along the last dimension, in a random order: one after the other, or halves onto each other."""
        lanes = lanes[..., self.wrong.generator.permutation(lanes.shape[-1])]
        allowed = addition_of(self.wrong.accuracy, op).addition
        accumulator = self._accumulator(op)
        unit = allowed * 2.0**-accumulator.mantissa

        def plus(left: Array, right: Array) -> Array:
            total = left + right
            rounds = total != total.astype(accumulator.numpy)
            return np.asarray(total * (1 + self.wrong.noise(total.shape) * unit * rounds))

        if not lanes.shape[-1]:
            return np.zeros(lanes.shape[:-1])
        if self.wrong.generator.random() < 0.5:
            total = lanes[..., 0]
            for place in range(1, lanes.shape[-1]):
                total = plus(total, lanes[..., place])
            return total
        while lanes.shape[-1] > 1:
            half, odd = lanes.shape[-1] // 2, lanes.shape[-1] % 2
            joined = plus(lanes[..., :half], lanes[..., half : 2 * half])
            lanes = np.concatenate([joined, lanes[..., -1:]], axis=-1) if odd else joined
        return lanes[..., 0]

    # -- combines --------------------------------------------------------------------------------------------------

    def _combine(self, op: Op) -> list[Array]:
        """Neighbouring runs of lanes join at random until one is left; a scan does so for each of its lanes."""
        (region,), axis = op.regions, op.attributes["axis"]
        axes = region.arguments[0].axes
        lanes, valid = lanes_of(self, op, [self.values[value.name] for value in op.operands], axis, axes)
        if op.attributes.get("reverse"):
            lanes, valid = [array[..., ::-1] for array in lanes], valid[..., ::-1]
        count = valid.shape[-1]
        runs = [[array[..., place : place + 1] for array in (*lanes, valid)] for place in range(count)]
        if op.name == "reduce_by":
            *results, there = self._joined(op, axes, runs)
            return [np.where(there, a, np.nan if a.dtype.kind == "f" else 0)[..., 0] for a in results]
        ends = [self._joined(op, axes, runs[: place + 1])[:-1] for place in range(count)]
        results = [np.concatenate(column, axis=-1) for column in zip(*ends, strict=True)]
        return [back(array[..., ::-1] if op.attributes.get("reverse") else array, axis, axes) for array in results]

    def _joined(self, op: Op, axes: Sequence[str], runs: Sequence[list[Array]]) -> list[Array]:
        runs = list(runs)
        while len(runs) > 1:
            place = int(self.wrong.generator.integers(len(runs) - 1))
            runs[place : place + 2] = [self._pair(op, axes, runs[place], runs[place + 1])]
        return runs[0]

    def _pair(self, op: Op, axes: Sequence[str], left: list[Array], right: list[Array]) -> list[Array]:
        (region,), axis = op.regions, op.attributes["axis"]
        *first, first_valid = left
        *second, second_valid = right
        points, self.points[axis] = self.points[axis], range(1)
        results = self.run(region, [back(array, axis, axes) for array in (*first, *second)])
        self.points[axis] = points
        both = first_valid & second_valid
        place, yielded = list(axes).index(axis), region.ops[-1].operands
        moved = [np.moveaxis(self.align(a, v.axes, axes), place, -1) for a, v in zip(results, yielded, strict=True)]
        joined = [
            np.where(both, together, np.where(first_valid, a, b))
            for a, b, together in zip(first, second, moved, strict=True)
        ]
        return [*joined, first_valid | second_valid]
