"""The form that the emitter prints: power-of-two extents, explicit edges, and nothing that Triton cannot say."""

from __future__ import annotations

from dataclasses import replace

from kdsl.diagnostics import fail
from kdsl.ir.dtypes import I8, DType
from kdsl.ir.expr import Expr, function, symbol, wrap
from kdsl.ir.kernel import Axis, Bound, Kernel, Op, Scalar, walk
from kdsl.passes import run_passes

from .expressions import EXPRESSIONS

NAME = "gpu"
IMMEDIATE_OPS = frozenset(["constant", "argument", "index", "in_bounds"])
OTHER_OPS = frozenset(["broadcast", "reduce", "dot", "reshape", "load", "store", "for", "yield"])
# What tl.dot multiplies, and the fewest lanes of its contracted axis: an instruction's worth on NVIDIA (Triton's
# min_dot_size: 32 bytes of 8-bit operands, 16 lanes of others).
DOT_DTYPES = frozenset({"i8", "f16", "bf16", "f32", "f64"})


def legalize(kernel: Kernel) -> Kernel:
    """The kernel for the emitter. Raises KdslError: K0301 an op, K0302 a dtype, K0303 a reshape that Triton lacks."""
    check(kernel)
    padded = widen_contracted_axes(run_passes(kernel, ["pad_extents"]))
    return run_passes(padded, ["explicit_edges", "fold", "cse", "dce"])


def check(kernel: Kernel) -> None:
    """Raise KdslError for the first thing that Triton cannot do."""
    for parameter in kernel.parameters:
        if isinstance(parameter, Scalar) and parameter.dtype.name == "f64":
            # A launch passes every Python float as fp32.
            raise fail("K0302", kernel.location, target=NAME, dtype="f64", what="scalar arguments")
    for op in walk(kernel.body):
        if op.name not in EXPRESSIONS.keys() | IMMEDIATE_OPS | OTHER_OPS:
            raise _refusal(op, f"it has no {op.name}", "write it with operations that the target has")
        if op.name == "dot":
            _check_dot(kernel, op)


def _check_dot(kernel: Kernel, op: Op) -> None:
    free = [len(kernel.tile_axes(value)) - 1 for value in op.operands]
    if max(free) > 1 and min(free) > 0:
        raise _refusal(op, "a dot operand has more than one free tile axis", "loop over one of them, or reshape")
    if min(free) > 0 and op.operands[0].dtype.name not in DOT_DTYPES:
        raise fail("K0302", op.location, target=NAME, dtype=op.operands[0].dtype, what="dot")


def _refusal(op: Op, problem: str, instead: str) -> Exception:
    return fail("K0301", op.location, target=NAME, problem=problem, instead=instead)


def is_matmul(kernel: Kernel, op: Op) -> bool:
    """Whether a dot becomes tl.dot; with a vector on one side it is a product and a sum."""
    return all(len(kernel.tile_axes(value)) > 1 for value in op.operands)


def least_lanes(kernel: Kernel) -> dict[str, int]:
    """The fewest lanes that each contracted axis may have."""
    least: dict[str, int] = {}
    for op in walk(kernel.body):
        if op.name == "dot" and is_matmul(kernel, op):
            axis, needed = op.attributes["axis"], _fewest(op.operands[0].dtype)
            least[axis] = max(least.get(axis, 1), needed)
    return least


def _fewest(dtype: DType) -> int:
    return 32 if dtype == I8 else 16


def widen_contracted_axes(kernel: Kernel) -> Kernel:
    """The kernel with contracted axes wide enough for tl.dot; surplus lanes are invalid. Runs while edges are implicit.

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
