"""Ops that move lanes along axes: scans, sorting, gathering, joining, counting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdsl.codegen import jnp
from kdsl.codegen.jnp import ATOM, Code
from kdsl.codegen.layout import Layout, axes_of
from kdsl.ir.kernel import Op, Value

from .arrays import align, as_tuple

if TYPE_CHECKING:
    from .body import Body


def full(body: Body, value: Value, layout: Layout) -> str:
    """A value as an array of exactly the layout's shape."""
    return jnp.typed(body.tile(value, layout, whole=True), value.dtype).text


def replaced(layout: Layout, old: str, new: str) -> Layout:
    return tuple(new if name == old else name for name in layout)


def bitcast(body: Body, op: Op) -> None:
    (value,) = op.operands
    body.give(op, jnp.bitcast(body.tile(value, body.layouts[op.result.name]), value.dtype, op.result.dtype))


def scan(body: Body, op: Op) -> None:
    (source,), layout = op.operands, body.layouts[op.result.name]
    place, reverse = layout.index(op.attributes["axis"]), bool(op.attributes.get("reverse"))
    lanes = Code(full(body, source, layout))
    body.give(op, jnp.scan(lanes, op.attributes["combine"], source.dtype, place, reverse))


def sort(body: Body, op: Op) -> None:
    layout = body.layouts[op.results[0].name]
    lanes = as_tuple([full(body, value, layout) for value in op.operands])
    descending = ", descending=True" if op.attributes.get("descending") else ""
    body.give_all(op, f"sort_lanes({lanes}, {layout.index(op.attributes['axis'])}{descending})")


def topk(body: Body, op: Op) -> None:
    (source,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
    layout = replaced(body.layouts[op.results[0].name], target, axis)
    count = body.size(body.kernel.axis(target).extent)
    body.give_all(op, f"top_lanes({full(body, source, layout)}, {layout.index(axis)}, {count})")


def gather(body: Body, op: Op) -> None:
    """Lanes that are not there read the nearest: they are poison."""
    (source, index), axis, layout = op.operands, op.attributes["axis"], body.layouts[op.result.name]
    if axes_of(body.layouts[source.name]) == (axis,):
        lanes, places = full(body, source, (axis,)), full(body, index, layout)
        return body.give(op, Code(f'jnp.take({lanes}, {places}, mode="clip")'))
    if axis in layout:
        lanes, places = full(body, source, layout), full(body, index, layout)
        return body.give(op, Code(f'jnp.take_along_axis({lanes}, {places}, {layout.index(axis)}, mode="clip")'))
    lanes, places = full(body, source, (*layout, axis)), full(body, index, (*layout, None))
    return body.give(op, Code(f'jnp.take_along_axis({lanes}, {places}, -1, mode="clip")[..., 0]'))


def reshape(body: Body, op: Op) -> None:
    (value,), layout = op.operands, body.layouts[op.result.name]
    source, target = op.attributes["source"], op.attributes["target"]
    rows = tuple(name for name in axes_of(body.layouts[value.name]) if name not in source)
    tile = body.tile(value, (*rows, *source), whole=True)
    code = Code(f"{tile.at(ATOM)}.reshape({', '.join(body.sizes((*rows, *target)))})")
    body.give(op, align(code, (*rows, *target), layout))


def flip(body: Body, op: Op) -> None:
    layout = body.layouts[op.result.name]
    body.give(op, Code(f"jnp.flip({full(body, op.operands[0], layout)}, {layout.index(op.attributes['axis'])})"))


def concat(body: Body, op: Op) -> None:
    layout, target = body.layouts[op.result.name], op.attributes["target"]
    pairs = zip(op.operands, op.attributes["source"], strict=True)
    parts = [full(body, value, replaced(layout, target, axis)) for value, axis in pairs]
    body.give(op, Code(f"jnp.concatenate({as_tuple(parts)}, {layout.index(target)})"))


def join(body: Body, op: Op) -> None:
    layout, axis = body.layouts[op.result.name], op.attributes["axis"]
    parts = [full(body, value, tuple(name for name in layout if name != axis)) for value in op.operands]
    body.give(op, Code(f"jnp.stack({as_tuple(parts)}, {layout.index(axis)})"))


def split(body: Body, op: Op) -> None:
    (value,), axis = op.operands, op.attributes["axis"]
    layout = body.layouts[value.name]
    name = body.names.fresh("pair")
    body.line(f"{name} = {full(body, value, layout)}")
    before = ":, " * layout.index(axis)
    for lane, result in enumerate(op.results):
        body.held[result.name] = Code(body.names.of[result.name])
        body.line(f"{body.names.of[result.name]} = {name}[{before}{lane}]")


def relabel(body: Body, op: Op) -> None:
    """The same array: only the name of a dimension changes."""
    (value,), source, target = op.operands, op.attributes["source"], op.attributes["target"]
    have = replaced(axes_of(body.layouts[value.name]), source, target)
    body.give(op, align(body.value(value), axes_of(have), body.layouts[op.result.name]))


def histogram(body: Body, op: Op) -> None:
    (value,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
    layout = body.layouts[op.result.name]
    lanes = (*(name for name in layout if name != target), axis)
    bins = body.size(body.kernel.axis(target).extent)
    body.give(op, Code(f"count_lanes({full(body, value, lanes)}, {len(lanes) - 1}, {bins})"))


def philox(body: Body, op: Op) -> None:
    layout = body.layouts[op.results[0].name]
    words = [jnp.typed(body.tile(value, layout), value.dtype).text for value in op.operands]
    body.give_all(op, f"philox({', '.join(words)}, {op.attributes['rounds']})")


def poison(body: Body, op: Op) -> None:
    """Any value will do: NaN where there is one, so that a use shows."""
    held = jnp.constant(float("nan") if op.result.dtype.is_float else 0, op.result.dtype)
    shape = body.shape(body.layouts[op.result.name])
    body.give(op, Code(f"jnp.full({shape}, {held.text}, {jnp.JNP[op.result.dtype.name]})"))
