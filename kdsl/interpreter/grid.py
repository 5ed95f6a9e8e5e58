"""The programs of a grid, in order and in boxes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from kdsl.interpreter.memory import bound_extent
from kdsl.ir.kernel import Kernel

Order = Literal["forward", "reverse"]
ORDERS: tuple[Order, ...] = ("forward", "reverse")
Box = Mapping[str, range]  # the points of each axis, program axes outermost first


def grid(kernel: Kernel, order: Order = "forward") -> dict[str, range]:
    """All programs of a bound kernel."""
    whole = {axis.name: range(bound_extent(axis.extent)) for axis in kernel.program_axes}
    return whole if order == "forward" else {name: points[::-1] for name, points in whole.items()}


def boxes(programs: Box, most: int) -> Iterator[dict[str, range]]:
    """The programs in order, the first axis outermost, as boxes of at most `most`: runs of consecutive programs."""
    sizes = []
    for points in list(programs.values())[::-1]:
        count = max(1, len(points))
        sizes.append(min(count, most))
        most = max(1, most // count)
    return _cut(list(programs.items()), sizes[::-1])


def _cut(programs: Sequence[tuple[str, range]], sizes: Sequence[int]) -> Iterator[dict[str, range]]:
    if not programs:
        yield {}
        return
    name, points = programs[0]
    for start in range(0, len(points), sizes[0]):
        for rest in _cut(programs[1:], sizes[1:]):
            yield {name: points[start : start + sizes[0]], **rest}


def points(kernel: Kernel, order: Order = "forward") -> Iterator[dict[str, int]]:
    """The programs one by one: a place on each program axis, the first axis outermost."""
    for box in boxes(grid(kernel, order), 1):
        yield {name: place for name, (place,) in box.items()}
