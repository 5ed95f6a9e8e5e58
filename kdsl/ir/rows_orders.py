"""Rows of the op table: what works along an axis of which lanes may be invalid: scans, sorting, gathering, counting."""

from __future__ import annotations

from kdsl.ir import errors, meaning, meaning_tiles
from kdsl.ir.dtypes import I32
from kdsl.ir.kernel import Kernel, Op
from kdsl.ir.spec import OpSpec, define
from kdsl.ir.type_rules import OpTypeError, Type, check_computes, check_tile_axis, union


def _counted(kernel: Kernel, op: Op, axis: str, target: str) -> tuple[str, ...]:
    """A new axis, whose lanes only count places or numbers, and those that say which of them are valid."""
    axes = kernel.with_validity([target])
    if kernel.axis(target).kind != "tile" or axis in axes or any(target in value.axes for value in op.operands):
        raise OpTypeError(f"{target} is no tile axis that is new to the operands")
    return axes


def _with_lanes(kernel: Kernel, op: Op, axis: str) -> tuple[str, ...]:
    """The axes of the operands, and those on which it depends which of their lanes along `axis` are valid."""
    axes = union(kernel, *(value.axes for value in op.operands))
    return union(kernel, axes, kernel.with_validity(kernel.decided_along(axis, axes)))


# Combines that a running fold can have: those that give their operand's dtype.
SCANS = tuple(name for name, combine in meaning.COMBINES.items() if combine.result is None)


def _scan(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (source,), axis = op.operands, op.attributes["axis"]
    combine = meaning.COMBINES.get(op.attributes["combine"])
    if combine is None or combine.result is not None:
        raise OpTypeError(f"no scan combines with {op.attributes['combine']}")
    check_tile_axis(kernel, source, axis)
    if source.dtype.kind not in combine.kinds:
        raise OpTypeError(f"combine {op.attributes['combine']} does not take {source.dtype}")
    check_computes(source.dtype)
    return (Type(source.dtype, _with_lanes(kernel, op, axis)),)


define(
    OpSpec(
        "scan",
        "the running combine of the valid lanes along an axis, up to and with each lane; `reverse` starts at the end",
        ("source",),
        _scan,
        (("axis", "axis"), ("combine", "word"), ("reverse", "flag")),
        optional=("reverse",),
        padding="excluded",
        evaluate=meaning_tiles.scan,
        error=errors.anything,
    )
)


def _sort(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    axis = op.attributes["axis"]
    if not op.operands:
        raise OpTypeError("there is nothing to sort")
    check_tile_axis(kernel, op.operands[0], axis)
    check_computes(op.operands[0].dtype)
    axes = _with_lanes(kernel, op, axis)
    return tuple(Type(value.dtype, axes) for value in op.operands)


define(
    OpSpec(
        "sort",
        "the valid lanes along an axis in the order of the first operand, the other operands carried along; stable, a "
        "NaN counts as the largest; `descending` reverses the order of unequal lanes",
        ("*",),
        _sort,
        (("axis", "axis"), ("descending", "flag")),
        optional=("descending",),
        padding="excluded",
        evaluate=meaning_tiles.sort,
        error=errors.anything,
    )
)


def _topk(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (source,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
    check_tile_axis(kernel, source, axis)
    check_computes(source.dtype)
    axes = union(kernel, set(_with_lanes(kernel, op, axis)) - {axis}, _counted(kernel, op, axis, target))
    return Type(source.dtype, axes), Type(I32, axes)


define(
    OpSpec(
        "topk",
        "the largest lanes along an axis and their lane numbers, the largest first, the lower lane first among equals; "
        "poison where there are fewer valid lanes than the target axis has",
        ("source",),
        _topk,
        (("axis", "axis"), ("target", "axis")),
        padding="excluded",
        evaluate=meaning_tiles.topk,
        error=errors.anything,
    )
)


def _gather(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (source, index), axis = op.operands, op.attributes["axis"]
    check_tile_axis(kernel, source, axis)
    if not index.dtype.is_integer:
        raise OpTypeError(f"an index is an integer, not {index.dtype}")
    kept = set(_with_lanes(kernel, op, axis)) - ({axis} - set(index.axes))
    return (Type(source.dtype, kernel.order(kept)),)


define(
    OpSpec(
        "gather",
        "source[index] along one axis of the source; poison where the index is no valid lane of it",
        ("source", "index"),
        _gather,
        (("axis", "axis"),),
        padding="excluded",
        evaluate=meaning_tiles.gather,
        error=errors.anything,
    )
)


def _histogram(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (value,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
    check_tile_axis(kernel, value, axis)
    if not value.dtype.is_integer:
        raise OpTypeError(f"counts integers, not {value.dtype}")
    check_computes(value.dtype)
    return (Type(I32, union(kernel, set(_with_lanes(kernel, op, axis)) - {axis}, _counted(kernel, op, axis, target))),)


define(
    OpSpec(
        "histogram",
        "how many valid lanes along an axis hold each of the numbers 0, 1, ... of the target axis",
        ("x",),
        _histogram,
        (("axis", "axis"), ("target", "axis")),
        padding="excluded",
        evaluate=meaning_tiles.histogram,
    )
)
