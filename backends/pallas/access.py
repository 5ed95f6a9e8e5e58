"""Which block of a tensor each load and store is: the index forms, read as block numbers in grid coordinates.

A dimension that a tile runs along is `extent*block + lane`: one block of the tile's extent a step. One that is met at a
single point is a block of one element, dropped from the value. Anything else is no block, and refused with the reason.

Blocks have two dimensions or more that a tile may lie along (Mosaic: the last a multiple of 128 or whole, the one
before it a multiple of 8 or whole), so some tensors are viewed with a dimension of size 1 more, which costs nothing:

    bias[N], a tile along N       as (1, N), block (1, BN)
    x[M, N], m a single point     as (M, 1, N), block (None, 1, BN)
    x[M], m a single point        as (M, 1, 1), block (None, 1, 1)
"""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.analysis.affine import ONE, range_of
from kdsl.codegen.layout import Layout
from kdsl.diagnostics import KdslError, fail
from kdsl.ir.dtypes import DTYPES, DType
from kdsl.ir.expr import Expr, function, wrap
from kdsl.ir.kernel import Buffer, Kernel, Op

TARGET = "tpu"


@dataclass(frozen=True)
class Dimension:
    """One dimension of a view of a tensor: `extent` elements, in blocks of `size` (None: single ones, dropped).

    `index` is the number of the block, in grid coordinates; `axis` the tile axis along it, if any.
    """

    extent: Expr
    size: Expr | None
    index: Expr
    axis: str | None = None


@dataclass(frozen=True)
class Operand:
    """A tensor as the kernel sees it: one block a step. Loads with one index share it.

    `name` is unique among operands; `dtype` is the element type at the boundary, which differs from the tensor's where
    the TPU does not store that well.
    """

    name: str
    buffer: Buffer
    dimensions: tuple[Dimension, ...]
    dtype: DType

    @property
    def layout(self) -> Layout:
        """That of the value a block is."""
        return tuple(dimension.axis for dimension in self.dimensions if dimension.size is not None)

    @property
    def block(self) -> tuple[Expr, ...]:
        """The shape of a block, without what is dropped."""
        return tuple(dimension.size for dimension in self.dimensions if dimension.size is not None)

    @property
    def reshaped(self) -> bool:
        return len(self.dimensions) != len(self.buffer.shape)


def refuse(op: Op | None, problem: str, instead: str, kernel: Kernel | None = None) -> KdslError:
    """K0308 at the op."""
    place = op.location if op is not None else None
    return fail(
        "K0308", place or (kernel.location if kernel else None), target=TARGET, problem=problem, instead=instead
    )


def operand(kernel: Kernel, op: Op, name: str, flat: bool) -> Operand:
    """The operand of a load or store. `flat` leaves one-dimensional tensors so. Raises KdslError K0308."""
    buffer = kernel.buffer(op.attributes["buffer"])
    dimensions = [_dimension(kernel, op, buffer, place, form) for place, form in enumerate(op.attributes["index"])]
    axes = [dimension.axis for dimension in dimensions if dimension.axis is not None]
    if len(set(axes)) < len(axes):
        raise refuse(op, f"{buffer.name} is accessed along a diagonal", "use a tile of its own for each dimension")
    return Operand(name, buffer, tuple(_viewed(op, buffer, dimensions, flat)), _boundary(buffer))


def _dimension(kernel: Kernel, op: Op, buffer: Buffer, place: int, form: Expr) -> Dimension:
    extent = buffer.shape[place]
    where = f"dimension {place} of {buffer.name} is indexed with {form}"
    found = range_of(kernel, form)
    whole = "index it with the tile's own index variable; halos, strides and offsets have no form on this target yet"
    if found is None or found.stride != ONE:
        raise refuse(op, f"{where}, which is not one tile with stride 1", whole)
    if found.axis is None:
        return Dimension(extent, None, form)
    axis, rest = kernel.axis(found.axis), found.start
    index = function("floordiv", rest, axis.extent)
    if function("mod", rest, axis.extent) != wrap(0):
        raise refuse(op, f"{where}, which does not start at a multiple of {axis.extent}", whole)
    if axis.extent == extent and index != wrap(0):
        raise refuse(op, f"{where}, which leaves the dimension", whole)
    return Dimension(extent, axis.extent, index, axis.name)


def _viewed(op: Op, buffer: Buffer, dimensions: list[Dimension], flat: bool) -> list[Dimension]:
    one = Dimension(wrap(1), wrap(1), wrap(0))
    if flat and len(dimensions) == 1 and dimensions[0].axis is not None:
        return dimensions
    if not any(dimension.axis for dimension in dimensions):
        return [*dimensions, one, one]
    if dimensions[-1].axis is None:
        raise refuse(
            op,
            f"the last dimension of {buffer.name} is met at a single point, and others in tiles",
            "put a dimension that is taken in tiles last: it lies along the TPU's lanes",
        )
    if len(dimensions) == 1 or dimensions[-2].axis is None:
        return [*dimensions[:-1], one, dimensions[-1]]
    return dimensions


def _boundary(buffer: Buffer) -> DType:
    """bool, and small integers that are written, cross as i32: Mosaic stores their blocks only in some shapes."""
    small = buffer.dtype.kind == "bool" or (buffer.dtype.is_integer and buffer.dtype.bits < 32 and buffer.role != "in")
    return DTYPES["i32"] if small else buffer.dtype
