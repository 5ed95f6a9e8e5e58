"""pad_extents: every tile axis gets a power-of-two extent, for targets whose tiles have no other.

Tile parameters count as powers of two; surplus lanes are invalid. Runs while edges are implicit.

before:
    kernel row_sum(x: in f32[M, D], y: out f32[M]) {
      size M
      size D
      program m < M
      axis d < D
      %x: f32[m, d] = load x[m, d]
      %s: f32[m] = reduce %x {axis = d, combine = add}
      store y[m] = %s
    }
after:
    kernel row_sum(x: in f32[M, D], y: out f32[M]) {
      size M
      size D
      program m < M
      axis d < next_pow2(D) where d < D
      %x: f32[m, d] = load x[m, d]
      %s: f32[m] = reduce %x {axis = d, combine = add}
      store y[m] = %s
    }
"""

from __future__ import annotations

from dataclasses import replace

from kdsl.diagnostics import fail
from kdsl.ir.expr import Expr, Function, function, symbol
from kdsl.ir.kernel import Axis, Bound, Kernel, Op, walk
from kdsl.ir.ops import OPS


def pad_extents(kernel: Kernel) -> Kernel:
    """The kernel with power-of-two tile axes. Raises KdslError K0303 for what moves lanes along another axis."""
    tiles = {tile.name for tile in kernel.tiles}
    padded = {axis.name for axis in kernel.axes if axis.kind == "tile" and not _is_power_of_two(axis.extent, tiles)}
    for op in walk(kernel.body):
        if OPS[op.name].padding == "rearranged":
            for name in _named(op):
                if name in padded:
                    extent = kernel.axis(name).extent
                    raise fail("K0303", op.location, target="the target", op=op.name, axis=name, extent=extent)
    return replace(kernel, axes=tuple(_pad(axis) if axis.name in padded else axis for axis in kernel.axes))


def _named(op: Op) -> tuple[str, ...]:
    """The axes that an op's attributes name."""
    kinds = dict(OPS[op.name].attributes)
    single = [op.attributes[name] for name, kind in kinds.items() if kind == "axis"]
    return (*single, *(axis for name, kind in kinds.items() if kind == "axes" for axis in op.attributes[name]))


def _pad(axis: Axis) -> Axis:
    inside = Bound(symbol(axis.name), None, axis.extent)
    return replace(axis, extent=function("next_pow2", axis.extent), bounds=(*axis.bounds, inside))


def _is_power_of_two(extent: Expr, tiles: set[str]) -> bool:
    if len(extent.terms) != 1:
        return False
    ((monomial, coefficient),) = extent.terms
    return (
        coefficient > 0
        and coefficient & (coefficient - 1) == 0
        and all(atom.name == "next_pow2" if isinstance(atom, Function) else atom.name in tiles for atom in monomial)
    )
