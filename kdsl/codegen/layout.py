"""Layouts: in which order a target's arrays hold the tile axes of each value.

The IR has axes without order. A target's array has dimensions: a layout is a tuple with one entry for each, the name of
a tile axis or None for a dimension of size 1. Rules, from the memory outwards:

    load        the order of the tensor's dimensions
    pointwise   that of the operand with the most axes, the first of those; the others are brought to it
    reduce      the source's with the axis gone, or kept as None (`keep_reduced`), which spares later reshapes
    dot         batch axes, then the left operand's, then the right one's
    carried     what the loop's first value has; what is yielded is brought to it
    branches    the fuller of the two yielded values; the other is brought to it
    topk, concat, relabel, flip, scan, sort     the operand's, the new axis where the old one was
    join, histogram                             the new axis last
    access at computed places                   the kernel's order
"""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.ir.kernel import Kernel, Op, Region, Value
from kdsl.ir.ops import is_pointwise
from kdsl.ir.type_rules import batch_axes

Layout = tuple[str | None, ...]


def axes_of(layout: Layout) -> tuple[str, ...]:
    """The axes in a layout, without the dimensions of size 1."""
    return tuple(name for name in layout if name is not None)


def fits(layout: Layout, target: Layout) -> bool:
    """Whether an array of this layout broadcasts against one of the target's as it stands."""
    if not layout:
        return True
    return len(layout) == len(target) and all(name in (None, other) for name, other in zip(layout, target, strict=True))


def assign_layouts(kernel: Kernel, keep_reduced: bool = False) -> dict[str, Layout]:
    """A layout for every value of the kernel, by name. Uniform values have the layout ()."""
    layouts: dict[str, Layout] = {}
    _Assigner(kernel, layouts, keep_reduced).region(kernel.body)
    return layouts


class _Assigner:
    def __init__(self, kernel: Kernel, layouts: dict[str, Layout], keep_reduced: bool) -> None:
        self.kernel, self.layouts, self.keep_reduced = kernel, layouts, keep_reduced

    def region(self, region: Region) -> None:
        for op in region.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        if op.name == "for":
            (body,) = op.regions
            for argument, initial in zip(body.arguments, op.operands, strict=True):
                self.layouts[argument.name] = self.widest(argument, [initial])
            self.region(body)
            for result, argument in zip(op.results, body.arguments, strict=True):
                self.layouts[result.name] = self.layouts[argument.name]
            return
        if op.regions:
            return self.regions(op)
        for result in op.results:
            self.layouts[result.name] = self.result(op, result)

    def regions(self, op: Op) -> None:
        """Branches, while loops and combines: what a region takes has the layout of what it is given."""
        for region in op.regions:
            # A combine takes two of each operand.
            for place, argument in enumerate(region.arguments):
                self.layouts[argument.name] = self.widest(argument, self.given(op, place))
            self.region(region)
        for place, result in enumerate(op.results):
            if op.name == "if":
                yielded = [region.ops[-1].operands[place] for region in op.regions]
                self.layouts[result.name] = self.widest(result, yielded)
            else:
                layout = self.layouts[op.regions[0].arguments[place].name]
                gone = op.attributes["axis"] if op.name == "reduce_by" else None
                self.layouts[result.name] = tuple(name for name in layout if name != gone or gone is None)

    def given(self, op: Op, place: int) -> Iterable[Value]:
        """What an argument of a region is given: a carried value, or lanes of operands, which are combined alike."""
        return op.operands if op.name in ("reduce_by", "scan_by") else [op.operands[place]]

    def result(self, op: Op, result: Value) -> Layout:
        axes = self.kernel.tile_axes(result)
        if op.name == "load":
            symbols = [self.kernel.order(form.symbols) for form in op.attributes["index"]]
            return _complete([name for group in symbols for name in group if name in axes], axes)
        if op.name == "reduce":
            source, axis = self.layouts[op.operands[0].name], op.attributes["axis"]
            if self.keep_reduced:
                return _complete([None if name == axis else name for name in source], axes)
            return _complete([name for name in source if name not in (axis, None)], axes)
        if op.name == "dot":
            left, right = (axes_of(self.layouts[value.name]) for value in op.operands)
            together = batch_axes(self.kernel, op)
            return _complete([name for name in (*together, *left, *right) if name != op.attributes["axis"]], axes)
        if op.name == "reshape":
            source, target = op.attributes["source"], op.attributes["target"]
            kept = [name for name in axes_of(self.layouts[op.operands[0].name]) if name not in source]
            return _complete([*kept, *target], axes)
        if op.name in ("topk", "relabel", "split"):
            old = op.attributes["source" if op.name == "relabel" else "axis"]
            return _complete(self.renamed(op.operands[0], old, op.attributes.get("target")), axes)
        if op.name == "concat":
            source = op.attributes["source"][0]
            return _complete(self.renamed(op.operands[0], source, op.attributes["target"]), axes)
        if op.name in ("join", "histogram"):
            new = op.attributes["axis" if op.name == "join" else "target"]
            return (*self.fullest(op, tuple(name for name in axes if name != new)), new)
        if op.name == "gather":
            return self.fullest(op, axes)
        if is_pointwise(op) or op.name in ("broadcast", "bitcast", "scan", "sort", "flip", "philox"):
            return self.widest(result, op.operands)
        return axes

    def fullest(self, op: Op, axes: tuple[str, ...]) -> Layout:
        """The axes in the order of the operand that has the most of them."""
        layouts = [self.layouts[value.name] for value in op.operands]
        kept: list[list[str | None]] = [[name for name in layout if name in axes] for layout in layouts]
        return _complete(max(kept, key=len), axes)

    def renamed(self, value: Value, old: str | None, new: str | None) -> list[str | None]:
        """The axes of a value's layout with one of them renamed, or gone if it has no new name."""
        names = [new if name == old else name for name in axes_of(self.layouts[value.name])]
        return [name for name in names if name is not None]

    def widest(self, result: Value, operands: Iterable[Value]) -> Layout:
        """The layout of the operand with the most axes, and those that it lacks where the kernel's order has them."""
        axes = self.kernel.tile_axes(result)
        layouts = [self.layouts[value.name] for value in operands]
        best: Layout = max(layouts, key=lambda layout: len(axes_of(layout)), default=())
        missing = [name for name in axes if name not in best]
        if not missing:
            return best
        # A dimension of size 1 stands where an axis was reduced: that is where a new axis finds room.
        return _complete(list(best), axes) if axes_of(best) else axes


def _complete(names: list[str | None], axes: tuple[str, ...]) -> Layout:
    """The names without repeats, then missing axes put into dimensions of size 1, or in front in the kernel's order."""
    layout: list[str | None] = []
    for name in names:
        if name is None or name not in layout:
            layout.append(name)
    for name in axes:
        if name not in layout:
            place = next((place for place, held in enumerate(layout) if held is None), None)
            if place is None:
                # Keep the kernel's order among the axes that are there.
                place = sum(1 for other in layout if other is not None and axes.index(other) < axes.index(name))
                layout.insert(place, name)
            else:
                layout[place] = name
    return tuple(layout) if axes else ()
