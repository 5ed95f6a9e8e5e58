"""What moves lanes along axes: scans, sorting, gathering, joining, counting, random words; one function an op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdsl.codegen.layout import Layout, axes_of
from kdsl.ir.dtypes import BOOL, I32, DType
from kdsl.ir.expr import symbol
from kdsl.ir.kernel import Kernel, Op, Value

from .dtypes import TYPES, is_f8, is_narrow
from .expressions import ADD, ATOM, COMPARE, XOR, Text

if TYPE_CHECKING:
    from .emitter import Emitter

# The functions that tl.associative_scan combines with; a sum is tl.cumsum.
_SCANS = {
    **{"mul": "multiply", "maximum": "maximum", "minimum": "minimum", "and": "bitwise_and", "or": "bitwise_or"},
}
_BOOLEAN_SCANS = {"maximum": "bitwise_or", "or": "bitwise_or", "minimum": "bitwise_and", "and": "bitwise_and"}


def without(layout: Layout, axis: str) -> tuple[str, ...]:
    return tuple(name for name in axes_of(layout) if name != axis)


def widened(text: Text, dtype: DType) -> str:
    """Bools and 8-bit floats as integers, in which Triton moves lanes everywhere."""
    if is_f8(dtype):
        return f"{text.within(ATOM)}.to(tl.uint8, bitcast=True)"
    return f"{text.within(ATOM)}.to(tl.int8)" if dtype == BOOL else text.code


def narrowed(text: str, dtype: DType) -> Text:
    """The inverse of `widened`."""
    if is_f8(dtype):
        return Text(f"{text}.to({TYPES[dtype.name]}, bitcast=True)")
    return Text(f"{text} != 0", COMPARE) if dtype == BOOL else Text(text)


def _shape(extents: Sequence[str]) -> str:
    return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"


def scan(emitter: Emitter, op: Op) -> Text:
    (source,), combine, dtype = op.operands, op.attributes["combine"], op.result.dtype
    layout = emitter.layouts[op.result.name]
    place, reverse = layout.index(op.attributes["axis"]), ", reverse=True" if op.attributes.get("reverse") else ""
    text = emitter.full_text(source, layout)
    if dtype == BOOL:
        wide = f"{text.within(ATOM)}.to(tl.int32)"
        return Text(f"tl.associative_scan({wide}, {place}, {_BOOLEAN_SCANS[combine]}{reverse}) != 0", COMPARE)
    code = f"{text.within(ATOM)}.to(tl.float32)" if is_narrow(dtype) else text.code
    kept = "tl.float32" if is_narrow(dtype) else TYPES[dtype.name]
    if combine == "add":
        scanned = f"tl.cumsum({code}, axis={place}{reverse}, dtype={kept})"
    else:
        scanned = f"tl.associative_scan({code}, {place}, {_SCANS[combine]}{reverse})"
    return Text(f"{scanned}.to({TYPES[dtype.name]})" if is_narrow(dtype) else scanned)


def _keys(value: Value, text: Text) -> str:
    """Signed numbers in the order of the values: of 32 bits, or 64 where the values have as many."""
    if value.dtype.name == "f64":
        return f"double_key({text.code})"
    if value.dtype.is_float:
        return f"float_key({text.code})"
    if value.dtype.name == "u64":
        return f"({text.within(XOR)} ^ 9223372036854775808).to(tl.int64, bitcast=True)"
    if value.dtype == BOOL:
        return f"{text.within(ATOM)}.to(tl.int32)"
    return f"{text.within(ATOM)}.to(tl.int64) - 2147483648" if value.dtype.name == "u32" else text.code


def sort(emitter: Emitter, op: Op) -> None:
    """The order of the first operand, then every operand gathered in it."""
    key, axis = op.operands[0], op.attributes["axis"]
    layout = (*without(emitter.layouts[op.results[0].name], axis), axis)
    emitter.comment(op)
    order = emitter.scope.names.give(("order", id(op)), f"order_{axis}")
    lanes = emitter.scope.lanes(symbol(axis), axis, layout).code
    keys, descending = _keys(key, emitter.full_text(key, layout)), bool(op.attributes.get("descending"))
    emitter.write(f"{order} = {_sorter(key)}({keys}, {lanes}, {descending})")
    for value, result in zip(op.operands, op.results, strict=True):
        _take(emitter, value, layout, order, result)


def _sorter(key: Value) -> str:
    return "sorted_lanes_64" if key.dtype.bits == 64 else "sorted_lanes"


def topk(emitter: Emitter, op: Op) -> None:
    (source,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
    values, numbers = op.results
    kept = without(emitter.layouts[source.name], axis)
    layout = (*kept, axis)
    emitter.comment(op)
    lanes = emitter.scope.lanes(symbol(axis), axis, layout).code
    count = emitter.scope.extent(target)
    name = emitter.scope.names.give(("order", id(op)), f"top_{axis}")
    keys = _keys(source, emitter.full_text(source, layout))
    if source.dtype.bits == 64:
        first = emitter.scope.lanes(symbol(target), target, (*kept, target)).code
        first = f"tl.broadcast_to({first}, {emitter.scope.shape((*kept, target))})"
        emitter.write(f"{name} = tl.gather(sorted_lanes_64({keys}, {lanes}, True), {first}, {len(kept)})")
    else:
        emitter.write(f"{name} = top_lanes({keys}, {lanes}, {count})")
    _take(emitter, source, layout, name, values, (*kept, target))
    if emitter.lifetimes.used(numbers):
        placed = emitter.placed(Text(name), (*kept, target), emitter.layouts[numbers.name])
        emitter.assign(emitter.variable(numbers), placed)


def _take(
    emitter: Emitter, value: Value, layout: Layout, order: str, result: Value, given: Layout | None = None
) -> None:
    """A result: the value's lanes along its last axis, in an order that has the layout `given`."""
    if emitter.lifetimes.used(result):
        taken = f"tl.gather({widened(emitter.full_text(value, layout), value.dtype)}, {order}, {len(layout) - 1})"
        text = emitter.placed(Text(taken), given or layout, emitter.layouts[result.name])
        emitter.assign(emitter.variable(result), narrowed(text.code, value.dtype))


