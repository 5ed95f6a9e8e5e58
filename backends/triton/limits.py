"""What Triton cannot do: one check an op, each a refusal with a code at the author's line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kdsl.diagnostics import fail
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr, Function
from kdsl.ir.kernel import Kernel, Op, Scalar
from kdsl.ir.type_rules import batch_axes

from .dtypes import SCALED_FORMATS, TYPES, is_f8, is_narrow
from .expressions import EXPRESSIONS

NAME = "gpu"
IMMEDIATE_OPS = frozenset(["constant", "argument", "index", "in_bounds", "poison"])
TILE_OPS = frozenset([
    "broadcast", "reduce", "dot", "reshape", "scan", "sort", "topk", "gather", "flip", "concat", "join", "split",
    "relabel", "histogram", "philox", "dot_scaled", "reduce_by", "scan_by",
])  # fmt: skip
STATEMENT_OPS = frozenset([
    "load", "store", "load_at", "store_at", "atomic", "atomic_cas",
    "for", "if", "while", "let", "yield", "assert", "print",
])  # fmt: skip
EMITTED = EXPRESSIONS.keys() | IMMEDIATE_OPS | TILE_OPS | STATEMENT_OPS
# What tl.dot multiplies.
DOT_DTYPES = frozenset({"i8", "f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2", "f8e4m3fnuz"})


def refusal(op: Op, problem: str, instead: str) -> Exception:
    return fail("K0301", op.location, target=NAME, problem=problem, instead=instead)


def no_dtype(op: Op, dtype: DType) -> Exception:
    return fail("K0302", op.location, target=NAME, dtype=dtype, what=op.name)


def is_matmul(kernel: Kernel, op: Op) -> bool:
    """Whether a dot becomes tl.dot; with a vector on one side it is a product and a sum."""
    return min(free_axes(kernel, op)) > 0


def free_axes(kernel: Kernel, op: Op) -> tuple[int, int]:
    """How many tile axes of its own each operand of a dot has."""
    shared = len(batch_axes(kernel, op)) + 1
    left, right = op.operands
    return len(kernel.tile_axes(left)) - shared, len(kernel.tile_axes(right)) - shared


def check_dtypes(kernel: Kernel) -> None:
    """Raise KdslError for an argument of a dtype that Triton or a launch lacks."""
    for parameter in kernel.parameters:
        if parameter.dtype.name not in TYPES:
            raise fail("K0302", kernel.location, target=NAME, dtype=parameter.dtype, what="tensors")
        # A launch passes every Python float as fp32.
        if isinstance(parameter, Scalar) and (parameter.dtype.name == "f64" or is_f8(parameter.dtype)):
            raise fail("K0302", kernel.location, target=NAME, dtype=parameter.dtype, what="scalar arguments")


def check_values(op: Op) -> None:
    for value in (*op.operands, *op.results):
        if value.dtype.name not in TYPES:
            raise no_dtype(op, value.dtype)


def check_combine(op: Op, outside: Mapping[str, Op]) -> None:
    """A combine is a function of its arguments; of other values it may use numbers."""
    (region,) = op.regions
    own = {value.name for inner in region.ops for value in inner.results} | {v.name for v in region.arguments}
    for inner in region.ops:
        for value in inner.operands:
            if value.name not in own and (value.name not in outside or outside[value.name].name != "constant"):
                raise refusal(
                    inner, f"the combine uses {value} from outside", "carry the value along as another operand"
                )


def _check_cast(kernel: Kernel, op: Op) -> None:
    """What goes by way of f32 may not be rounded on the way there."""
    source, target = op.operands[0].dtype, op.result.dtype
    special = bool(op.attributes.get("saturate")) or op.attributes.get("rounding") == "zero"
    inexact = source.name == "f64" or (source.bits >= 32 and source.is_integer and target.name == "bf16")
    if (is_f8(target) and source.name == "f64") or (special and (inexact or target.bits >= 32)):
        how = " that saturates or rounds to zero" if special else ""
        raise fail("K0302", op.location, target=NAME, dtype=source, what=f"cast to {target}{how}")


def _check_dot(kernel: Kernel, op: Op) -> None:
    if is_matmul(kernel, op) and max(free_axes(kernel, op)) > 1:
        raise refusal(op, "a dot operand has more than one free tile axis", "loop over one of them, or reshape")
    if is_matmul(kernel, op) and len(batch_axes(kernel, op)) > 1:
        raise refusal(
            op, "the operands of a dot share two tile axes that it does not contract", "loop over one of them"
        )
    if is_matmul(kernel, op) and op.operands[0].dtype.name not in DOT_DTYPES:
        raise no_dtype(op, op.operands[0].dtype)


def _check_dot_scaled(kernel: Kernel, op: Op) -> None:
    if any(len(kernel.tile_axes(value)) != 2 for value in op.operands):
        raise refusal(op, "dot_scaled takes operands of two tile axes", "loop over the others")
    for value in op.operands[::2]:
        if value.dtype.name not in SCALED_FORMATS:
            raise no_dtype(op, value.dtype)
    groups = [op.attributes["left_group"], op.attributes["right_group"]]
    for group in groups:
        if kernel.axis(op.attributes["axis"]).extent != kernel.axis(group).extent * 32:
            raise refusal(op, "a scale of dot_scaled serves 32 lanes", "repeat the scales, 32 lanes each")
    check_whole(kernel, op, [op.attributes["axis"], *groups])


def check_whole(kernel: Kernel, op: Op, axes: Iterable[str]) -> None:
    """Axes whose lanes are rearranged cannot be padded."""
    tiles = {tile.name for tile in kernel.tiles}
    for name in axes:
        extent = kernel.axis(name).extent
        if not _is_power_of_two(extent, tiles):
            raise fail("K0303", op.location, target=NAME, op=op.name, axis=name, extent=extent)


def _is_power_of_two(extent: Expr, tiles: set[str]) -> bool:
    if len(extent.terms) != 1:
        return False
    ((atoms, coefficient),) = extent.terms
    return (
        coefficient > 0
        and coefficient & (coefficient - 1) == 0
        and all(atom.name == "next_pow2" if isinstance(atom, Function) else atom.name in tiles for atom in atoms)
    )


def _check_let(kernel: Kernel, op: Op) -> None:
    if kernel.tile_axes(op.operands[0]):
        problem = f"the integer {op.attributes['integer']} varies over the lanes of a tile"
        raise refusal(op, problem, "name one for each program, or access memory at computed places")


def _rearranges(*attributes: str) -> Callable[[Kernel, Op], None]:
    def check(kernel: Kernel, op: Op) -> None:
        named = [op.attributes[attribute] for attribute in attributes]
        check_whole(kernel, op, [axis for each in named for axis in (each if isinstance(each, tuple) else (each,))])

    return check


def _check_concat(kernel: Kernel, op: Op) -> None:
    source = op.attributes["source"]
    _rearranges("source", "target")(kernel, op)
    if len({kernel.axis(name).extent for name in source}) > 1 or len(source) & (len(source) - 1):
        raise refusal(op, "it concatenates 2, 4, 8, ... parts of one size", "write unequal parts to memory one by one")


def _check_atomic(kernel: Kernel, op: Op) -> None:
    dtype, combine = op.operands[0].dtype, op.attributes["combine"]
    if dtype.bits < 32 and not (is_narrow(dtype) and combine == "add"):
        raise fail("K0302", op.location, target=NAME, dtype=dtype, what=f"atomic {combine}")


def _check_atomic_cas(kernel: Kernel, op: Op) -> None:
    dtype = op.operands[0].dtype
    if dtype.is_float or dtype.bits < 32:
        raise no_dtype(op, dtype)  # the hardware compares bits: -0.0 is not 0.0
    if op.attributes.get("masked") and any(kernel.tile_axes(value) for value in op.operands):
        raise refusal(op, "atomic_cas takes no mask", "let every lane take part, or one program do it in an `if`")


LIMITS: dict[str, Callable[[Kernel, Op], None]] = {
    "cast": _check_cast,
    "dot": _check_dot,
    "dot_scaled": _check_dot_scaled,
    "let": _check_let,
    "topk": _rearranges("target"),
    "flip": _rearranges("axis"),
    "concat": _check_concat,
    "join": _rearranges("axis"),
    "split": _rearranges("axis"),
    "relabel": _rearranges("source", "target"),
    "histogram": _rearranges("target"),
    "atomic": _check_atomic,
    "atomic_cas": _check_atomic_cas,
}
