"""Access at computed places: gathers, scatters and atomics. Tensors may be padded, so places count from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdsl.codegen import jnp
from kdsl.codegen.jnp import SUM, Code
from kdsl.codegen.layout import Layout, axes_of
from kdsl.ir.dtypes import I32, I64
from kdsl.ir.expr import wrap
from kdsl.ir.kernel import Op

from .arrays import as_tuple

if TYPE_CHECKING:
    from .body import Body

# How each kind of atomic changes an element, of floats where that differs.
CHANGES = {
    "add": "jnp.add",
    "maximum": "jnp.maximum",
    "minimum": "jnp.minimum",
    "and": "jnp.bitwise_and",
    "or": "jnp.bitwise_or",
    "xor": "jnp.bitwise_xor",
    "exchange": "lambda old, new: new",
}
FLOAT_CHANGES = CHANGES | {"maximum": "jnp.fmax", "minimum": "jnp.fmin"}
SWAP = "lambda old, expected, new: jnp.where(old == expected, new, old)"
# Integers may be combined in any order: XLA does these on all lanes at once.
ANY_ORDER = {"add": "add", "maximum": "max", "minimum": "min"}


def load_at(body: Body, op: Op) -> None:
    """Lanes that the mask leaves out read some element, and are filled or never used."""
    layout, buffer = body.layouts[op.result.name], body.kernel.buffer(op.attributes["buffer"])
    places = _places(body, op, 0, layout)
    tile = Code(f'{buffer.name}.at[{", ".join(places) or "()"}].get(mode="clip")')
    have = {name for value in op.operands[: len(places)] for name in axes_of(body.layouts[value.name])}
    if op.attributes.get("masked") and "fill" in op.attributes:
        mask = op.operands[-1]
        fill = jnp.constant(op.attributes["fill"], buffer.dtype)
        tile = Code(f"jnp.where({body.tile(mask, layout).text}, {tile.text}, {fill.text})")
        have |= set(axes_of(body.layouts[mask.name]))
    if set(axes_of(layout)) - have:
        tile = Code(f"jnp.broadcast_to({tile.text}, {body.shape(layout)})")
    body.give(op, tile)


def store_at(body: Body, op: Op) -> None:
    name, layout = op.attributes["buffer"], _lanes(body, op)
    arguments = [name, as_tuple(_places(body, op, 1, layout)), *_values(body, op, 1, layout), *_mask(body, op, layout)]
    body.line(f"{name} = store_lanes({', '.join(arguments)})")


def atomic(body: Body, op: Op) -> None:
    buffer, combine = body.kernel.buffer(op.attributes["buffer"]), op.attributes["combine"]
    if not op.results and buffer.dtype.is_integer and combine in ANY_ORDER and buffer.shape:
        return _unordered(body, op, ANY_ORDER[combine])
    return _change(body, op, (FLOAT_CHANGES if buffer.dtype.is_float else CHANGES)[combine], 1)


def atomic_cas(body: Body, op: Op) -> None:
    _change(body, op, SWAP, 2)


def _unordered(body: Body, op: Op, method: str) -> None:
    name, layout = op.attributes["buffer"], _lanes(body, op)
    places = _places(body, op, 1, layout)
    for mask in _mask(body, op, layout):
        # Lanes that the mask leaves out get an index that does not exist, and are dropped.
        places[0] = f"jnp.where({mask}, {places[0]}, {name}.shape[0])"
    (value,) = _values(body, op, 1, layout)
    # A scatter needs a place for each lane of the value; a uniform place is given a lane of every axis.
    places[0] = f"jnp.broadcast_to({places[0]}, {body.shape(layout)})" if layout else places[0]
    body.line(f'{name} = {name}.at[{", ".join(places)}].{method}({value}, mode="drop")')


def _change(body: Body, op: Op, change: str, values: int) -> None:
    """One lane after the other."""
    name, layout = op.attributes["buffer"], _lanes(body, op)
    places, given = as_tuple(_places(body, op, values, layout)), as_tuple(_values(body, op, values, layout))
    call = f"change_lanes({', '.join([change, name, places, given, *_mask(body, op, layout)])})"
    old = "_"
    if op.results:
        old = body.names.of[op.result.name]
        body.held[op.result.name] = Code(old)
    body.line(f"{name}, {old} = {call}")


def _lanes(body: Body, op: Op) -> Layout:
    """The axes of an access in row-major order, which is the order of its lanes."""
    return body.kernel.order(name for value in op.operands for name in body.kernel.tile_axes(value))


def _values(body: Body, op: Op, values: int, layout: Layout) -> list[str]:
    return [jnp.typed(body.tile(value, layout), value.dtype).text for value in op.operands[:values]]


def _mask(body: Body, op: Op, layout: Layout) -> list[str]:
    return [body.tile(op.operands[-1], layout).text] if op.attributes.get("masked") else []


def _places(body: Body, op: Op, values: int, layout: Layout) -> list[str]:
    """Index arrays into the padded tensor, in 32 bits or more: JAX counts in their dtype."""
    extents, places = body.extents[op.attributes["buffer"]], []
    for value, extent in zip(op.operands[values:], extents, strict=False):
        code = jnp.typed(body.tile(value, layout), value.dtype)
        code = code if value.dtype in (I32, I64) else jnp.cast(code, value.dtype, I32)
        offset = body.form(-extent.low)
        places.append(code.text if extent.low == wrap(0) else f"{code.at(SUM)} + {offset.at(SUM + 1)}")
    return places
