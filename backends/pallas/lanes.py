"""How ops are written that move lanes along an axis, in what Mosaic has: static rolls, comparisons and sums."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.codegen import jnp
from kdsl.codegen.jnp import Code
from kdsl.codegen.layout import Layout, axes_of
from kdsl.ir.dtypes import BOOL, F32
from kdsl.ir.kernel import Op, Value

from .body import Section
from .layout import padded

COMBINES = {
    "add": "left[0] + right[0]",
    "mul": "left[0] * right[0]",
    "maximum": "jnp.maximum(left[0], right[0])",
    "minimum": "jnp.minimum(left[0], right[0])",
    "and": "left[0] & right[0]",
    "or": "left[0] | right[0]",
}


def as_given(value: Value, name: str) -> Code:
    """What a name stands for that a function gave: booleans come as integers."""
    return Code(f"{name} != 0", jnp.COMPARE) if value.dtype == BOOL else Code(name)


def give(section: Section, op: Op, text: str, layouts: Sequence[Layout]) -> None:
    """Name the results of an op that gives a tuple of them, each of its own layout."""
    names = [section.name_of(value) for value in op.results]
    for value, name, layout in zip(op.results, names, layouts, strict=True):
        section.codes[value.name], section.physical[value.name] = as_given(value, name), layout
    section.assign(f"({names[0]},)" if len(names) == 1 else ", ".join(names), Code(text))


def bitcast(section: Section, op: Op) -> None:
    (value,), layout = op.operands, section.layout(op.result)
    section.define(op, jnp.bitcast(section.full(value, layout), value.dtype, op.result.dtype), layout)


def scan(section: Section, op: Op) -> None:
    (source,), layout = op.operands, section.layout(op.result)
    reverse = ", reverse=True" if op.attributes.get("reverse") else ""
    lanes = section.full(source, layout)
    wide = source.dtype.bits == 16 and source.dtype.is_float  # accumulate in float32, round once
    lanes = jnp.cast(lanes, source.dtype, F32) if wide else lanes
    combine = f"lambda left, right: [{COMBINES[op.attributes['combine']]}]"
    place = layout.index(op.attributes["axis"])
    code = Code(f"running({combine}, [{lanes.text}], {place}{reverse})[0]")
    section.define(op, jnp.cast(code, F32, source.dtype) if wide else code, layout)


def topk(section: Section, op: Op) -> None:
    (source,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
    layout = section.layout(source)
    lanes = section.full(source, layout)
    lanes = lanes if lanes.text.isidentifier() else section.assign(section.names.fresh("lanes"), lanes)
    count = section.shared.integer(section.kernel.axis(target).extent)
    given = tuple(target if name == axis else name for name in layout)
    give(section, op, f"top_lanes({lanes.text}, {layout.index(axis)}, {count})", [given] * 2)


def gather(section: Section, op: Op) -> None:
    """One lane of each row by a sum of which all else is zero; a row of them lane by lane."""
    (source, index), axis = op.operands, op.attributes["axis"]
    layout, wanted = section.layout(source), section.layout(op.result)
    place, lanes = layout.index(axis), section.full(source, layout)
    if wanted[place] is None:
        text = f"pick_lane({lanes.text}, {section.at(index, wanted).text}, {place})"
    else:
        text = f"gather_lanes({lanes.text}, {section.full(index, wanted).text}, {place})"
    section.define(op, Code(text), wanted)


def sort(section: Section, op: Op) -> None:
    layout = section.layout(op.results[0])
    lanes = ", ".join(section.full(value, layout).text for value in op.operands)
    descending = ", descending=True" if op.attributes.get("descending") else ""
    place = layout.index(op.attributes["axis"])
    give(section, op, f"sort_lanes([{lanes}], {place}{descending})", [layout] * len(op.results))


def flip(section: Section, op: Op) -> None:
    layout = section.layout(op.result)
    code = section.full(op.operands[0], layout)
    section.define(op, Code(f"flip_lanes({code.text}, {layout.index(op.attributes['axis'])})"), layout)


def join(section: Section, op: Op) -> None:
    layout = section.layout(op.result)
    parts = padded(axes_of(layout[:-1]), section.plan.rank)
    given = ", ".join(section.full(value, parts).text for value in op.operands)
    section.define(op, _shaped(section, f"jnp.stack([{given}], -1)", (*parts, layout[-1]), layout), layout)


def split(section: Section, op: Op) -> None:
    (source,), axis = op.operands, op.attributes["axis"]
    layout = section.layout(source)
    pair = section.assign(section.names.fresh("pair"), section.full(source, layout))
    kept = tuple(name for name in layout if name != axis)
    for lane, result in enumerate(op.results):
        wanted = section.layout(result)
        text = f"{pair.text}[{':, ' * layout.index(axis)}{lane}]"
        section.codes[result.name], section.physical[result.name] = Code(section.name_of(result)), wanted
        section.assign(section.name_of(result), _shaped(section, text, kept, wanted))


def _shaped(section: Section, text: str, have: Layout, layout: Layout) -> Code:
    """An array of one layout as one of another, which differs in dimensions of size 1."""
    return Code(text if have == layout else f"{text}.reshape{section.shared.shape(layout)}")


def concat(section: Section, op: Op) -> None:
    layout, target = section.layout(op.result), op.attributes["target"]
    parts = [
        section.full(value, tuple(axis if name == target else name for name in layout)).text
        for value, axis in zip(op.operands, op.attributes["source"], strict=True)
    ]
    section.define(op, Code(f"jnp.concatenate([{', '.join(parts)}], {layout.index(target)})"), layout)


def relabel(section: Section, op: Op) -> None:
    """The same array: only the name of a dimension changes."""
    (source,), old, new = op.operands, op.attributes["source"], op.attributes["target"]
    layout = section.layout(source)
    section.define(op, section.full(source, layout), tuple(new if name == old else name for name in layout))


def histogram(section: Section, op: Op) -> None:
    """How many lanes equal each number: a sum of comparisons, numbers along sublanes, lanes along lanes."""
    (source,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
    lanes = section.at(source, (None, axis))
    shape = section.shared.shape((target, axis))
    numbers = f"jax.lax.broadcasted_iota(jnp.int32, {shape}, 0)"
    code = Code(f"jnp.sum(({lanes.at(jnp.COMPARE + 1)} == {numbers}).astype(jnp.int32), axis=1, keepdims=True)")
    section.define(op, code, (target, None))


def philox(section: Section, op: Op) -> None:
    layout = section.layout(op.results[0])
    words = [
        jnp.typed(code, value.dtype).text
        for code, value in zip(section.operands(op.operands, layout), op.operands, strict=True)
    ]
    filled = [section.filled(value, layout) for value in op.operands]
    physical = tuple(next(filter(None, names), None) for names in zip(*filled, strict=True))
    give(section, op, f"philox({', '.join(words)}, {op.attributes['rounds']})", [physical] * 4)
