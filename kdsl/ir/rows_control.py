"""Rows of the op table: ops with regions (branches, while, reductions by a given combine), asserts, prints, poison."""

from __future__ import annotations

from kdsl.ir import errors, meaning_control
from kdsl.ir.dtypes import BOOL
from kdsl.ir.kernel import Kernel, Op, Region, Value
from kdsl.ir.spec import OpSpec, define
from kdsl.ir.type_rules import OpTypeError, Type, union


def _yielded(region: Region) -> tuple[Value, ...]:
    if not region.ops or region.ops[-1].name != "yield":
        raise OpTypeError("a region does not end with a yield")
    return region.ops[-1].operands


def _check_uniform(kernel: Kernel, condition: Value) -> None:
    if condition.dtype != BOOL or kernel.tile_axes(condition):
        raise OpTypeError(f"the condition {condition} is not one bool a program")


def _if(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (condition,) = op.operands
    _check_uniform(kernel, condition)
    if any(region.arguments for region in op.regions):
        raise OpTypeError("a branch has no arguments")
    then, otherwise = (_yielded(region) for region in op.regions)
    if [value.dtype for value in then] != [value.dtype for value in otherwise]:
        raise OpTypeError("the branches yield different dtypes")
    pairs = zip(then, otherwise, strict=True)
    return tuple(Type(a.dtype, union(kernel, condition.axes, a.axes, b.axes)) for a, b in pairs)


define(
    OpSpec(
        "if",
        "run the first region where the condition holds, else the second; the condition is one bool a program",
        ("condition",),
        _if,
        regions=2,
        padding="region",
        evaluate=meaning_control.branch,
    )
)


def _while(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    """The first region tests: it yields the condition. The second is the body. Both carry the same values."""
    test, body = op.regions
    (condition, *extra), yielded = _yielded(test), _yielded(body)
    if extra:
        raise OpTypeError("the test yields more than the condition")
    _check_uniform(kernel, condition)
    if not len(op.operands) == len(test.arguments) == len(body.arguments) == len(yielded):
        raise OpTypeError("initial values, arguments and yielded values differ in number")
    types = []
    for initial, tested, argument, final in zip(op.operands, test.arguments, body.arguments, yielded, strict=True):
        if not initial.dtype == tested.dtype == argument.dtype == final.dtype or tested.axes != argument.axes:
            raise OpTypeError(f"carried {argument} changes type")
        if not set(initial.axes) | set(final.axes) | set(condition.axes) <= set(argument.axes):
            raise OpTypeError(f"carried {argument} does not vary over all axes of what it is given")
        types.append(Type(argument.dtype, argument.axes))
    return tuple(types)


define(
    OpSpec(
        "while",
        "run the body, the second region, as long as the first yields true; both take what is carried",
        ("*",),
        _while,
        regions=2,
        padding="region",
        evaluate=meaning_control.repeat,
    )
)


def _by(kernel: Kernel, op: Op) -> tuple[str, ...]:
    """Check a combine region; gives the axes that its arguments vary over."""
    (region,), axis = op.regions, op.attributes["axis"]
    if not op.operands:
        raise OpTypeError("there is nothing to combine")
    axes = union(kernel, *(value.axes for value in op.operands))
    axes = union(kernel, axes, kernel.with_validity(kernel.decided_along(axis, axes)))
    if axis not in axes or kernel.axis(axis).kind != "tile":
        raise OpTypeError(f"the operands do not vary over a tile axis {axis}")
    wanted = [Type(value.dtype, axes) for value in op.operands]
    if [Type(value.dtype, value.axes) for value in region.arguments] != 2 * wanted:
        raise OpTypeError("the combine takes two of each operand, over all axes of the operands")
    yielded = _yielded(region)
    if [value.dtype for value in yielded] != [value.dtype for value in op.operands]:
        raise OpTypeError("the combine does not yield one of each operand")
    if any(set(value.axes) - set(axes) for value in yielded):
        raise OpTypeError("the combine yields a value that varies over another axis")
    if any(inner.name not in _IN_COMBINE and not _is_lanewise(inner) for inner in region.ops):
        raise OpTypeError("a combine holds lanewise ops only")
    own = {value.name for value in region.arguments}
    own.update(value.name for inner in region.ops for value in inner.results)
    if any(axis in value.axes and value.name not in own for inner in region.ops for value in inner.operands):
        raise OpTypeError(f"the combine uses a value from outside that varies over {axis}")
    return axes


_IN_COMBINE = frozenset({"yield", "constant", "cast", "bitcast"})


def _is_lanewise(op: Op) -> bool:
    from kdsl.ir.spec import OPS

    return op.name in OPS and OPS[op.name].pointwise is not None


def _reduce_by(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    axes = tuple(name for name in _by(kernel, op) if name != op.attributes["axis"])
    return tuple(Type(value.dtype, axes) for value in op.operands)


def _scan_by(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    axes = _by(kernel, op)
    return tuple(Type(value.dtype, axes) for value in op.operands)


define(
    OpSpec(
        "reduce_by",
        "combine the valid lanes along one axis by the region, which takes two of each operand and need only be "
        "associative; poison where no lane is valid",
        ("*",),
        _reduce_by,
        (("axis", "axis"),),
        regions=1,
        padding="excluded",
        evaluate=meaning_control.reduce_by,
        error=errors.anything,
    )
)
define(
    OpSpec(
        "scan_by",
        "the running combine of the valid lanes along an axis by the region, up to and with each lane; `reverse` "
        "starts at the end",
        ("*",),
        _scan_by,
        (("axis", "axis"), ("reverse", "flag")),
        optional=("reverse",),
        regions=1,
        padding="excluded",
        evaluate=meaning_control.scan_by,
        error=errors.anything,
    )
)


def _let(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    (value,), name = op.operands, op.attributes["integer"]
    declared = {integer.name: integer.axes for integer in kernel.integers}
    if name not in declared:
        raise OpTypeError(f"no integer named {name}")
    if not value.dtype.is_integer or value.dtype.is_storage:
        raise OpTypeError(f"names an integer, not {value.dtype}")
    if set(value.axes) - set(declared[name]):
        raise OpTypeError(f"{value} varies over axes that {name} is not declared with")
    return ()


define(
    OpSpec(
        "let",
        "name an integer, 0 where it is negative: from here on, extents, bounds and index forms may mention it",
        ("x",),
        _let,
        (("integer", "word"),),
        effect="define",
        evaluate=meaning_control.let,
    )
)


def _assert(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    if op.operands[0].dtype != BOOL:
        raise OpTypeError(f"asserts a bool, not {op.operands[0].dtype}")
    return ()


define(
    OpSpec(
        "assert",
        "stop with the message unless the condition holds in every valid lane",
        ("condition",),
        _assert,
        (("message", "text"),),
        effect="report",
        padding="predicated",
        evaluate=meaning_control.check,
    )
)
define(
    OpSpec(
        "print",
        "show values, for debugging",
        ("*",),
        lambda kernel, op: (),
        (("message", "text"),),
        effect="report",
        padding="predicated",
        evaluate=meaning_control.show,
    )
)
define(
    OpSpec(
        "breakpoint",
        "a debugger stops here; without one it does nothing, and no target has it",
        (),
        lambda kernel, op: (),
        effect="report",
        padding="predicated",
        evaluate=meaning_control.pause,
    )
)


def _poison(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    return (Type(op.result.dtype, kernel.order(op.attributes["axes"])),)


define(
    OpSpec(
        "poison",
        "a value that means nothing; to use it is an error of the kernel",
        (),
        _poison,
        (("axes", "axes"),),
        evaluate=meaning_control.poison,
    )
)
