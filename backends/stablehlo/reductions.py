"""Reductions and products along an axis, and combines of the author's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdsl.codegen import jnp
from kdsl.codegen.jnp import Code
from kdsl.codegen.layout import Layout, axes_of
from kdsl.ir.dtypes import F32, I8
from kdsl.ir.kernel import Op, Value
from kdsl.ir.type_rules import batch_axes

from .arrays import align, as_tuple
from .tiles import full, replaced

if TYPE_CHECKING:
    from .body import Body


def reduce(body: Body, op: Op) -> None:
    (source,), axis, combine = op.operands, op.attributes["axis"], op.attributes["combine"]
    layout = body.layouts[source.name]
    maybe_empty = body.kernel.axis(axis).extent.symbols & {size.name for size in body.kernel.sizes}

    def write() -> Code:
        tile = body.tile(source, layout, whole=True)
        return jnp.reduce(tile, combine, source.dtype, layout.index(axis), maybe_empty=bool(maybe_empty))

    code = body.shorten([source], write)
    kept, wanted = tuple(name for name in layout if name != axis), body.layouts[op.result.name]
    # Which lanes were valid may vary over axes that the source does not vary over.
    body.give(op, code if kept == wanted else _spread(body, code, kept, wanted))


def _spread(body: Body, code: Code, have: Layout, layout: Layout) -> Code:
    return Code(f"jnp.broadcast_to({align(code, axes_of(have), layout).text}, {body.shape(layout)})")


def dot(body: Body, op: Op) -> None:
    (left, _), axis = op.operands, op.attributes["axis"]
    layouts = [body.layouts[value.name] for value in op.operands]
    factors = [_factor(body, op, value, layout) for value, layout in zip(op.operands, layouts, strict=True)]
    dtype = F32 if left.dtype.is_storage and left.dtype.is_float else left.dtype
    together = batch_axes(body.kernel, op)
    product = jnp.dot(factors, layouts, axis, together, dtype, op.result.dtype)
    body.give(op, align(product, _of_product(layouts, axis, together), body.layouts[op.result.name]))


def _of_product(layouts: Sequence[Layout], axis: str, together: Sequence[str]) -> tuple[str, ...]:
    """The axes that dot_general gives, in order."""
    free = (name for layout in layouts for name in axes_of(layout) if name != axis and name not in together)
    return (*together, *free)


def _factor(body: Body, op: Op, value: Value, layout: Layout) -> Code:
    """An operand of a dot, as it is multiplied: small types widened, float32 rounded as the precision says."""
    tile, precision = body.tile(value, layout, whole=True), op.attributes["precision"]
    if value.dtype.is_storage:
        return jnp.cast(tile, value.dtype, F32 if value.dtype.is_float else I8)
    if value.dtype == F32 and precision in jnp.FRACTION_BITS:
        return Code(f"jax.lax.reduce_precision({tile.text}, 8, {jnp.FRACTION_BITS[precision]})")
    return tile


def dot_scaled(body: Body, op: Op) -> None:
    axis, tiles, layouts, together = op.attributes["axis"], [], [], batch_axes(body.kernel, op)
    for which, group in ((0, op.attributes["left_group"]), (2, op.attributes["right_group"])):
        value, scale = op.operands[which : which + 2]
        layout = axes_of(body.layouts[value.name])
        layouts.append(layout)
        factors = full(body, scale, replaced(layout, axis, group))
        tiles.append(Code(f"scaled({full(body, value, layout)}, {factors}, {layout.index(axis)})"))
    product = jnp.dot(tiles, layouts, axis, together, F32, F32)
    body.give(op, align(product, _of_product(layouts, axis, together), body.layouts[op.result.name]))


# -- combines of the author's own ----------------------------------------------------------------------------------


def reduce_by(body: Body, op: Op) -> None:
    lanes, place = _combined(body, op)
    body.give_all(op, f"reduce_lanes({_combine(body, op)}, {lanes}, {place})")


def scan_by(body: Body, op: Op) -> None:
    reverse = "reverse=True, " if op.attributes.get("reverse") else ""
    lanes, place = _combined(body, op)
    body.give_all(op, f"jax.lax.associative_scan({_combine(body, op)}, {lanes}, {reverse}axis={place})")


def _combined(body: Body, op: Op) -> tuple[str, int]:
    """The arrays that are combined, and their dimension."""
    layout = body.layouts[op.regions[0].arguments[0].name]
    return as_tuple([full(body, value, layout) for value in op.operands]), layout.index(op.attributes["axis"])


def _combine(body: Body, op: Op) -> str:
    """Define the combine, which takes two tuples of arrays and gives one; its name."""
    (region,), name = op.regions, body.names.fresh("combine")
    count = len(op.operands)
    names = [body.names.of[value.name] for value in region.arguments]
    with body.function(name, ["left", "right"]):
        body.line(f"{_names(names[:count])} = left")
        body.line(f"{_names(names[count:])} = right")
        for value in region.arguments:
            body.held[value.name] = Code(body.names.of[value.name])
        body.region(region)
        layout = body.layouts[region.arguments[0].name]
        yielded = zip(region.ops[-1].operands, region.arguments, strict=False)
        final = [_like(body, value, layout, body.names.of[argument.name]) for value, argument in yielded]
        body.line(f"return {_names(final)}")
    return name


def _like(body: Body, value: Value, layout: Layout, argument: str) -> str:
    """A value of the shape of an argument, whose lanes along the combined axis grow fewer."""
    code = jnp.typed(body.tile(value, layout), value.dtype)
    whole = set(axes_of(layout)) <= set(axes_of(body.layouts[value.name]))
    return code.text if whole else f"jnp.broadcast_to({code.text}, {argument}.shape)"


def _names(items: list[str]) -> str:
    """A tuple where no brackets are needed."""
    return as_tuple(items) if len(items) == 1 else ", ".join(items)
