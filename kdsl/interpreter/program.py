"""Programs under evaluation: the frame that ops are evaluated in, for one program or a box of them at once.

Ops are evaluated in the order of the text, each for all programs of the box. A loop runs as often as the program that
takes longest; a program that is through leaves the box, or where the others surround it, stays and touches no memory,
as does one that a branch or a while leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from kdsl.analysis import validity
from kdsl.diagnostics import KdslError, fail
from kdsl.interpreter.memory import Poison, bound_extent
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Bound, Kernel, Op, Region, walk
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS
from kdsl.ir.type_rules import axis_bounds

slacks = lru_cache(maxsize=4096)(validity.slacks)


def evaluate(
    kernel: Kernel, memory: dict[str, Array], scalars: dict[str, Any], place: Mapping[str, int | range], poison: Poison
) -> None:
    """Run a program, or a box of programs, on the memory."""
    with np.errstate(all="ignore"):  # lanes that mean nothing overflow and divide by zero all the time
        Program(kernel, memory, scalars, place, poison).run(kernel.body, [])


class Program:
    """One program, or a box of programs, and the values of its ops so far.

    `place` gives the point or points of each program axis. A loop axis stands at one point. `companions` are the
    prefixes of names under which a subclass keeps more arrays beside each value.
    """

    companions: tuple[str, ...] = ()

    def __init__(
        self,
        kernel: Kernel,
        memory: dict[str, Array],
        scalars: dict[str, Any],
        place: Mapping[str, int | range],
        poison: Poison,
    ) -> None:
        self.kernel, self.memory, self.scalars, self.poison = kernel, memory, scalars, poison
        self.points: dict[str, range] = {
            axis.name: range(bound_extent(axis.extent)) for axis in kernel.axes if axis.kind == "tile"
        }
        self.points |= {
            name: place if isinstance(place, range) else range(place, place + 1) for name, place in place.items()
        }
        self.values: dict[str, Array] = {}
        self.integers: dict[str, Array] = {}  # those that the kernel declares, once they are known
        self.program_axes = tuple(axis.name for axis in kernel.program_axes)
        # Which programs run at all, over the program axes; None for all of them.
        self.activity: Array | None = None

    def run(self, region: Region, arguments: Sequence[Array]) -> list[Array]:
        """Evaluate a region; gives what it yields."""
        for value, array in zip(region.arguments, arguments, strict=True):
            self.values[value.name] = array
        for op in region.ops:
            if op.name == "yield":
                return [self.values[value.name] for value in op.operands]
            for value, array in zip(op.results, self.evaluate(op), strict=True):
                self.values[value.name] = array
        return []

    def evaluate(self, op: Op) -> list[Array]:
        """The results of one op, each of its value's dtype and rank."""
        spec = OPS[op.name]
        operands = [self.values[value.name] for value in op.operands]
        if spec.pointwise is not None:
            axes = op.result.axes
            aligned = [self.align(array, value.axes, axes) for array, value in zip(operands, op.operands, strict=True)]
            if len(aligned) == 1:
                aligned = [_plain(aligned[0])]
            return [np.asarray(spec.pointwise(*aligned)).astype(op.result.dtype.numpy, copy=False)]
        assert spec.evaluate is not None, op.name
        return spec.evaluate(self, op, operands)

    # -- what ops ask of their frame -----------------------------------------------------------------------------

    def align(self, array: Array, axes: Sequence[str], to: Sequence[str]) -> Array:
        if axes == to:
            return array
        return array.reshape([array.shape[axes.index(name)] if name in axes else 1 for name in to])

    def form(self, form: Expr, axes: Sequence[str]) -> Array:
        environment = {
            integer.name: self.align(self.integers[integer.name], integer.axes, axes)
            for integer in self.kernel.integers
            if integer.name in form.symbols
        }
        for name in form.symbols & self.points.keys():
            points = self.points[name]
            lanes = np.arange(points.start, points.stop, points.step, dtype=np.int64)
            environment[name] = lanes.reshape([-1 if name == other else 1 for other in axes])
        value = np.asarray(form.evaluate(environment), dtype=np.int64)
        return value.reshape([1] * len(axes)) if value.ndim != len(axes) else value

    def holds(self, bounds: Sequence[Bound], axes: Sequence[str]) -> Array:
        inside = np.ones([1] * len(axes), dtype=bool)
        for slack in (slack for bound in bounds for slack in slacks(bound)):
            if not self.never_negative(slack):
                inside = inside & (self.form(slack, axes) >= 0)
        return inside

    def never_negative(self, form: Expr) -> bool:
        """Whether an affine form is seen to be at least zero in all lanes from the ends of its axes alone."""
        if form.affine is None or form.affine[1].keys() - self.points.keys():
            return False
        least, coefficients = form.affine
        for name, coefficient in coefficients.items():
            points = self.points[name]
            if not points:
                return False
            least += min(coefficient * points[0], coefficient * points[-1])
        return least >= 0

    def valid(self, of: Sequence[str], axes: Sequence[str]) -> Array:
        return self.holds(axis_bounds(self.kernel, of), axes)

    def active(self, axes: Sequence[str]) -> Array:
        if self.activity is None:
            return np.ones([1] * len(axes), dtype=bool)
        names = self.program_axes
        others = tuple(place for place, name in enumerate(names) if name not in axes)
        return self.align(np.asarray(self.activity.any(axis=others)), [name for name in names if name in axes], axes)

    def size(self, axis: str) -> int:
        return len(self.points[axis])

    def fault(self, op: Op, message: str, axes: Sequence[str], lane: Sequence[Any]) -> KdslError:
        return fail("K0601", op.location, access=message, place=self.at(axes, lane))

    def failed(self, op: Op, message: str) -> KdslError:
        return fail("K0602", op.location, message=message, place=self.at((), ()))

    def show(self, message: str, arrays: Sequence[Array]) -> None:
        print(f"program {self.program}: {message}", *(np.squeeze(array) for array in arrays))

    def name_integer(self, name: str, array: Array) -> None:
        self.integers[name] = array

    def at(self, axes: Sequence[str], lane: Sequence[int]) -> str:
        """Where a lane of an array over axes is: the program, then loops, lanes, and integers that are named."""
        alone = (name for name in (*self.program_axes, *self.points) if len(self.points[name]) == 1)
        places = {name: self.points[name][0] for name in alone}
        places |= {name: self.points[name][int(place)] for name, place in zip(axes, lane, strict=True)}
        known = {integer.name: integer.axes for integer in self.kernel.integers if integer.name in self.integers}
        for name, over in known.items():
            if set(over) <= places.keys():
                array = np.broadcast_to(self.integers[name], [self.size(axis) for axis in over])
                places[name] = int(array[tuple(self.points[axis].index(places[axis]) for axis in over)])
        return ", ".join(f"{name} = {place}" for name, place in places.items()) or "there is but one program"

    @property
    def program(self) -> dict[str, int]:
        """The place in the grid of the program, or of the first one of a box."""
        return {name: self.points[name][0] for name in self.program_axes}

    # -- branches --------------------------------------------------------------------------------------------------

    def branch(self, op: Op, condition: Array) -> list[Array]:
        """Each region for the programs that take it; where both have some, the results merge by select."""
        taken = self._of_programs(condition, op.operands[0].axes)
        yielded = [self._branch(op, place, running) for place, running in enumerate((taken, ~taken))]
        found = [arrays for arrays in yielded if arrays is not None]
        if len(found) < 2:
            return found[0]
        return [
            np.where(self.align(condition, op.operands[0].axes, result.axes), *arms)
            for result, *arms in zip(op.results, *found, strict=True)
        ]

    def _branch(self, op: Op, place: int, running: Array) -> list[Array] | None:
        """What a region yields, over the axes of the results; None where no program takes it."""
        outer, region = self.activity, op.regions[place]
        running = running if outer is None else running & outer
        if not running.any():
            return None
        self.activity = None if running.all() else running
        arrays = self.run(region, [])
        self.activity = outer
        return [
            self.align(array, value.axes, result.axes)
            for array, value, result in zip(arrays, region.ops[-1].operands, op.results, strict=True)
        ]

    def _of_programs(self, condition: Array, axes: Sequence[str]) -> Array:
        """A condition, one bool a program, over the program axes. Each loop axis stands at one point."""
        loops = tuple(place for place, name in enumerate(axes) if name not in self.program_axes)
        names = [name for name in axes if name in self.program_axes]
        return self.align(condition.squeeze(loops), names, self.program_axes)

    def repeat(self, op: Op, carried: list[Array]) -> list[Array]:
        """A while: the programs for which the test fails keep what they carry, and touch no memory any more."""
        (test, body), outer = op.regions, self.activity
        while True:
            running = self.test(test, carried)
            running = running if self.activity is None else running & self.activity
            if not running.any():
                break
            self.activity = None if running.all() else running
            yielded = self._carry(body, self.run(body, carried))
            carried = [
                np.where(self.active(argument.axes), after, before)
                for argument, after, before in zip(body.arguments, yielded, carried, strict=True)
            ]
        self.activity = outer
        return carried

    def test(self, region: Region, carried: Sequence[Array]) -> Array:
        """What the test of a while says, over the program axes."""
        (condition,) = self.run(region, carried)
        return self._of_programs(condition, region.ops[-1].operands[0].axes)

    def _carry(self, body: Region, yielded: Sequence[Array]) -> list[Array]:
        """What a body yields, over the axes of its arguments."""
        return [
            self.align(array, value.axes, argument.axes)
            for array, value, argument in zip(yielded, body.ops[-1].operands, body.arguments, strict=True)
        ]

    # -- loops ---------------------------------------------------------------------------------------------------

    def iterate(self, op: Op, initial: Sequence[Array]) -> list[Array]:
        (body,), axis = op.regions, op.attributes["axis"]
        carried = [
            self.align(array, value.axes, argument.axes)
            for array, value, argument in zip(initial, op.operands, body.arguments, strict=True)
        ]
        trips = self.trips(axis)
        most = int(trips.max(initial=0))
        if bool((trips != most).any()):
            return self._iterate_unevenly(op, carried, trips)
        for step in range(most):
            carried = self._step(op, step, carried)
        return _leave(self, op, carried)

    def trips(self, axis: str) -> Array:
        """How often each program runs the body of a loop, over the program axes."""
        extent = self.kernel.axis(axis).extent
        loops = [name for name in self.kernel.order(extent.symbols) if name not in self.program_axes]
        trips = self.form(extent, [*self.program_axes, *loops])
        trips = np.maximum(trips.reshape(trips.shape[: len(self.program_axes)]), 0)
        return trips if self.activity is None else np.where(self.activity, trips, 0)

    def _step(self, op: Op, step: int, carried: list[Array]) -> list[Array]:
        (body,) = op.regions
        self.points[op.attributes["axis"]] = range(step, step + 1)
        return self._carry(body, self.run(body, carried))

    def _iterate_unevenly(self, op: Op, carried: list[Array], trips: Array) -> list[Array]:
        """A loop whose programs take turns of different number: the results of each are put down when it is through."""
        (body,), outside = op.regions, (self.points, self.values, self.integers, self.activity)
        results = [np.empty([self.size(name) for name in value.axes], value.dtype.numpy) for value in op.results]
        left = results
        most = int(trips.max())
        for step in range(most + 1):
            self._put(op, carried, left, trips == step)
            if step == most:
                break
            window = _window(self.program_axes, trips > step)
            if window:
                carried = [
                    _cut_out(array, value.axes, window) for array, value in zip(carried, body.arguments, strict=True)
                ]
                left = [_cut_out(array, value.axes, window) for array, value in zip(left, op.results, strict=True)]
                trips = _cut_out(trips, self.program_axes, window)
                self._narrow(body, window)
            running = trips > step
            self.activity = None if running.all() else running
            carried = self._step(op, step, carried)
        self.points, self.values, self.integers, self.activity = outside
        return results

    def _put(self, op: Op, carried: Sequence[Array], left: Sequence[Array], through: Array) -> None:
        if not through.any():
            return
        outer, self.activity = self.activity, through
        for array, result, value in zip(_leave(self, op, carried), left, op.results, strict=True):
            np.copyto(result, array, where=self.active(value.axes))
        self.activity = outer

    def _narrow(self, body: Region, window: Mapping[str, slice]) -> None:
        """Go on with some of the programs: their points, and their part of every value that the body uses."""
        self.points = {name: points[window.get(name, slice(None))] for name, points in self.points.items()}
        used = {value for op in walk(body) for value in op.operands}
        names = {prefix + value.name: value.axes for value in used for prefix in ("", *self.companions)}
        parts = {name: _cut_out(self.values[name], axes, window) for name, axes in names.items() if name in self.values}
        self.values = {**self.values, **parts}
        axes = {integer.name: integer.axes for integer in self.kernel.integers}
        self.integers = {name: _cut_out(array, axes[name], window) for name, array in self.integers.items()}


