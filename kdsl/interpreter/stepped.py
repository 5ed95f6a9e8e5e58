"""Stepped evaluation: one program of the grid at a time, first axis outermost, ops in the order of the text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from kdsl.diagnostics import KdslError, fail
from kdsl.ir.dtypes import DType, holds_number
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Bound, Buffer, Kernel, Op, Region, Scalar
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS
from kdsl.ir.type_rules import axis_bounds

Poison = Callable[[DType, tuple[int, ...]], Array]


def worst(dtype: DType, shape: tuple[int, ...]) -> Array:
    """The default poison: NaN, or the integer with alternating bits."""
    if dtype.is_float:
        return np.full(shape, np.nan).astype(dtype.numpy)
    pattern = np.full(shape, 0xAAAAAAAAAAAAAAAA, np.uint64)
    return pattern.astype(np.bool_) if dtype.kind == "bool" else pattern.astype(dtype.numpy)


def run(
    kernel: Kernel,
    arguments: Mapping[str, Any],
    poison: Poison = worst,
    order: Literal["forward", "reverse"] = "forward",
) -> dict[str, Array]:
    """Run a bound kernel and return its written buffers by name, in argument order.

    `arguments` gives arrays (dtypes and shapes as the kernel says) and numbers by parameter name; output buffers may be
    left out and then start as poison. Nothing given is changed. `order` "reverse" runs the programs backwards, which
    changes nothing for a grid that is parallel.

    Raises KdslError: K0505 an argument is missing or has the wrong shape or dtype, K0601 an access out of bounds.
    """
    memory, scalars = take_arguments(kernel, arguments, poison)
    with np.errstate(all="ignore"):  # lanes that mean nothing overflow and divide by zero all the time
        for point in points(kernel, order):
            Program(kernel, memory, scalars, point, poison).run(kernel.body, [])
    return {buffer.name: memory[buffer.name] for buffer in kernel.written}


def points(kernel: Kernel, order: Literal["forward", "reverse"] = "forward") -> Iterator[dict[str, int]]:
    """The programs of a bound kernel's grid: a place on each program axis, the first axis outermost."""
    names = [axis.name for axis in kernel.program_axes]
    grid: Iterator[tuple[int, ...]] = itertools.product(*(range(_int(axis.extent)) for axis in kernel.program_axes))
    for point in grid if order == "forward" else list(grid)[::-1]:
        yield dict(zip(names, point, strict=True))


def _int(extent: Expr) -> int:
    if extent.constant is None:
        raise ValueError(f"extent {extent} is not bound")
    return extent.constant


def take_arguments(
    kernel: Kernel, arguments: Mapping[str, Any], poison: Poison
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays and numbers by name, checked; what may be written to is copied. Raises KdslError K0505."""
    memory: dict[str, Array] = {}
    scalars: dict[str, Any] = {}
    for name in arguments.keys() - {parameter.name for parameter in kernel.parameters}:
        raise fail("K0505", kernel.location, name=name, expected="no argument of that name", got="one")
    for parameter in kernel.parameters:
        if isinstance(parameter, Scalar):
            if parameter.name not in arguments:
                raise fail("K0505", kernel.location, name=parameter.name, expected=parameter.dtype, got="nothing")
            scalars[parameter.name] = _number(kernel, parameter, arguments[parameter.name])
            continue
        shape = tuple(_int(size) for size in parameter.shape)
        if parameter.name in arguments:
            memory[parameter.name] = _array(kernel, parameter, arguments[parameter.name], shape)
        elif parameter.role == "out":
            memory[parameter.name] = poison(parameter.dtype, shape)
        else:
            raise fail("K0505", kernel.location, name=parameter.name, expected="an array", got="nothing")
    return memory, scalars


def _number(kernel: Kernel, scalar: Scalar, given: Any) -> Any:
    if np.ndim(given) != 0 or not holds_number(scalar.dtype, np.asarray(given).item()):
        raise fail("K0505", kernel.location, name=scalar.name, expected=scalar.dtype, got=given)
    return given


def _array(kernel: Kernel, buffer: Buffer, given: Any, shape: tuple[int, ...]) -> Array:
    array = np.asarray(given) if buffer.role == "in" else np.array(given)
    if array.shape != shape or array.dtype != buffer.dtype.numpy:
        expected, got = f"{buffer.dtype}{list(shape)}", f"{array.dtype}{list(array.shape)}"
        raise fail("K0505", kernel.location, name=buffer.name, expected=expected, got=got)
    return array


class Program:
    """One program: the frame its ops are evaluated in. Program and loop axes are single points."""

    def __init__(
        self,
        kernel: Kernel,
        memory: dict[str, Array],
        scalars: dict[str, Any],
        point: dict[str, int],
        poison: Poison,
    ) -> None:
        self.kernel, self.memory, self.scalars, self.poison = kernel, memory, scalars, poison
        self.coordinates: dict[str, Array] = {
            axis.name: np.arange(_int(axis.extent), dtype=np.int64) for axis in kernel.axes if axis.kind == "tile"
        }
        self.coordinates |= {name: np.array([place], dtype=np.int64) for name, place in point.items()}
        self.values: dict[str, Array] = {}

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
            return [np.asarray(spec.pointwise(*aligned)).astype(op.result.dtype.numpy, copy=False)]
        assert spec.evaluate is not None, op.name
        return spec.evaluate(self, op, operands)

    def align(self, array: Array, axes: Sequence[str], to: Sequence[str]) -> Array:
        return array.reshape([array.shape[axes.index(name)] if name in axes else 1 for name in to])

    def form(self, form: Expr, axes: Sequence[str]) -> Array:
        environment = {
            name: self.coordinates[name].reshape([-1 if name == other else 1 for other in axes])
            for name in form.symbols
        }
        value = np.asarray(form.evaluate(environment), dtype=np.int64)
        return value.reshape([1] * len(axes)) if value.ndim != len(axes) else value

    def holds(self, bounds: Sequence[Bound], axes: Sequence[str]) -> Array:
        inside = np.ones([1] * len(axes), dtype=bool)
        for bound in bounds:
            form = self.form(bound.form, axes)
            if bound.lower is not None:
                inside = inside & (self.form(bound.lower, axes) <= form)
            if bound.upper is not None:
                inside = inside & (form < self.form(bound.upper, axes))
        return inside

    def valid(self, of: Sequence[str], axes: Sequence[str]) -> Array:
        return self.holds(axis_bounds(self.kernel, of), axes)

    def size(self, axis: str) -> int:
        return len(self.coordinates[axis])

    def fault(self, op: Op, message: str) -> KdslError:
        program = {axis.name: int(self.coordinates[axis.name][0]) for axis in self.kernel.program_axes}
        return fail("K0601", op.location, access=message, program=program)

    def iterate(self, axis: str, region: Region, carried: list[Array]) -> list[Array]:
        extent = self.kernel.axis(axis).extent
        for step in range(int(np.max(self.form(extent, sorted(extent.symbols))))):
            self.coordinates[axis] = np.array([step], dtype=np.int64)
            carried = self.run(region, carried)
            carried = [
                self.align(array, value.axes, argument.axes)
                for array, value, argument in zip(carried, region.ops[-1].operands, region.arguments, strict=True)
            ]
        return carried
