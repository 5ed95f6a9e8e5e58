"""What mutators are made of: one change to a kernel, at an op or an axis, and the ways to make one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Axis, Bound, Kernel, Op, Region, Value, walk


@dataclass(frozen=True)
class Change:
    """A kernel with one fault: `at` is the op or axis of the original that is wrong now, `what` says how.

    The axes that values vary over may be out of date: whoever takes a change infers them anew.
    """

    at: Op | Axis
    what: str
    kernel: Kernel


Mutator = Callable[[Kernel], Iterator[Change]]
# What takes an op's place: another op, several of which the last gives its results, or a value that is there already.
InPlace = Op | Sequence[Op] | Value
OpMutator = Callable[[Kernel, Op], Iterator[tuple[str, InPlace]]]


def on_ops(*names: str) -> Callable[[OpMutator], Mutator]:
    """A mutator from a function of one op, called for every op of those names."""

    def mutator(function: OpMutator) -> Mutator:
        def changes(kernel: Kernel) -> Iterator[Change]:
            for op in walk(kernel.body):
                if op.name in names:
                    for what, new in function(kernel, op):
                        yield Change(op, what, put(kernel, op, new))

        changes.__doc__, changes.__name__ = function.__doc__, function.__name__
        return changes

    return mutator


def put(kernel: Kernel, op: Op, new: InPlace) -> Kernel:
    """The kernel with something else in an op's place."""
    if isinstance(new, Value):
        return _used_instead(replace(kernel, body=_put(kernel.body, op, ())), op.result, new)
    return replace(kernel, body=_put(kernel.body, op, (new,) if isinstance(new, Op) else new))


def _put(region: Region, old: Op, new: Sequence[Op]) -> Region:
    ops: list[Op] = []
    for op in region.ops:
        if op is old:
            ops += new
        else:
            ops.append(replace(op, regions=tuple(_put(inner, old, new) for inner in op.regions)))
    return replace(region, ops=tuple(ops))


def _used_instead(kernel: Kernel, old: Value, new: Value) -> Kernel:
    def region(each: Region) -> Region:
        return replace(each, ops=tuple(op(inner) for inner in each.ops))

    def op(each: Op) -> Op:
        operands = tuple(new if value.name == old.name else value for value in each.operands)
        return replace(each, operands=operands, regions=tuple(region(inner) for inner in each.regions))

    return replace(kernel, body=region(kernel.body))


def put_axis(kernel: Kernel, axis: Axis, new: Axis) -> Kernel:
    """The kernel with an axis changed, of the same name."""
    return replace(kernel, axes=tuple(new if each.name == axis.name else each for each in kernel.axes))


def attribute(op: Op, **changed: object) -> Op:
    """The op with attributes changed."""
    return replace(op, attributes={**op.attributes, **changed})


def without(op: Op, name: str) -> Op:
    """The op without an attribute."""
    return replace(op, attributes={key: value for key, value in op.attributes.items() if key != name})


def through(op: Op, place: int, dtype: DType) -> list[Op]:
    """The op, with its operand of that place rounded to a narrower dtype and back."""
    value = op.operands[place]
    down, up = (Value(f"mutant_{kind}", kept, value.axes) for kind, kept in (("down", dtype), ("up", value.dtype)))
    operands = (*op.operands[:place], up, *op.operands[place + 1 :])
    return [*_there_and_back(op, value, down, up), replace(op, operands=operands)]


def into(op: Op, dtype: DType) -> list[Op]:
    """The op, with its result rounded to a narrower dtype and back."""
    wide, down = (
        Value(f"mutant_{kind}", kept, op.result.axes) for kind, kept in (("wide", op.result.dtype), ("down", dtype))
    )
    return [replace(op, results=(wide,)), *_there_and_back(op, wide, down, op.result)]


def _there_and_back(op: Op, value: Value, down: Value, up: Value) -> list[Op]:
    return [
        Op("cast", (value,), (down,), location=op.location),
        Op("cast", (down,), (up,), location=op.location),
    ]


@dataclass(frozen=True)
class BoundList:
    """The bounds of an axis, or of an op that has some, and the kernel with others in their place."""

    at: Op | Axis
    bounds: tuple[Bound, ...]
    kernel: Kernel

    def change(self, what: str, place: int, instead: Iterable[Bound]) -> Change:
        """The change that puts other bounds in the place of one."""
        bounds = (*self.bounds[:place], *instead, *self.bounds[place + 1 :])
        if isinstance(self.at, Op):
            return Change(self.at, what, put(self.kernel, self.at, attribute(self.at, bounds=bounds)))
        return Change(self.at, what, put_axis(self.kernel, self.at, replace(self.at, bounds=bounds)))


def bound_lists(kernel: Kernel) -> Iterator[BoundList]:
    """All bounds of a kernel."""
    for axis in kernel.axes:
        yield BoundList(axis, axis.bounds, kernel)
    for op in walk(kernel.body):
        yield BoundList(op, op.attributes.get("bounds", ()), kernel)