def gather(emitter: Emitter, op: Op) -> Text:
    """The axes that only the index has are one dimension for tl.gather. Lane numbers wrap, so none is outside."""
    (source, index), axis, scope = op.operands, op.attributes["axis"], emitter.scope
    kept = without(emitter.layouts[source.name], axis)
    new = tuple(name for name in emitter.kernel.tile_axes(op.result) if name not in kept)
    lane = emitter.full_text(index, (*kept, *new))
    lane = lane if index.dtype == I32 else Text(f"{lane.within(ATOM)}.to(tl.int32)")
    number = f"{lane.within(ADD)} & ({scope.extent(axis)} - 1)"
    if len(new) != 1:
        sizes = [*map(scope.extent, kept), " * ".join(map(scope.extent, new)) or "1"]
        number = f"tl.reshape({number}, {_shape(sizes)})"
    taken = f"tl.gather({widened(emitter.full_text(source, (*kept, axis)), source.dtype)}, {number}, {len(kept)})"
    if len(new) != 1:
        # Without any axis left, the one lane is a number.
        taken = f"tl.reshape({taken}, {scope.shape((*kept, *new))})" if kept or new else f"tl.max({taken}, axis=0)"
    placed = emitter.placed(Text(taken), (*kept, *new), emitter.layouts[op.result.name])
    return narrowed(placed.code, source.dtype)


def flip(emitter: Emitter, op: Op) -> Text:
    layout = emitter.layouts[op.result.name]
    text = widened(emitter.full_text(op.operands[0], layout), op.result.dtype)
    return narrowed(f"tl.flip({text}, {layout.index(op.attributes['axis'])})", op.result.dtype)


