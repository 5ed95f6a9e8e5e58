"""The type rules: what each op of the table takes, and the dtype and axes of what it gives.

A rule gives the types of an op's results, or raises OpTypeError for operands or attributes that the op's row forbids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kdsl.ir import meaning
from kdsl.ir.dtypes import BOOL, F32, I32, I64, DType, holds_number
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Bound, Kernel, Op, Scalar, Value


class Type(NamedTuple):
    """The type of a value."""

    dtype: DType
    axes: tuple[str, ...]


class OpTypeError(Exception):
    """An op whose operands or attributes its row forbids; the verifier turns it into a diagnostic."""


Infer = Callable[[Kernel, Op], tuple[Type, ...]]


def union(kernel: Kernel, *axes: Iterable[str]) -> tuple[str, ...]:
    """All axes, in the kernel's order."""
    return kernel.order(name for group in axes for name in group)


def form_axes(kernel: Kernel, forms: Iterable[Expr | Bound]) -> tuple[str, ...]:
    """The axes that index forms and bounds vary over."""
    return kernel.order(name for form in forms for name in form.symbols)


def axis_bounds(kernel: Kernel, axes: Iterable[str]) -> tuple[Bound, ...]:
    """The bounds that make lanes of these axes valid."""
    return tuple(bound for name in axes for bound in kernel.axis(name).bounds)


def same(kinds: str, result: DType | None = None) -> Infer:
    """Operands of one dtype, of one of the kinds; the result has it too, or `result`."""

    def infer(kernel: Kernel, op: Op) -> tuple[Type, ...]:
        dtypes = {value.dtype for value in op.operands}
        if len(dtypes) != 1:
            raise OpTypeError(f"operands differ in dtype: {', '.join(str(value.dtype) for value in op.operands)}")
        (dtype,) = dtypes
        check_computes(dtype)
        if dtype.kind not in kinds.split():
            raise OpTypeError(f"takes {kinds.replace(' ', ' or ')} operands, not {dtype}")
        return (Type(result or dtype, union(kernel, *(value.axes for value in op.operands))),)

    return infer


def check_computes(dtype: DType) -> None:
    """Raises OpTypeError for a dtype that is for memory, casts and dots only."""
    if dtype.is_storage:
        raise OpTypeError(f"{dtype} is for storage: cast it before computing")


