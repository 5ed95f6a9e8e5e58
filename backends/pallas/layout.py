"""Which dimension of an array each tile axis is, for every value: two dimensions or more, a reduced axis kept as one.

Layouts are tuples of axis names, None for a dimension of size 1, as in `kdsl.codegen.layout`. What depends on nothing
but constants, indices and bounds has no layout of its own (LAZY): it is written where it is used, in the layout wanted
there, so that no mask is ever moved or transposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kdsl.codegen.layout import Layout, axes_of
from kdsl.ir.kernel import Kernel, Op, Region, Value
from kdsl.ir.ops import is_pointwise
from kdsl.ir.type_rules import batch_axes

LAZY = None
SOURCES = ("constant", "argument", "index", "in_bounds", "poison")


def is_lazy(op: Op, layouts: Mapping[str, Layout | None]) -> bool:
    """Whether an op's result depends on constants, scalars and indices alone."""
    if op.name in SOURCES:
        return True
    return (is_pointwise(op) or op.name == "broadcast") and all(layouts[v.name] is LAZY for v in op.operands)


def assign(kernel: Kernel, loaded: Mapping[str, Layout], rank: int) -> dict[str, Layout | None]:
    """A layout for every value, by name. `loaded` gives those of loads; `rank` is the least number of dimensions."""
    assigner = _Assigner(kernel, loaded, rank)
    assigner.region(kernel.body)
    return assigner.layouts


def padded(layout: Iterable[str | None], rank: int) -> Layout:
    """The layout with dimensions of size 1 in front, up to the rank."""
    names = tuple(layout)
    return (*[None] * (rank - len(names)), *names)


def widest(kernel: Kernel, axes: Sequence[str], layouts: Sequence[Layout], rank: int) -> Layout:
    """The layout of a value over `axes`, computed from operands of those layouts: that of the first of those with the
    most axes, and what it lacks where another operand has it."""
    rank = max([rank, *map(len, layouts)])
    fullest: Layout = max(layouts, key=lambda layout: len(axes_of(layout)), default=())
    best = padded(fullest, rank)
    missing = [name for name in axes if name not in best]
    names = list(best)
    for name in missing:
        places = [place for layout in layouts for place, held in enumerate(padded(layout, len(names))) if held == name]
        free = [place for place, held in enumerate(names) if held is None]
        wanted = [place for place in places if place in free]
        if wanted or free:
            # With nothing to go by, the kernel's own order: later axes are further in.
            names[(wanted or ([free[-1]] if name == axes[-1] else free))[0]] = name
        else:
            names.insert(0, name)
    return tuple(names)


def factor_layout(layout: Layout, together: Sequence[str]) -> Layout:
    """The layout in which a dot takes an operand: as it is, or batch axes first."""
    return (*together, *(name for name in axes_of(layout) if name not in together)) if together else layout


def taken_along(kernel: Kernel, op: Op) -> list[str]:
    """The tile axes of a gather's index that come in place of the axis that is gathered along, which may be itself."""
    source, index = op.operands
    return [name for name in kernel.tile_axes(index) if name not in source.axes or name == op.attributes["axis"]]


class _Assigner:
    def __init__(self, kernel: Kernel, loaded: Mapping[str, Layout], rank: int) -> None:
        self.kernel, self.loaded, self.rank = kernel, loaded, rank
        self.layouts: dict[str, Layout | None] = {}

    def region(self, region: Region) -> None:
        for op in region.ops:
            if op.name == "for":
                self.loop(op)
            elif op.regions:
                self.regions(op)
            else:
                for value in op.results:
                    self.layouts[value.name] = LAZY if is_lazy(op, self.layouts) else self.result(op, value)

    def loop(self, op: Op) -> None:
        """A carried value has the layout of what the body yields for it, as far as that does not depend on itself."""
        (body,) = op.regions
        for argument, initial in zip(body.arguments, op.operands, strict=True):
            self.layouts[argument.name] = self.layouts[initial.name]
        self.region(body)
        for argument, result, final in zip(body.arguments, op.results, body.ops[-1].operands, strict=True):
            layout = self.layouts[final.name] or ()
            axes = self.kernel.tile_axes(argument)
            self.layouts[argument.name] = self.layouts[result.name] = widest(self.kernel, axes, [layout], self.rank)
        self.region(body)

    def regions(self, op: Op) -> None:
        """while and combines: what goes round has the layout of what comes in; the operands of a combine share one."""
        arguments = op.regions[-1].arguments
        for place, argument in enumerate(arguments):
            given = [op.operands[place]] if op.name == "while" else op.operands
            layouts = [layout for value in given if (layout := self.layouts[value.name]) is not LAZY]
            layout = widest(self.kernel, self.kernel.tile_axes(argument), layouts, self.rank)
            for region in op.regions:
                self.layouts[region.arguments[place].name] = layout
        for region in op.regions:
            self.region(region)
        for result, argument in zip(op.results, arguments, strict=False):
            layout = self.of(argument)
            gone = op.attributes["axis"] if op.name == "reduce_by" else None
            self.layouts[result.name] = tuple(None if name == gone else name for name in layout)

    def result(self, op: Op, value: Value) -> Layout:
        axes = self.kernel.tile_axes(value)
        if op.name == "load":
            return self.loaded[value.name]
        if op.name == "reduce":
            source = self.of(op.operands[0])
            return tuple(None if name == op.attributes["axis"] else name for name in source)
        if op.name == "gather":
            new = next(iter(taken_along(self.kernel, op)), None)
            return tuple(new if name == op.attributes["axis"] else name for name in self.of(op.operands[0]))
        if op.name in ("topk", "relabel", "concat"):
            old = op.attributes["axis"] if op.name == "topk" else op.attributes["source"]
            old = old[0] if op.name == "concat" else old
            return tuple(op.attributes["target"] if name == old else name for name in self.of(op.operands[0]))
        if op.name == "join":
            fullest = max((axes_of(self.of(operand)) for operand in op.operands), key=len)
            rest = (name for name in axes if name not in (*fullest, op.attributes["axis"]))
            return padded((*rest, *fullest, op.attributes["axis"]), self.rank)
        if op.name == "split":
            return padded(
                (name for name in axes_of(self.of(op.operands[0])) if name != op.attributes["axis"]), self.rank
            )
        if op.name == "histogram":
            return (op.attributes["target"], None)
        if op.name in ("dot", "dot_scaled"):
            return self.product(op)
        if op.name == "reshape":
            kept = [name for name in axes_of(self.of(op.operands[0])) if name not in op.attributes["source"]]
            return padded((*kept, *op.attributes["target"]), self.rank)
        layouts = [layout for operand in op.operands if (layout := self.layouts[operand.name]) is not LAZY]
        return widest(self.kernel, axes, layouts, self.rank)

    def product(self, op: Op) -> Layout:
        together, axis = batch_axes(self.kernel, op), op.attributes["axis"]
        factors = [self.of(operand) for operand in op.operands[:: len(op.operands) // 2]]
        factors = [factor_layout(layout, together) for layout in factors]
        return (*together, *(name for layout in factors for name in layout if name not in (axis, *together)))

    def of(self, value: Value) -> Layout:
        """The layout a value is given where its own does not matter."""
        return natural(self.kernel, value, self.layouts[value.name], self.rank)


def natural(kernel: Kernel, value: Value, layout: Layout | None, rank: int) -> Layout:
    """The value's layout, or for a lazy one the kernel's order of its axes."""
    return padded(kernel.tile_axes(value), rank) if layout is LAZY else layout