def concat(emitter: Emitter, op: Op) -> Text:
    """Neighbours joined pairwise, until one is left; joined lanes are brought before those of each part."""
    target, dtype = op.attributes["target"], op.result.dtype
    kept = without(emitter.layouts[op.result.name], target)
    sources = op.attributes["source"]
    parts = [
        widened(emitter.full_text(value, (*kept, axis)), dtype)
        for value, axis in zip(op.operands, sources, strict=True)
    ]
    extents, size = [emitter.scope.extent(name) for name in kept], emitter.scope.extent(sources[0])
    rank, lanes = len(kept), 1
    while len(parts) > 1:
        lanes *= 2
        shape = _shape([*extents, f"{lanes} * {size}"])
        steps = ", ".join(map(str, (*range(rank), rank + 1, rank)))
        parts = [
            f"tl.reshape(tl.permute(tl.join({a}, {b}), ({steps})), {shape})"
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    text = emitter.placed(Text(parts[0]), (*kept, target), emitter.layouts[op.result.name])
    return narrowed(text.code, dtype)


def join(emitter: Emitter, op: Op) -> Text:
    axis, dtype = op.attributes["axis"], op.result.dtype
    kept = without(emitter.layouts[op.result.name], axis)
    left, right = (widened(emitter.full_text(value, kept), dtype) for value in op.operands)
    text = emitter.placed(Text(f"tl.join({left}, {right})"), (*kept, axis), emitter.layouts[op.result.name])
    return narrowed(text.code, dtype)


def split(emitter: Emitter, op: Op) -> None:
    (value,), axis = op.operands, op.attributes["axis"]
    kept = without(emitter.layouts[value.name], axis)
    emitter.comment(op)
    names = [emitter.variable(result) for result in op.results]
    source = widened(emitter.aligned(value, (*kept, axis)), value.dtype)
    emitter.write(f"{', '.join(names)} = tl.split({source})")
    for name, result in zip(names, op.results, strict=True):
        placed = narrowed(emitter.placed(Text(name), kept, emitter.layouts[result.name]).code, value.dtype)
        if placed.code != name:
            emitter.write(f"{name} = {placed.code}")


def relabel(emitter: Emitter, op: Op) -> Text:
    source, target = op.attributes["source"], op.attributes["target"]
    layout = tuple(target if name == source else name for name in emitter.layouts[op.operands[0].name])
    return emitter.placed(emitter.operand(op.operands[0]), layout, emitter.layouts[op.result.name])


def histogram(emitter: Emitter, op: Op) -> Text:
    """tl.histogram where it counts along the only axis; else a sum of comparisons with every number."""
    (value,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
    kept = without(emitter.layouts[value.name], axis)
    bins = emitter.scope.extent(target)
    if not counts_apart(emitter.kernel, op):
        text = emitter.aligned(value, (axis,))
        inside = f"({text.within(ADD)} >= 0) & ({text.within(ADD)} < {bins})"
        numbers = text.code if value.dtype == I32 else f"{text.within(ATOM)}.to(tl.int32)"
        return Text(f"tl.histogram({numbers}, {bins}, mask={inside})")
    layout = (*kept, target, axis)
    bin_numbers = emitter.scope.lanes(symbol(target), target, layout)
    same = f"({emitter.aligned(value, layout).within(ADD)} == {bin_numbers.within(ADD)}).to(tl.int32)"
    text = Text(f"tl.sum({same}, axis={len(kept) + 1})")
    return emitter.placed(text, (*kept, target), emitter.layouts[op.result.name])


def counts_apart(kernel: Kernel, op: Op) -> bool:
    """Whether a histogram is of more than one row, or of numbers that do not fit 32 bits."""
    (value,) = op.operands
    return len(kernel.tile_axes(op.result)) > 1 or value.dtype.bits > 32 or value.dtype.name == "u32"


def philox(emitter: Emitter, op: Op) -> None:
    layout = emitter.layouts[op.results[0].name]
    words = [emitter.full(value, layout) for value in op.operands]
    names = [emitter.variable(result) for result in op.results]
    emitter.comment(op)
    emitter.write(f"{', '.join(names)} = philox({', '.join(words)}, {op.attributes['rounds']})")


def poison(emitter: Emitter, op: Op) -> Text:
    """Any value will do."""
    layout, dtype = emitter.layouts[op.result.name], op.result.dtype
    return Text(
        f"tl.zeros({emitter.scope.shape(layout)}, {TYPES[dtype.name]})"
        if layout
        else f"tl.cast(0, {TYPES[dtype.name]})"
    )
