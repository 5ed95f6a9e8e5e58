"""reduce_by and scan_by: the combine region becomes a @triton.jit function of the emitted module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdsl.codegen.layout import Layout
from kdsl.ir.dtypes import BOOL
from kdsl.ir.kernel import Op, Region, Value

from .dtypes import TYPES
from .expressions import ATOM, Text, literal, pointwise
from .helpers import HELPERS
from .lifetimes import base_name
from .names import Names

if TYPE_CHECKING:
    from .emitter import Emitter

INDENT = "    "
COMMUTATIVE = frozenset(["add", "mul", "maximum", "minimum", "maxnum", "minnum", "and", "or", "xor"])


def reduce_by(emitter: Emitter, op: Op) -> None:
    """tl.reduce pairs lanes in no particular order. Where that matters, the last lane of a scan, which keeps it."""
    if commutes(op.regions[0]):
        _combine(emitter, op, "tl.reduce", "")
        return
    _combine(emitter, op, "tl.associative_scan", "")


def scan_by(emitter: Emitter, op: Op) -> None:
    _combine(emitter, op, "tl.associative_scan", ", reverse=True" if op.attributes.get("reverse") else "")


def _combine(emitter: Emitter, op: Op, function: str, options: str) -> None:
    (region,), axis = op.regions, op.attributes["axis"]
    layout = max((emitter.layouts[value.name] for value in op.operands), key=len)
    emitter.comment(op)
    operands = [_carried(emitter.full_text(value, layout), value) for value in op.operands]
    name = emitter.scope.names.give(("combine", id(op)), f"combine_{base_name(op.results[0])}")
    emitter.functions.append(combine_function(emitter, name, region))
    given = f"({', '.join(operands)})" if len(operands) > 1 else operands[0]
    names = [emitter.variable(result) for result in op.results]
    emitter.write(f"{', '.join(names)} = {function}({given}, {layout.index(axis)}, {name}{options})")
    reduced = op.name == "reduce_by"
    left = tuple(other for other in layout if not reduced or other != axis)
    for name, result in zip(names, op.results, strict=True):
        whole = Text(_last_lane(emitter, name, result, layout, axis) if reduced and function != "tl.reduce" else name)
        text = emitter.placed(whole, left, emitter.layouts[result.name])
        code = f"{text.code} != 0" if result.dtype == BOOL else text.code
        if code != name:
            emitter.write(f"{name} = {code}")


def _last_lane(emitter: Emitter, name: str, value: Value, layout: Layout, axis: str) -> str:
    """The last lane along an axis: a sum over the one lane that is gathered."""
    place, extent = layout.index(axis), emitter.scope.extent(axis)
    shape = emitter.scope.shape(tuple(None if other == axis else other for other in layout))
    lane = f"tl.full({shape}, {extent} - 1, tl.int32)"
    summed = f"tl.sum(tl.gather({name}, {lane}, {place}), axis={place})"
    return f"{summed}.to({TYPES[value.dtype.name]})" if value.dtype.is_integer and value.dtype.bits < 32 else summed


def commutes(region: Region) -> bool:
    """Whether a combine is one commutative op for each operand."""
    *ops, end = region.ops
    half = len(region.arguments) // 2
    pairs = [{a.name, b.name} for a, b in zip(region.arguments[:half], region.arguments[half:], strict=True)]
    made = {op.result.name: {v.name for v in op.operands} for op in ops if op.name in COMMUTATIVE}
    return len(ops) == half and [made.get(value.name) for value in end.operands] == pairs


def _carried(text: Text, value: Value) -> str:
    """Bools travel as integers: Triton reduces no single bits."""
    return f"{text.within(ATOM)}.to(tl.int32)" if value.dtype == BOOL else text.code


def combine_function(emitter: Emitter, name: str, region: Region) -> str:
    names = Names([name, *HELPERS])
    texts = {value.name: Text(names.give(value.name, base_name(value))) for value in region.arguments}
    lines = [f"@triton.jit\ndef {name}({', '.join(text.code for text in texts.values())}):"]
    lines += [
        f"{INDENT}{texts[value.name].code} = {texts[value.name].code} != 0"
        for value in region.arguments
        if value.dtype == BOOL
    ]

    def text(value: Value) -> Text:
        return texts[value.name] if value.name in texts else emitter.operand(value)  # a constant from outside

    *ops, end = region.ops
    for op in ops:
        if op.name == "constant":
            texts[op.result.name] = literal(op.attributes["value"], op.result.dtype)
            continue
        written = pointwise(op, [text(value) for value in op.operands])
        texts[op.result.name] = Text(names.give(op.result.name, base_name(op.result)))
        lines.append(f"{INDENT}{texts[op.result.name].code} = {written.code}")
    results = []
    for value, argument in zip(end.operands, region.arguments, strict=False):
        held = text(value)
        if held.untyped:
            held = Text(f"tl.full({texts[argument.name].code}.shape, {held.code}, {TYPES[value.dtype.name]})")
        results.append(f"{held.within(ATOM)}.to(tl.int32)" if value.dtype == BOOL else held.code)
    return "\n".join([*lines, f"{INDENT}return {', '.join(results)}"])
