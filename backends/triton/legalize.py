"""The form that the emitter prints: power-of-two extents, explicit edges, and nothing that Triton cannot say."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr, function, symbol, wrap
from kdsl.ir.kernel import Axis, Bound, Kernel, walk
from kdsl.ir.ops import OPS
from kdsl.passes import run_passes

from .limits import EMITTED, LIMITS, check_combine, check_dtypes, check_values, is_matmul, refusal


def legalize(kernel: Kernel) -> Kernel:
    """The kernel for the emitter. Raises KdslError: K0301 an op, K0302 a dtype, K0303 a reshape that Triton lacks."""
    kernel = run_passes(kernel, ["drop_breakpoints"])
    check(kernel)
    padded = run_passes(kernel, ["pad_extents"])
    widened = widen_axes(padded)
    check_moved_axes(widened, {new.name for old, new in zip(padded.axes, widened.axes, strict=True) if old != new})
    return run_passes(widened, ["explicit_edges", "fold", "cse", "dce"])


def check(kernel: Kernel) -> None:
    """Raise KdslError for the first thing that Triton cannot do."""
    check_dtypes(kernel)
    outside = {value.name: op for op in walk(kernel.body) for value in op.results}
    for op in walk(kernel.body):
        if op.name not in EMITTED:
            raise refusal(op, f"it has no {op.name}", "write it with operations that the target has")
        check_values(op)
        if op.name in LIMITS:
            LIMITS[op.name](kernel, op)
        if op.name in ("reduce_by", "scan_by"):
            check_combine(op, outside)


def check_moved_axes(kernel: Kernel, widened: Container[str]) -> None:
    """Raise KdslError K0301 where lanes of a widened axis, some of which are invalid, are rearranged."""
    for op in walk(kernel.body):
        moved = [value for name, value in op.attributes.items() if name in ("source", "target")]
        if OPS[op.name].padding == "rearranged":
            moved += [op.attributes["axis"]] if "axis" in op.attributes else []
        for axis in [name for each in moved for name in (each if isinstance(each, tuple) else (each,))]:
            if axis in widened:
                problem = f"it moves lanes of {axis}, which has fewer than a dot contracts or topk takes"
                raise refusal(op, problem, "contract axes of at least 16 lanes (32 of 8-bit types)")


def least_lanes(kernel: Kernel) -> dict[str, int]:
    """The fewest lanes that axes may have which are contracted or searched."""
    least: dict[str, int] = {}
    for op in walk(kernel.body):
        if op.name == "dot" and is_matmul(kernel, op):
            axis, needed = op.attributes["axis"], _fewest(op.operands[0].dtype)
            least[axis] = max(least.get(axis, 1), needed)
        if op.name == "topk":  # tl.topk takes no more lanes than there are
            axis, needed = op.attributes["axis"], kernel.axis(op.attributes["target"]).extent.constant or 1
            least[axis] = max(least.get(axis, 1), needed)
    return least


def _fewest(dtype: DType) -> int:
    """An instruction's worth on NVIDIA (Triton's min_dot_size: 32 bytes of 8-bit operands, 16 lanes of others)."""
    return 32 if dtype.bits == 8 else 16


def widen_axes(kernel: Kernel) -> Kernel:
    """The kernel with axes wide enough for tl.dot and tl.topk; surplus lanes are invalid. For implicit edges.

    Axes whose extent is a product of tile parameters keep it: the parameters are checked instead.
    """
    least, tiles = least_lanes(kernel), {tile.name for tile in kernel.tiles}

    def widen(axis: Axis) -> Axis:
        needed = least.get(axis.name, 1)
        if needed == 1 or axis.extent.symbols & tiles or (axis.extent.constant or 0) >= needed:
            return axis
        inside = Bound(symbol(axis.name), None, axis.extent)
        # A padded extent, next_pow2(D), already comes with the bound d < D.
        bounds = axis.bounds if axis.extent.constant is None else (*axis.bounds, inside)
        return replace(axis, extent=function("max", wrap(needed), axis.extent), bounds=bounds)

    return replace(kernel, axes=tuple(widen(axis) for axis in kernel.axes))


def is_tile_product(kernel: Kernel, extent: Expr) -> bool:
    """Whether an extent is made of tile parameters and constants alone, so that a kernel can write it itself."""
    return extent.symbols <= {tile.name for tile in kernel.tiles} and not any(
        hasattr(atom, "arguments") for monomial, _ in extent.terms for atom in monomial
    )
