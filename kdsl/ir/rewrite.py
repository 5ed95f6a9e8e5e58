"""Kernels made from kernels: a walk that puts other ops in an op's place, and types inferred anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Kernel, Op, Region, Value, walk
from kdsl.ir.ops import OPS
from kdsl.ir.type_rules import form_axes


class Rewriter:
    """One walk over a kernel's ops, in order, regions before the op that has them.

    A pass overrides `visit`, which gives the ops that take an op's place; where a value disappears, it says which other
    stands for it in `instead`.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.instead: dict[str, Value] = {}
        self._taken = {value.name for value in all_values(kernel)}

    def run(self) -> Kernel:
        body = self.region(self.kernel.body)  # which may change the rest of the kernel, too
        return replace(self.kernel, body=body)

    def visit(self, op: Op) -> Sequence[Op]:
        raise NotImplementedError

    def region(self, region: Region) -> Region:
        ops: list[Op] = []
        for op in region.ops:
            operands = tuple(self.instead.get(value.name, value) for value in op.operands)
            op = replace(op, operands=operands)
            if op.regions:
                op = replace(op, regions=tuple(self.region(inner) for inner in op.regions))
            ops += self.visit(op)
        return replace(region, ops=tuple(ops))

    def fresh(self, hint: str) -> str:
        """A value name that the kernel does not have: the hint, or the hint with another number."""
        name, count = hint, 0
        hint = hint.split(".")[0]
        while name in self._taken:
            count += 1
            name = f"{hint}.{count}"
        self._taken.add(name)
        return name

    def make(
        self, like: Op, name: str, operands: Sequence[Value], hint: str, dtype: DType | None = None, **attributes: Any
    ) -> Op:
        """A new op with one result, at the place in the author's source that `like` comes from."""
        placeholder = (Value("", dtype),) if dtype is not None else ()
        op = Op(name, tuple(operands), placeholder, attributes, location=like.location)
        ((result_dtype, axes),) = OPS[name].infer(self.kernel, op)
        return replace(op, results=(Value(self.fresh(hint), result_dtype, axes),))


def unused_symbol(kernel: Kernel, hint: str) -> str:
    """A name for an axis or an integer that no symbol of the kernel has: the hint, or the hint with a number."""
    taken = {each.name for group in (kernel.axes, kernel.sizes, kernel.tiles, kernel.integers) for each in group}
    name, count = hint, 0
    while name in taken:
        count += 1
        name = f"{hint}_{count}"
    return name


def all_values(kernel: Kernel) -> Iterable[Value]:
    """Every value of a kernel: results of ops and arguments of regions."""
    for op in walk(kernel.body):
        yield from op.results
        for region in op.regions:
            yield from region.arguments


def map_ops(kernel: Kernel, change: Callable[[Op], Op]) -> Kernel:
    """The kernel with every op replaced by another, those in an op's regions first."""

    def region(old: Region) -> Region:
        return replace(old, ops=tuple(op(inner) for inner in old.ops))

    def op(old: Op) -> Op:
        return change(replace(old, regions=tuple(region(inner) for inner in old.regions)))

    return replace(kernel, body=region(kernel.body))


def with_fewer_axes(kernel: Kernel) -> Kernel:
    """The kernel typed anew after forms stopped mentioning some axes: N*m + n for N = 0.

    Stores without a lane are left out: nothing happens, and their index need not name all axes of their value any more.
    """
    empty = {axis.name for axis in kernel.axes if axis.extent.constant == 0}

    def happens(op: Op) -> bool:
        named = [*form_axes(kernel, op.attributes["index"]), *(name for value in op.operands for name in value.axes)]
        return empty.isdisjoint(kernel.with_validity(named))

    def region(old: Region) -> Region:
        kept = [op for op in old.ops if op.name != "store" or happens(op)]
        return replace(old, ops=tuple(replace(op, regions=tuple(map(region, op.regions))) for op in kept))

    return retype(replace(kernel, body=region(kernel.body)))


