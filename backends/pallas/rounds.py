"""Functions inside the kernel function: what a while loop tests and does, and combines of the author's own.

Booleans go round as int32: Mosaic's loops carry none, and its rolls move none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kdsl.codegen import jnp
from kdsl.codegen.jnp import ATOM, Code
from kdsl.codegen.layout import Layout
from kdsl.ir.dtypes import BOOL, I32
from kdsl.ir.kernel import Op, Region, Value

from .body import Section
from .lanes import as_given, give
from .layout import LAZY
from .text import INDENT, row


def repeat(section: Section, op: Op) -> None:
    """A while_loop. Its test is a vector of one bool, of which the scalar unit takes the maximum."""
    test, body = op.regions
    layouts = [section.layout(value) for value in body.arguments]
    goes_on, step = section.names.fresh("goes_on"), section.names.fresh("step")
    start = row([_carried(section, value, layout) for value, layout in zip(op.operands, layouts, strict=True)])
    inner = _function(section, goes_on, ["carried"], [(test.arguments, "carried")], test)
    (condition,) = test.ops[-1].operands
    code = inner.at(condition, (None,) * section.plan.rank)
    vector = section.plan.layouts[condition.name] is not LAZY
    inner.write(f"return jnp.max({code.at(ATOM)}.astype(jnp.int32)) != 0" if vector else f"return {code.text}")
    section.lines += [*inner.lines, ""]
    inner = _function(section, step, ["carried"], [(body.arguments, "carried")], body)
    _return(section, inner, body, layouts)
    give(section, op, f"jax.lax.while_loop({goes_on}, {step}, {start})", layouts)


def scan_by(section: Section, op: Op) -> None:
    layout = section.layout(op.regions[0].arguments[0])
    reverse = ", reverse=True" if op.attributes.get("reverse") else ""
    give(section, op, _running(section, op, layout, reverse), [layout] * len(op.results))


def reduce_by(section: Section, op: Op) -> None:
    """The last lane of the running combine."""
    layout, axis = section.layout(op.regions[0].arguments[0]), op.attributes["axis"]
    lanes = section.names.fresh("lanes")
    section.assign(lanes, Code(_running(section, op, layout, "")))
    kept = tuple(None if name == axis else name for name in layout)
    give(section, op, f"[last_lane(x, {layout.index(axis)}) for x in {lanes}]", [kept] * len(op.results))


def _running(section: Section, op: Op, layout: Layout, reverse: str) -> str:
    """Define the combine, which takes two lists of arrays and gives one, and call it along the axis."""
    (region,), count = op.regions, len(op.operands)
    name = section.names.fresh("combine")
    lanes = ", ".join(_carried(section, value, layout) for value in op.operands)
    halves = [(region.arguments[:count], "left"), (region.arguments[count:], "right")]
    inner = _function(section, name, ["left", "right"], halves, region)
    _return(section, inner, region, [layout] * count)
    return f"running({name}, [{lanes}], {layout.index(op.attributes['axis'])}{reverse})"


def _function(
    section: Section, name: str, parameters: Sequence[str], taken: Iterable[tuple[Sequence[Value], str]], region: Region
) -> Section:
    """The section of a function that unpacks its parameters and runs a region; its return is still to be written."""
    from .ops import write_ops

    if section.lines:
        section.lines.append("")
    section.lines.append(f"{INDENT * section.indent}def {name}({', '.join(parameters)}):")
    inner = section.nested()
    for values, parameter in taken:
        names = [inner.name_of(value) for value in values]
        for value, text in zip(values, names, strict=True):
            inner.codes[value.name], inner.physical[value.name] = as_given(value, text), section.layout(value)
        inner.write(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {parameter}")
    write_ops(inner, region.ops[:-1])
    return inner


def _carried(section: Section, value: Value, layout: Layout) -> str:
    """A value as it goes round: of its full shape, a boolean as an integer."""
    code = section.full(value, layout)
    return jnp.cast(code, BOOL, I32).text if value.dtype == BOOL else code.text


def _return(section: Section, inner: Section, region: Region, layouts: Sequence[Layout]) -> None:
    values = zip(region.ops[-1].operands, layouts, strict=True)
    final = row([_carried(inner, value, layout) for value, layout in values])
    inner.write(f"return {final}")
    section.lines += [*inner.lines, ""]
