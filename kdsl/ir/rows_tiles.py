"""Rows of the op table: what moves lanes along axes that have no invalid lanes, Philox, and scaled dots."""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.ir import errors, meaning_dots, meaning_tiles
from kdsl.ir.dtypes import F32, U8, U32, DType
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Kernel, Op, Value
from kdsl.ir.spec import OpSpec, define
from kdsl.ir.type_rules import OpTypeError, Type, axis_bounds, check_tile_axis, lanes_of, union


def _check_new(kernel: Kernel, values: Iterable[Value], axis: str) -> None:
    if kernel.axis(axis).kind != "tile" or any(axis in value.axes for value in values):
        raise OpTypeError(f"{axis} is no tile axis that is new to the operands")
    _check_whole(kernel, [axis])


def _check_whole(kernel: Kernel, axes: Iterable[str], values: Iterable[Value] = ()) -> None:
    """That no lane along the axes is invalid, of themselves or of the other axes of the values."""
    axes = tuple(axes)
    if axis_bounds(kernel, axes):
        raise OpTypeError("an axis with invalid lanes cannot be rearranged")
    others = {name for value in values for name in value.axes} - set(axes)
    if any(kernel.decided_along(axis, others) for axis in axes):
        raise OpTypeError("which lanes of another axis are valid depends on an axis that is rearranged")


def _check_same(values: Iterable[Value]) -> DType:
    dtypes = {value.dtype for value in values}
    if len(dtypes) != 1:
        raise OpTypeError(f"operands differ in dtype: {', '.join(sorted(map(str, dtypes)))}")
    return dtypes.pop()


def _flip(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (value,), axis = op.operands, op.attributes["axis"]
    check_tile_axis(kernel, value, axis)
    _check_whole(kernel, [axis], [value])
    return (Type(value.dtype, value.axes),)


define(
    OpSpec(
        "flip",
        "the lanes along an axis in reverse order",
        ("x",),
        _flip,
        (("axis", "axis"),),
        padding="rearranged",
        evaluate=meaning_tiles.flip,
        error=errors.total,
    )
)


def _concat(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    source, target = op.attributes["source"], op.attributes["target"]
    dtype = _check_same(op.operands)
    if len(source) != len(op.operands):
        raise OpTypeError("there is not one source axis for each operand")
    for value, axis in zip(op.operands, source, strict=True):
        check_tile_axis(kernel, value, axis)
    _check_whole(kernel, source, op.operands)
    total = Expr(())
    for axis in source:
        total = total + lanes_of(kernel, [axis])
    if total != lanes_of(kernel, [target]):
        raise OpTypeError(f"extents differ: {total} and {lanes_of(kernel, [target])}")
    kept = union(kernel, *(set(v.axes) - {axis} for v, axis in zip(op.operands, source, strict=True)))
    if set(kept) & {*source, target}:
        raise OpTypeError("an axis that is concatenated occurs in another operand")
    _check_new(kernel, [], target)
    return (Type(dtype, union(kernel, kept, [target])),)


define(
    OpSpec(
        "concat",
        "the lanes of each operand along its source axis, one operand after the other, along the target axis",
        ("*",),
        _concat,
        (("source", "axes"), ("target", "axis")),
        padding="rearranged",
        evaluate=meaning_tiles.concat,
        error=errors.anything,
    )
)


def _join(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    axis = op.attributes["axis"]
    _check_new(kernel, op.operands, axis)
    if kernel.axis(axis).extent.constant != 2:
        raise OpTypeError(f"{axis} does not have two lanes")
    return (Type(_check_same(op.operands), union(kernel, *(value.axes for value in op.operands), [axis])),)


def _split(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (value,), axis = op.operands, op.attributes["axis"]
    check_tile_axis(kernel, value, axis)
    _check_whole(kernel, [axis], [value])
    if kernel.axis(axis).extent.constant != 2:
        raise OpTypeError(f"{axis} does not have two lanes")
    kept = tuple(name for name in value.axes if name != axis)
    return Type(value.dtype, kept), Type(value.dtype, kept)


define(
    OpSpec(
        "join",
        "two values as the two lanes of a new axis",
        ("x", "y"),
        _join,
        (("axis", "axis"),),
        padding="rearranged",
        evaluate=meaning_tiles.join,
        error=errors.anything,
    )
)
define(
    OpSpec(
        "split",
        "the two lanes of an axis as two values",
        ("x",),
        _split,
        (("axis", "axis"),),
        padding="rearranged",
        evaluate=meaning_tiles.split,
        error=errors.anything,
    )
)


def _relabel(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (value,), source, target = op.operands, op.attributes["source"], op.attributes["target"]
    check_tile_axis(kernel, value, source)
    _check_new(kernel, op.operands, target)
    _check_whole(kernel, [source], [value])
    if lanes_of(kernel, [source]) != lanes_of(kernel, [target]):
        raise OpTypeError(f"extents differ: {lanes_of(kernel, [source])} and {lanes_of(kernel, [target])}")
    return (Type(value.dtype, union(kernel, set(value.axes) - {source}, [target])),)


define(
    OpSpec(
        "relabel",
        "the same lanes along another axis: keeps apart two uses of one axis, as in a tile plus its own transpose",
        ("x",),
        _relabel,
        (("source", "axis"), ("target", "axis")),
        padding="rearranged",
        evaluate=meaning_tiles.relabel,
        error=errors.total,
    )
)


def _philox(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    if any(value.dtype != U32 for value in op.operands):
        raise OpTypeError("takes u32 operands")
    rounds = op.attributes["rounds"]
    if not isinstance(rounds, int) or not 0 < rounds <= 16:
        raise OpTypeError(f"{rounds} is no number of rounds")
    axes = union(kernel, *(value.axes for value in op.operands))
    return (Type(U32, axes),) * 4


define(
    OpSpec(
        "philox",
        "Philox4x32 random words from four counter words and two key words (Salmon et al., SC 2011)",
        ("c0", "c1", "c2", "c3", "k0", "k1"),
        _philox,
        (("rounds", "value"),),
        evaluate=meaning_tiles.philox,
    )
)


def _dot_scaled(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    left, left_scale, right, right_scale = op.operands
    axis = op.attributes["axis"]
    for value, scale, group in (
        (left, left_scale, op.attributes["left_group"]),
        (right, right_scale, op.attributes["right_group"]),
    ):
        check_tile_axis(kernel, value, axis)
        check_tile_axis(kernel, scale, group)
        if scale.dtype != U8:
            raise OpTypeError(f"a scale is a u8 exponent, not {scale.dtype}")
        if not value.dtype.is_float:
            raise OpTypeError(f"multiplies floats, not {value.dtype}")
        if set(scale.axes) - {group} - set(value.axes):
            raise OpTypeError("a scale varies over an axis that its operand does not vary over")
    _check_whole(kernel, [axis, op.attributes["left_group"], op.attributes["right_group"]], op.operands)
    return (Type(F32, union(kernel, (set(left.axes) | set(right.axes)) - {axis})),)


define(
    OpSpec(
        "dot_scaled",
        "dot of left * 2**(left_scale - 127) and right * 2**(right_scale - 127), where each scale serves a run of "
        "equal length of lanes of the contracted axis (OCP Microscaling formats 1.0; scale 255 is NaN)",
        ("left", "left_scale", "right", "right_scale"),
        _dot_scaled,
        (("axis", "axis"), ("left_group", "axis"), ("right_group", "axis")),
        padding="rearranged",
        evaluate=meaning_dots.dot_scaled,
        error=errors.anything,
    )
)
