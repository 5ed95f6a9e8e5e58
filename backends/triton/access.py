"""Loads and stores: pointers from index forms and strides, masks from bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kdsl.codegen.layout import Layout
from kdsl.ir.kernel import Op

from .expressions import MULTIPLY, Text, literal
from .scope import tile_symbols

if TYPE_CHECKING:
    from .emitter import Emitter


def pointers(emitter: Emitter, op: Op, layout: Layout, statement: Callable[[str], str]) -> str:
    """The statement of an access, given its pointers: in one line, or after a line or two that make them."""
    scope, buffer = emitter.scope, op.attributes["buffer"]
    uniform: list[str] = [scope.names["argument", buffer]]
    lanes: list[str] = []
    covered: set[str] = set()
    for dimension, form in enumerate(op.attributes["index"]):
        if form.constant == 0:
            continue
        axes = tile_symbols(emitter.kernel, form)
        covered |= set(axes)
        offset = scope.integer(form, layout)
        stride = scope.names["stride", buffer, dimension]
        step = stride if offset.code == "1" else f"{offset.within(MULTIPLY)} * {stride}"
        (lanes if axes else uniform).append(step)
    whole = " + ".join([*uniform, *lanes])
    is_full = covered == {name for name in layout if name}
    if is_full and emitter.fits(statement(whole)):
        return statement(whole)
    name = scope.names.give(("pointers", id(op)), f"{buffer}_ptrs")
    if emitter.fits(f"{name} = {whole}"):
        emitter.write(f"{name} = {whole}")
    else:
        emitter.write(f"{name} = {' + '.join(uniform)}")
        for term in [" + ".join(lanes)] if emitter.fits(f"{name} += {' + '.join(lanes)}") else lanes:
            emitter.write(f"{name} += {term}")
    if not is_full:
        emitter.write(f"{name} = tl.broadcast_to({name}, {scope.shape(layout)})")
    return statement(name)


def load(emitter: Emitter, op: Op) -> None:
    emitter.barrier("load", op.attributes["buffer"])
    emitter.comment(op)
    layout = emitter.layouts[op.result.name]
    mask = emitter.scope.mask(op.attributes.get("bounds", ()), layout)
    masked = f", mask={mask.code}" if mask else ""
    if mask and "fill" in op.attributes:
        masked += f", other={literal(op.attributes['fill'], op.result.dtype).code}"
    variable = emitter.variable(op.result)
    emitter.write(pointers(emitter, op, layout, lambda place: f"{variable} = tl.load({place}{masked})"))


def store(emitter: Emitter, op: Op) -> None:
    emitter.barrier("store", op.attributes["buffer"])
    emitter.comment(op)
    (value,), bounds = op.operands, op.attributes.get("bounds", ())
    axes = [name for form in op.attributes["index"] for name in tile_symbols(emitter.kernel, form)]
    layout = tuple(dict.fromkeys([*axes, *(name for bound in bounds for name in tile_symbols(emitter.kernel, bound))]))
    mask = emitter.scope.mask(bounds, layout)
    masked = f", mask={mask.code}" if mask else ""
    text = emitter.aligned(value, layout)
    shortest = f"tl.store({op.attributes['buffer']}_ptrs, {text.code}{masked})"
    if value.name in emitter.texts and not emitter.fits(shortest):
        name = emitter.scope.names.give(("stored", id(op)), op.attributes["buffer"])
        emitter.assign(name, text)
        text = Text(name)
    emitter.write(pointers(emitter, op, layout, lambda place: f"tl.store({place}, {text.code}{masked})"))