def select(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    condition, yes, no = op.operands
    if condition.dtype != BOOL or yes.dtype != no.dtype:
        raise OpTypeError(f"takes bool, T, T; not {condition.dtype}, {yes.dtype}, {no.dtype}")
    return (Type(yes.dtype, union(kernel, condition.axes, yes.axes, no.axes)),)


def cast(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    """The dtype is what the result says."""
    (value,), rounding = op.operands, op.attributes.get("rounding", "nearest")
    if rounding not in ("nearest", "zero"):
        raise OpTypeError(f"no rounding named {rounding}")
    if rounding == "zero" and not (value.dtype.is_float and op.result.dtype.is_float):
        raise OpTypeError(f"rounds between floats, not from {value.dtype} to {op.result.dtype}")
    if op.attributes.get("saturate") and not op.result.dtype.is_float:
        raise OpTypeError(f"saturate is for floats: a cast to {op.result.dtype} has its own rule")
    return (Type(op.result.dtype, union(kernel, *(value.axes for value in op.operands))),)


def constant(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    check_number(op.result.dtype, op.attributes["value"])
    return (Type(op.result.dtype, ()),)


def check_number(dtype: DType, value: object) -> None:
    """Raises OpTypeError unless the dtype holds the number."""
    if not holds_number(dtype, value):
        raise OpTypeError(f"{value} is no {dtype}")


def argument(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    name = op.attributes["scalar"]
    dtypes = {parameter.name: parameter.dtype for parameter in kernel.parameters if isinstance(parameter, Scalar)}
    if name not in dtypes:
        raise OpTypeError(f"no scalar argument {name}")
    return (Type(dtypes[name], ()),)


def index(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    if op.result.dtype not in (I32, I64):
        raise OpTypeError(f"an index is i32 or i64, not {op.result.dtype}")
    return (Type(op.result.dtype, form_axes(kernel, [op.attributes["form"]])),)


def in_bounds(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    return (Type(BOOL, form_axes(kernel, op.attributes["bounds"])),)


def broadcast(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (value,) = op.operands
    return (Type(value.dtype, union(kernel, value.axes, op.attributes["axes"])),)


def check_tile_axis(kernel: Kernel, value: Value, axis: str) -> None:
    """Raises OpTypeError unless the value varies over that tile axis."""
    if axis not in value.axes or kernel.axis(axis).kind != "tile":
        raise OpTypeError(f"{value} does not vary over a tile axis {axis}")


def reduce(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (source,), axis = op.operands, op.attributes["axis"]
    combine = meaning.COMBINES.get(op.attributes["combine"])
    if combine is None:
        raise OpTypeError(f"no combine named {op.attributes['combine']}")
    if axis not in source.axes or kernel.axis(axis).kind != "tile":
        raise OpTypeError(f"{source} does not vary over a tile axis {axis}")
    if source.dtype.kind not in combine.kinds:
        raise OpTypeError(f"combine {op.attributes['combine']} does not take {source.dtype}")
    check_computes(source.dtype)
    # How many lanes are valid may vary over axes that the source itself does not vary over.
    axes = union(kernel, source.axes, kernel.with_validity(kernel.decided_along(axis, source.axes)))
    return (Type(combine.result or source.dtype, tuple(name for name in axes if name != axis)),)


# How f32 operands of a dot are multiplied: in full, or rounded to tf32 or split into that many bf16 parts.
PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16", "bf16x3", "bf16x6")


def batch_axes(kernel: Kernel, op: Op) -> tuple[str, ...]:
    """The tile axes that both sides of a dot or dot_scaled vary over, but for the contracted one: each of their points
    has a product of its own.
    """
    left, right = op.operands[0], op.operands[len(op.operands) // 2]
    return tuple(name for name in kernel.tile_axes(left) if name in right.axes and name != op.attributes["axis"])


def dot(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (left, right), axis = op.operands, op.attributes["axis"]
    if axis not in left.axes or axis not in right.axes or kernel.axis(axis).kind != "tile":
        raise OpTypeError(f"{axis} is no tile axis of both operands")
    if op.attributes["precision"] not in PRECISIONS:
        raise OpTypeError(f"no precision named {op.attributes['precision']}")
    pair = {left.dtype, right.dtype}
    mixed = all(dtype.is_float and dtype.bits == 8 for dtype in pair)  # the 8-bit floats multiply with one another
    if (len(pair) > 1 and not mixed) or left.dtype.kind not in ("float", "int"):
        raise OpTypeError(f"takes two operands of one float or signed dtype, not {left.dtype} and {right.dtype}")
    dtype = left.dtype if left.dtype.bits == 64 else I32 if left.dtype.kind == "int" else F32
    axes = union(kernel, left.axes, right.axes)
    for operand in (left, right):
        validity = kernel.with_validity(kernel.decided_along(axis, operand.axes))
        if any(kernel.axis(name).kind == "tile" and name not in operand.axes for name in validity):
            raise OpTypeError(f"which lanes of {operand} are valid varies over a tile axis that it does not vary over")
        axes = union(kernel, axes, validity)
    return (Type(dtype, tuple(name for name in axes if name != axis)),)


def reshape(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (value,), source, target = op.operands, op.attributes["source"], op.attributes["target"]
    missing = [name for name in source if name not in value.axes]
    if missing:
        raise OpTypeError(f"{value} does not vary over {', '.join(missing)}")
    if set(target) & (set(value.axes) - set(source)):
        raise OpTypeError("a target axis is already an axis of the value")
    if any(kernel.axis(name).kind != "tile" for name in (*source, *target)):
        raise OpTypeError("only tile axes can be reshaped")
    if len(set(source)) != len(source) or len(set(target)) != len(target):
        raise OpTypeError("an axis is named twice")
    if axis_bounds(kernel, (*source, *target)):
        raise OpTypeError("an axis with invalid lanes cannot be reshaped")
    kept = [name for name in value.axes if name not in source]
    if any(kernel.decided_along(axis, kept) for axis in source):
        raise OpTypeError("which lanes of another axis are valid depends on a source axis")
    if lanes_of(kernel, source) != lanes_of(kernel, target):
        raise OpTypeError(f"extents differ: {lanes_of(kernel, source)} and {lanes_of(kernel, target)}")
    return (Type(value.dtype, union(kernel, set(value.axes) - set(source), target)),)


def lanes_of(kernel: Kernel, axes: Sequence[str]) -> Expr:
    """How many lanes the axes have together; computed sizes are what they are computed from."""
    computed = {size.name: size.value for size in kernel.sizes if size.value is not None}
    extent = Expr((((), 1),))
    for name in axes:
        extent = extent * kernel.axis(name).extent.substitute(computed)
    return extent


def load(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    buffer = kernel.buffer(op.attributes["buffer"])
    _check_rank(kernel, op)
    if "fill" in op.attributes:
        check_number(buffer.dtype, op.attributes["fill"])
    named = form_axes(kernel, [*op.attributes["index"], *op.attributes.get("bounds", ())])
    return (Type(buffer.dtype, kernel.with_validity(named)),)


def store(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    buffer = kernel.buffer(op.attributes["buffer"])
    _check_rank(kernel, op)
    (value,) = op.operands
    if buffer.role == "in":
        raise OpTypeError(f"{buffer.name} is an input")
    if value.dtype != buffer.dtype:
        raise OpTypeError(f"stores {value.dtype} into a tensor of {buffer.dtype}")
    covered = form_axes(kernel, op.attributes["index"])
    loose = [name for name in kernel.tile_axes(value) if name not in covered]
    if loose:
        raise OpTypeError(f"the value varies over {', '.join(loose)}, the index does not")
    return ()


def _check_rank(kernel: Kernel, op: Op) -> None:
    buffer = kernel.buffer(op.attributes["buffer"])
    if len(op.attributes["index"]) != len(buffer.shape):
        raise OpTypeError(f"{buffer.name} has {len(buffer.shape)} dimensions, the index {len(op.attributes['index'])}")


def loop(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    """Carried values: argument, yielded value and result agree, but the result has left the loop."""
    axis, (body,) = kernel.axis(op.attributes["axis"]), op.regions
    if axis.kind != "loop":
        raise OpTypeError(f"{axis.name} is no loop axis")
    if not body.ops or body.ops[-1].name != "yield":
        raise OpTypeError("the body does not end with a yield")
    yielded = body.ops[-1].operands
    if not len(op.operands) == len(body.arguments) == len(yielded):
        raise OpTypeError("initial values, arguments and yielded values differ in number")
    trips = form_axes(kernel, [axis.extent])
    types = []
    for initial, argument, final in zip(op.operands, body.arguments, yielded, strict=True):
        if not initial.dtype == argument.dtype == final.dtype:
            raise OpTypeError(f"carried {argument} changes dtype: {initial.dtype}, {argument.dtype}, {final.dtype}")
        if not set(initial.axes) | set(final.axes) <= set(argument.axes):
            raise OpTypeError(f"carried {argument} does not vary over all axes of what it is given")
        types.append(Type(argument.dtype, union(kernel, set(argument.axes) - {axis.name}, trips)))
    return tuple(types)


def nothing(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    return ()
