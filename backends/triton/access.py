"""Loads and stores: pointers from index forms and strides, masks from bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kdsl.codegen.layout import Layout, axes_of
from kdsl.ir.kernel import Op, Value

from .expressions import AND, ATOM, MULTIPLY, Text, literal, typed
from .scope import tile_symbols

if TYPE_CHECKING:
    from .emitter import Emitter


# What an access does to memory, for barriers: an atomic reads and writes.
KINDS = {"load": "load", "load_at": "load"} | dict.fromkeys(["store", "store_at", "atomic", "atomic_cas"], "store")
ATOMICS = {
    **{"add": "tl.atomic_add", "maximum": "tl.atomic_max", "minimum": "tl.atomic_min", "exchange": "tl.atomic_xchg"},
    **{"and": "tl.atomic_and", "or": "tl.atomic_or", "xor": "tl.atomic_xor"},
}


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
    emitter.barrier(op)
    emitter.comment(op)
    layout = emitter.layouts[op.result.name]
    mask = emitter.scope.mask(op.attributes.get("bounds", ()), layout)
    masked = f", mask={mask.code}" if mask else ""
    if mask and "fill" in op.attributes:
        masked += f", other={literal(op.attributes['fill'], op.result.dtype).code}"
    variable = emitter.variable(op.result)
    emitter.write(pointers(emitter, op, layout, lambda place: f"{variable} = tl.load({place}{masked})"))


def store(emitter: Emitter, op: Op) -> None:
    emitter.barrier(op)
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


# -- at computed places ------------------------------------------------------------------------------------------------


def _places(emitter: Emitter, op: Op, values: int, layout: Layout) -> tuple[str, str]:
    """The pointers of an access at computed places, and its mask as an argument; lines that make them where needed.

    `values` operands come before the indices.
    """
    scope, buffer = emitter.scope, op.attributes["buffer"]
    masked = bool(op.attributes.get("masked"))
    indices = op.operands[values : len(op.operands) - masked]
    terms: list[str] = [scope.names["argument", buffer]]
    for dimension, value in enumerate(indices):
        offset = _offset(emitter.aligned(value, layout), value)
        if offset.code != "0":
            terms.append(f"{offset.within(MULTIPLY)} * {scope.names['stride', buffer, dimension]}")
    whole = " + ".join(terms)
    is_full = {name for value in indices for name in axes_of(emitter.layouts[value.name])} == set(axes_of(layout))
    if not is_full:
        whole = f"tl.broadcast_to({whole}, {scope.shape(layout)})"
    if len(terms) > 2 or not is_full:
        name = scope.names.give(("pointers", id(op)), f"{buffer}_ptrs")
        emitter.write(f"{name} = {whole}")
        whole = name
    mask = f", mask={emitter.aligned(op.operands[-1], layout).code}" if masked else ""
    return whole, mask


def _offset(text: Text, value: Value) -> Text:
    """An index that can be multiplied: products wrap in the operands' width, and u32 is no offset of a pointer."""
    if value.dtype.bits < 32:
        return Text(f"{typed(text, value.dtype).within(ATOM)}.to(tl.int32)")
    return Text(f"{typed(text, value.dtype).within(ATOM)}.to(tl.int64)") if value.dtype.name == "u32" else text


def _lane_layout(emitter: Emitter, op: Op) -> Layout:
    """The tile axes of an access, whose lanes are its elements."""
    if op.results:
        return emitter.layouts[op.result.name]
    axes = {name for value in op.operands for name in emitter.kernel.tile_axes(value)}
    return emitter.kernel.order(axes)


def load_at(emitter: Emitter, op: Op) -> None:
    emitter.barrier(op)
    emitter.comment(op)
    place, mask = _places(emitter, op, 0, emitter.layouts[op.result.name])
    if mask and "fill" in op.attributes:
        mask += f", other={literal(op.attributes['fill'], op.result.dtype).code}"
    emitter.write(f"{emitter.variable(op.result)} = tl.load({place}{mask})")


def store_at(emitter: Emitter, op: Op) -> None:
    emitter.barrier(op)
    emitter.comment(op)
    layout = _lane_layout(emitter, op)
    place, mask = _places(emitter, op, 1, layout)
    emitter.write(f"tl.store({place}, {emitter.aligned(op.operands[0], layout).code}{mask})")


def atomic(emitter: Emitter, op: Op) -> None:
    emitter.barrier(op)
    emitter.comment(op)
    layout, value, combine = _lane_layout(emitter, op), op.operands[0], op.attributes["combine"]
    given = emitter.full_text(value, layout)
    if value.dtype.is_float and combine in ("maximum", "minimum"):
        # NaN is no maximum; the hardware compares bits, in which it may be the largest.
        mask = f"{given.within(ATOM)} == {given.within(ATOM)}"
        if op.attributes.get("masked"):
            mask = f"({mask}) & {emitter.aligned(op.operands[-1], layout).within(AND)}"
        place, masked = _places(emitter, op, 1, layout)[0], f", mask={mask}"
    else:
        place, masked = _places(emitter, op, 1, layout)
    _atomically(emitter, op, f"{ATOMICS[combine]}({place}, {given.code}{masked})")


def atomic_cas(emitter: Emitter, op: Op) -> None:
    emitter.barrier(op)
    emitter.comment(op)
    layout = _lane_layout(emitter, op)
    place, _ = _places(emitter, op, 2, layout)
    expected, value = (emitter.full(operand, layout) for operand in op.operands[:2])
    call = f"tl.atomic_cas({place}, {expected}, {value})"
    if not op.attributes.get("masked"):
        _atomically(emitter, op, call)
        return
    if op.results and emitter.lifetimes.used(op.result):
        emitter.write(f"{emitter.variable(op.result)} = {value}")  # means nothing where the mask leaves it out
    with emitter.block(f"if {emitter.scalar(op.operands[-1])}:"):
        _atomically(emitter, op, call)


def _atomically(emitter: Emitter, op: Op, call: str) -> None:
    wanted = op.results and emitter.lifetimes.used(op.result)
    emitter.write(f"{emitter.variable(op.result)} = {call}" if wanted else call)