def _plain(array: Array) -> Array:
    """The array with a new one's strides: NumPy's exp of a number depends on the stride, even if there is but one."""
    return np.asarray(array, order="C") if array.size > 1 else array.copy()


def _leave(frame: Program, op: Op, carried: Sequence[Array]) -> list[Array]:
    """Carried values as the loop's results, which do not vary over its axis."""
    (body,), axis = op.regions, op.attributes["axis"]
    results = []
    for array, argument, result in zip(carried, body.arguments, op.results, strict=True):
        kept = tuple(name for name in argument.axes if name != axis)
        if axis in argument.axes:
            array = np.take(array, 0, axis=argument.axes.index(axis))
        results.append(frame.align(array, kept, result.axes))
    return results


def _window(names: Sequence[str], running: Array) -> dict[str, slice]:
    """The smallest slices that hold all running programs, for axes that need not be whole."""
    window = {}
    for place, name in enumerate(names):
        others = tuple(other for other in range(running.ndim) if other != place)
        points = np.flatnonzero(running.any(axis=others))
        if len(points) and points[-1] - points[0] + 1 < running.shape[place]:
            window[name] = slice(int(points[0]), int(points[-1]) + 1)
    return window


def _cut_out(array: Array, axes: Sequence[str], window: Mapping[str, slice]) -> Array:
    whole = slice(None)
    return array[
        tuple(window.get(name, whole) if size > 1 else whole for name, size in zip(axes, array.shape, strict=True))
    ]