def retype(kernel: Kernel) -> Kernel:
    """The kernel with the axes of every value inferred anew, for what changes the axes that forms mention."""
    return Retyper(kernel).run()


class Retyper(Rewriter):
    """Infers what every value varies over from the ops, the forms and the axes; what the kernel says is forgotten.

    Unless `declared` is kept: where axes have bounds, those that a carried value is only declared with still decide
    which of its lanes are valid.
    """

    declared = False

    def region(self, region: Region) -> Region:
        return replace(region, ops=tuple(new for op in region.ops for new in self.visit(op)))

    def visit(self, op: Op) -> Sequence[Op]:
        operands = [self.instead[value.name] for value in op.operands]
        added: list[Op] = []
        for place, value in enumerate(operands):
            missing = tuple(name for name in _consumed_axes(op, place) if name not in value.axes)
            if missing:
                # It varied over the axis by its validity alone, which no longer does.
                added.append(self.make(op, "broadcast", (value,), value.name, axes=missing))
                operands[place] = added[-1].result
        op = replace(op, operands=tuple(operands))
        if op.name in ("for", "while"):
            op = self.carrying(op)
        elif op.regions:
            op = replace(op, regions=tuple(self.taking(region, op) for region in op.regions))
        types = OPS[op.name].infer(self.kernel, op)
        results = tuple(replace(value, axes=axes) for value, (_, axes) in zip(op.results, types, strict=True))
        self.instead |= {value.name: value for value in results}
        return [*added, replace(op, results=results)]

    def taking(self, region: Region, op: Op) -> Region:
        """A branch, or a combine, whose arguments vary over all axes that its op combines."""
        if region.arguments:
            axes = self.kernel.order(name for value in op.operands for name in value.axes)
            lanes = self.kernel.with_validity(self.kernel.decided_along(op.attributes["axis"], axes))
            axes = self.kernel.order({*axes, *lanes})
            region = replace(region, arguments=tuple(replace(argument, axes=axes) for argument in region.arguments))
            self.instead |= {argument.name: argument for argument in region.arguments}
        return self.region(region)

    def carrying(self, op: Op) -> Op:
        """A carried value varies over what its initial and its yielded value do, and a while's over what its condition
        does: the least such axes."""
        carried = [
            self.kernel.order({*value.axes, *(argument.axes if self.declared else ())})
            for value, argument in zip(op.operands, op.regions[-1].arguments, strict=True)
        ]
        while True:
            regions: list[Region] = []
            for region in op.regions:
                arguments = tuple(replace(old, axes=axes) for old, axes in zip(region.arguments, carried, strict=True))
                self.instead |= {argument.name: argument for argument in arguments}
                regions.append(self.region(replace(region, arguments=arguments)))
            *tests, body = (region.ops[-1].operands for region in regions)
            asked = [name for test in tests for name in test[0].axes]
            wider = [self.kernel.order({*axes, *final.axes, *asked}) for axes, final in zip(carried, body, strict=True)]
            if wider == carried:
                return replace(op, regions=tuple(regions))
            carried = wider


def _consumed_axes(op: Op, place: int) -> tuple[str, ...]:
    """The axes that an operand must vary over."""
    if op.name in _ALONG or (op.name in _FIRST_ALONG and place == 0):
        return (op.attributes["axis"],)
    if op.name == "dot_scaled":
        return (op.attributes[("axis", "left_group", "axis", "right_group")[place]],)
    if op.name == "concat":
        return (op.attributes["source"][place],)
    if op.name == "relabel":
        return (op.attributes["source"],)
    return tuple(op.attributes["source"]) if op.name == "reshape" else ()


_ALONG = frozenset({"reduce", "dot", "scan", "topk", "histogram", "flip", "split"})
_FIRST_ALONG = frozenset({"sort", "gather", "reduce_by", "scan_by"})
