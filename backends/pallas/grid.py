"""The grid: program axes, then the loop, and the proof that no block is written twice or lies outside its tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kdsl.analysis.ranges import never_negative
from kdsl.ir.expr import Expr, Function, function, wrap
from kdsl.ir.kernel import Axis, Kernel, Op, walk

from .access import Dimension, Operand, refuse


@dataclass(frozen=True)
class Coordinate:
    """One dimension of the grid. `parallel`: its steps may run in any order, on any core."""

    name: str
    extent: Expr
    parallel: bool


def make_grid(
    kernel: Kernel, loop: Op | None, stores: Mapping[str, Op], stored: Mapping[str, Operand]
) -> tuple[tuple[Coordinate, ...], Expr | None]:
    """The coordinates, and the trip count of the loop in a program."""
    inside = {op.attributes["buffer"] for op in walk(loop.regions[0]) if op.name == "store"} if loop else set()
    coordinates = []
    for axis in kernel.program_axes:
        if kernel.order(axis.extent.symbols):
            raise refuse(None, f"the extent of {axis.name} varies over the grid", "use the largest extent", kernel)
        for name, site in stored.items():
            if axis.extent != wrap(1) and not _moves(site, axis.name):
                raise refuse(
                    stores[name],
                    f"all programs along {axis.name} write the same block of {name}",
                    f"index {name} with a variable of the grid's {axis.name}, or loop over it instead",
                )
        coordinates.append(Coordinate(axis.name, axis.extent, True))
    if loop is None:
        return tuple(coordinates), None
    axis = kernel.axis(loop.attributes["axis"])
    for name in inside:
        if not _moves(stored[name], axis.name) or kernel.order(axis.extent.symbols):
            raise refuse(
                stores[name],
                f"{name} is stored to in the loop over {axis.name}, and not in a block of its own each time",
                "store after the loop, or index it with the loop's own variable",
            )
    for name, site in stored.items():
        if name not in inside and axis.name in {s for d in site.dimensions for s in d.index.symbols}:
            raise refuse(stores[name], f"{name} is indexed with {axis.name} outside its loop", "store in the loop")
    return (*coordinates, Coordinate(axis.name, _largest(kernel, axis), False)), axis.extent


def _moves(site: Operand, coordinate: str) -> bool:
    """Whether different points of a coordinate have different blocks: it stands alone in some dimension's index."""
    for dimension in site.dimensions:
        slope = dimension.index.coefficient(coordinate)
        others = {name for name in dimension.index.symbols if name != coordinate}
        if slope is not None and slope.constant not in (None, 0) and not others:
            return True
    return False


def _largest(kernel: Kernel, axis: Axis) -> Expr:
    """A trip count that no program exceeds: that without the limits that vary over programs."""

    def bounded(expr: Expr) -> Expr | None:
        if not kernel.order(expr.symbols):
            return expr
        atom = expr.terms[0][0][0] if len(expr.terms) == 1 and len(expr.terms[0][0]) == 1 else None
        if not isinstance(atom, Function) or expr.terms[0][1] != 1:
            return None
        if atom.name == "min":
            kept = [limit for argument in atom.arguments if (limit := bounded(argument)) is not None]
            return function("min", *kept) if kept else None
        numerator = bounded(atom.arguments[0])
        if atom.name == "cdiv" and numerator is not None and not kernel.order(atom.arguments[1].symbols):
            return function("cdiv", numerator, atom.arguments[1])
        return None

    extent = bounded(axis.extent)
    if extent is None:
        problem = f"the trip count of the loop over {axis.name} has no limit that is the same for all programs"
        raise refuse(None, problem, "end the loop at the dimension's size at the latest", kernel)
    return extent


def check_inside(kernel: Kernel, op: Op, site: Operand, grid: Sequence[Coordinate]) -> None:
    """Where lanes may lie outside a tensor, the block itself must not: a grid never runs past the last block."""
    extents = {coordinate.name: coordinate.extent for coordinate in grid}
    for dimension in site.dimensions:
        if dimension.index.constant == 0:
            continue
        if dimension.axis is None:
            ends = dimension.index, dimension.extent - 1 - dimension.index
            if "bounds" in op.attributes and not all(never_negative(kernel, end) for end in ends):
                problem = f"{site.buffer.name} is met at the single point {dimension.index}, which may lie outside it"
                raise refuse(op, problem, "let a tile run along that dimension")
            continue
        assert dimension.size is not None
        last = dimension.index.substitute({name: extent - 1 for name, extent in extents.items()})
        blocks = function("cdiv", dimension.extent, dimension.size)
        if not (last == blocks - 1 or any(last == limit - 1 for limit in _fewer(blocks, dimension, last))):
            raise refuse(
                op,
                f"block {dimension.index} of {site.buffer.name} may lie outside it",
                f"run over the {dimension.extent} of {site.buffer.name} itself",
            )


def _fewer(blocks: Expr, dimension: Dimension, last: Expr) -> Iterator[Expr]:
    """Block counts that never exceed cdiv(extent, size): those of the least of several extents."""
    for monomial, _ in (last + 1).terms:
        for atom in monomial:
            if isinstance(atom, Function) and atom.name == "cdiv" and atom.arguments[1] == dimension.size:
                terms = atom.arguments[0].terms
                least = terms[0][0][0] if len(terms) == 1 and len(terms[0][0]) == 1 else None
                if isinstance(least, Function) and least.name == "min" and dimension.extent in least.arguments:
                    yield function("cdiv", atom.arguments[0], atom.arguments[1])
