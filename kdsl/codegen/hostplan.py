"""The host side of a kernel, as data: what a call takes, checks, allocates and returns. Each target prints it.

An emitted function takes the input arrays and scalars in argument order, then sizes that no shape shows and tile sizes
as keywords. It reads sizes off shapes, checks dtypes, shapes and constraints, allocates outputs, launches, and returns
the written arrays in argument order (one array, or a tuple).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kdsl.ir.expr import Expr, symbol
from kdsl.ir.kernel import Buffer, Constraint, Kernel, Scalar, TileParameter


@dataclass(frozen=True)
class SizeSource:
    """Where a size comes from: dimension `dimension` of `buffer`, a keyword (both None), or `value` computed."""

    name: str
    buffer: str | None = None
    dimension: int | None = None
    value: Expr | None = None

    @property
    def is_keyword(self) -> bool:
        return self.buffer is None and self.value is None


@dataclass(frozen=True)
class HostPlan:
    """What a call does besides the kernel itself."""

    name: str
    arguments: tuple[Buffer | Scalar, ...]  # by position, in argument order: inputs, in-out arrays, scalars
    sizes: tuple[SizeSource, ...]  # in an order in which each is known before it is used
    shapes: tuple[tuple[str, tuple[Expr, ...]], ...]  # to be checked: argument arrays and their expected shapes
    constraints: tuple[Constraint, ...]
    outputs: tuple[Buffer, ...]  # to be allocated
    results: tuple[str, ...]  # names of the arrays returned
    tiles: tuple[TileParameter, ...]

    @property
    def keywords(self) -> tuple[str, ...]:
        """The sizes that the caller passes as integers."""
        return tuple(size.name for size in self.sizes if size.is_keyword)


def host_plan(kernel: Kernel) -> HostPlan:
    """The plan of a kernel whose sizes are still symbolic."""
    arguments = tuple(p for p in kernel.parameters if isinstance(p, Scalar) or p.role != "out")
    arrays = [p for p in arguments if isinstance(p, Buffer)]
    sizes: list[SizeSource] = []
    for size in kernel.sizes:
        place = next(
            (
                (buffer.name, dimension)
                for buffer in arrays
                for dimension, extent in enumerate(buffer.shape)
                if extent == symbol(size.name)
            ),
            (None, None),
        )
        # A computed size is computed even where a shape shows it: the shape is then checked against it.
        sizes.append(SizeSource(size.name, value=size.value) if size.value else SizeSource(size.name, *place))
    return HostPlan(
        kernel.name,
        arguments,
        tuple(sizes),
        tuple((buffer.name, buffer.shape) for buffer in arrays),
        kernel.constraints,
        tuple(buffer for buffer in kernel.buffers if buffer.role == "out"),
        tuple(buffer.name for buffer in kernel.written),
        kernel.tiles,
    )


def call_arguments(
    kernel: Kernel, arguments: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[list[Any], dict[str, int]]:
    """Positional arguments and keyword sizes for an emitted function, from arrays, numbers and sizes by name."""
    plan = host_plan(kernel)
    return [arguments[p.name] for p in plan.arguments], {name: sizes[name] for name in plan.keywords}
