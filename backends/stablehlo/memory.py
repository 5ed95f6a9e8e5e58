"""Loads and stores: a slice where the access is a box, else a gather or a scatter.

Tensors were padded so that no slice leaves them. What a slice's lanes outside the bounds hold still matters:

    load    bounds at the tensor's edge and a fill of zero: the padding is the fill; else where(mask, tile, fill)
    store   bounds at the tensor's edge: the rest lands in the padding, which is cut off; else what was there stays
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdsl.analysis.affine import ONE, Range
from kdsl.codegen import jnp
from kdsl.codegen.jnp import Code
from kdsl.codegen.layout import Layout, axes_of
from kdsl.ir.expr import wrap
from kdsl.ir.kernel import Buffer, Op

from .arrays import align, as_tuple
from .boxes import at_edge, box, length

if TYPE_CHECKING:
    from .body import Body


def load(body: Body, op: Op) -> Code:
    """The loaded tile, in the layout of its value."""
    layout, buffer = body.layouts[op.result.name], body.kernel.buffer(op.attributes["buffer"])
    dimensions = box(body.kernel, op)
    if dimensions is None:
        tile, have = _gather(body, op, buffer, layout), axes_of(layout)
    else:
        tile, have = _slice(body, buffer, dimensions), tuple(d.axis for d in dimensions if d.axis is not None)
    tile = align(tile, have, layout)
    bounds, fill = op.attributes.get("bounds", ()), op.attributes.get("fill")
    masked = bool(bounds) and fill is not None and not (dimensions is not None and _padding_is(fill, buffer, op))
    if masked:
        filled = jnp.constant(fill, buffer.dtype)
        mask = body.mask(bounds, layout)
        named = body.names.fresh(f"{buffer.name}_box")
        body.line(f"{named} = {tile.text}")
        tile = Code(f"jnp.where({mask.text}, {named}, {filled.text})")
        have = (*have, *(name for bound in bounds for name in bound.symbols))
    lacking = [axis for axis in axes_of(layout) if axis not in have]
    return Code(f"jnp.broadcast_to({tile.text}, {body.shape(layout)})") if lacking else tile


def _padding_is(fill: object, buffer: Buffer, op: Op) -> bool:
    """Whether the lanes outside the bounds read the zeros that the tensor was padded with, and that is the fill."""
    bounds = op.attributes.get("bounds", ())
    edge = all(at_edge(buffer, op.attributes["index"], bound) for bound in bounds)
    return edge and fill == 0 and str(fill) != "-0.0" and buffer.role == "in"


def _slice(body: Body, buffer: Buffer, dimensions: tuple[Range, ...]) -> Code:
    """The box as an array with one dimension for each axis it names."""
    whole = all(
        (dimension.start, dimension.stride, extent.high) == (wrap(0), ONE, length(body.kernel, dimension))
        and dimension.axis is not None
        and not extent.needs_padding(size)
        for dimension, extent, size in zip(dimensions, body.extents[buffer.name], buffer.shape, strict=True)
    )
    if whole and buffer.role == "in":
        return Code(buffer.name)
    text = f"jax.lax.dynamic_slice({buffer.name}, {starts(body, buffer, dimensions)}, {lengths(body, dimensions)})"
    picks = ["0" if d.axis is None else f"::{d.stride}" if d.stride != ONE else ":" for d in dimensions]
    while picks and picks[-1] == ":":
        picks.pop()
    return Code(f"{text}[{', '.join(picks)}]" if picks else text)


def _gather(body: Body, op: Op, buffer: Buffer, layout: Layout) -> Code:
    places = [place.text for place in _places(body, op, buffer, layout)]
    # Lanes that are out of bounds read the nearest element, and are masked or never used.
    return Code(f'{buffer.name}.at[{", ".join(places)}].get(mode="clip")')


def _places(body: Body, op: Op, buffer: Buffer, layout: Layout) -> list[Code]:
    """Index arrays into the padded tensor."""
    lows = [extent.low for extent in body.extents[buffer.name]]
    return [body.form(form - low, layout) for form, low in zip(op.attributes["index"], lows, strict=True)]


def starts(body: Body, buffer: Buffer, dimensions: tuple[Range, ...]) -> str:
    extents = body.extents[buffer.name]
    return as_tuple([body.form(d.start - extent.low).text for d, extent in zip(dimensions, extents, strict=True)])


def lengths(body: Body, dimensions: tuple[Range, ...]) -> str:
    return as_tuple([body.size(length(body.kernel, dimension)) for dimension in dimensions])


def store(body: Body, op: Op) -> None:
    """Write the tile, and leave what is outside the bounds as it is."""
    (value,), buffer = op.operands, body.kernel.buffer(op.attributes["buffer"])
    bounds, dimensions = op.attributes.get("bounds", ()), box(body.kernel, op)
    if dimensions is None:
        return _scatter(body, op, buffer)
    layout: Layout = tuple(dimension.axis for dimension in dimensions)
    tile = body.shorten([value], lambda: body.tile(value, layout, whole=True))
    name, place = buffer.name, starts(body, buffer, dimensions)
    if all(at_edge(buffer, op.attributes["index"], bound) for bound in bounds):
        body.line(f"{name} = jax.lax.dynamic_update_slice({name}, {tile.text}, {place})")
        return None
    start, old = body.names.fresh("start"), body.names.fresh(f"old_{name}")
    body.line(f"{start} = {place}")
    body.line(f"{old} = jax.lax.dynamic_slice({name}, {start}, {lengths(body, dimensions)})")
    new = body.names.fresh(f"new_{name}")
    body.line(f"{new} = jnp.where({body.mask(bounds, layout).text}, {tile.text}, {old})")
    body.line(f"{name} = jax.lax.dynamic_update_slice({name}, {new}, {start})")
    return None


def _scatter(body: Body, op: Op, buffer: Buffer) -> None:
    (value,), bounds = op.operands, op.attributes.get("bounds", ())
    layout = body.kernel.order({*body.kernel.tile_axes(value), *_lane_axes(body, op)})
    places = [place.text for place in _places(body, op, buffer, layout)]
    if bounds:
        # Lanes outside the bounds get an index that does not exist, and are dropped.
        first = body.names.fresh("place")
        body.line(f"{first} = jnp.where({body.mask(bounds, layout).text}, {places[0]}, {buffer.name}.shape[0])")
        places[0] = first
    tile = body.shorten([value], lambda: body.tile(value, layout))
    stored = jnp.typed(tile, value.dtype).text if tile.number else tile.text
    body.line(f'{buffer.name} = {buffer.name}.at[{", ".join(places)}].set({stored}, mode="drop")')


def _lane_axes(body: Body, op: Op) -> tuple[str, ...]:
    names = {name for form in op.attributes["index"] for name in form.symbols}
    return tuple(name for name in body.kernel.order(names) if body.kernel.axis(name).kind == "tile")
