"""How each op is written: one function an op, in the order of the op table; pointwise ops share one.

Each takes the section that it writes to. Reductions keep the reduced dimension with size 1; booleans are moved and
reduced as int32, because Mosaic moves none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kdsl.codegen import jnp
from kdsl.codegen.jnp import ATOM, COMPARE, Code
from kdsl.codegen.layout import Layout, axes_of
from kdsl.diagnostics import fail
from kdsl.ir.dtypes import BF16, BOOL, F32, I8, I32, DType
from kdsl.ir.kernel import Op
from kdsl.ir.type_rules import batch_axes

from . import functions, lanes, rounds
from .access import TARGET
from .body import Section
from .layout import LAZY, factor_layout
from .plan import unneeded
from .text import INDENT, WIDTH, call


def write_ops(section: Section, ops: Iterable[Op]) -> None:
    """Write the ops of a region, but for those whose results are written where they are used."""
    for op in ops:
        if not op.results or section.plan.layouts[op.results[0].name] is not LAZY:
            section.op = op
            STATEMENTS.get(op.name, pointwise)(section, op)


def pointwise(section: Section, op: Op) -> None:
    layout = section.layout(op.result)
    codes = section.operands(op.operands, layout)
    if op.name == "broadcast":
        code = codes[0]
    elif op.name == "cast":
        code = jnp.cast(codes[0], op.operands[0].dtype, op.result.dtype)
    else:
        code = functions.pointwise(op, codes)
    filled = [section.filled(value, layout) for value in op.operands]
    section.define(op, code, tuple(next(filter(None, names), None) for names in zip(*filled, strict=True)))


def reduce(section: Section, op: Op) -> None:
    (source,), axis, combine = op.operands, op.attributes["axis"], op.attributes["combine"]
    layout = section.layout(source)
    place = layout.index(axis)
    code = section.full(source, layout)
    if source.dtype == BOOL:
        fold = "minimum" if combine in ("and", "minimum") else "maximum"
        folded = jnp.reduce(jnp.cast(code, BOOL, I32), fold, I32, place, keepdims=True)
        code = Code(f"{folded.text} != 0", COMPARE)
    elif combine in ("argmax", "argmin"):
        # Mosaic's own argmax takes float32 alone, and says nothing of NaN.
        if not code.text.isidentifier():
            code = section.assign(section.names.fresh("lanes"), code)
        fold = "maximum" if combine == "argmax" else "minimum"
        extreme = jnp.reduce(code, fold, source.dtype, place, keepdims=True)
        code = Code(f"first_extreme({code.text}, {extreme.text}, {place})")
    else:
        code = jnp.reduce(code, combine, source.dtype, place, keepdims=True)
    section.define(op, code, tuple(None if name == axis else name for name in layout))


def dot(section: Section, op: Op) -> None:
    together = batch_axes(section.kernel, op)
    layouts = [factor_layout(section.layout(value), together) for value in op.operands]
    pairs = [
        _factor(section.full(value, layout), value.dtype, op.attributes["precision"])
        for value, layout in zip(op.operands, layouts, strict=True)
    ]
    (left, dtype), (right, _) = pairs
    _multiply(section, op, layouts, (left.text, right.text), dtype)


def _factor(code: Code, dtype: DType, precision: str) -> tuple[Code, DType]:
    """An operand of a dot and its dtype, as it is multiplied: 4-bit integers widened, float32 rounded as asked."""
    if dtype.is_integer and dtype.is_storage:
        return jnp.cast(code, dtype, I8), I8
    if dtype == F32 and precision == "bf16":
        return jnp.cast(code, F32, BF16), BF16
    return (Code(f"to_tf32({code.text})"), F32) if dtype == F32 and precision == "tf32" else (code, dtype)


def _multiply(section: Section, op: Op, layouts: Sequence[Layout], factors: tuple[str, str], dtype: DType) -> None:
    together = batch_axes(section.kernel, op)
    arguments = jnp.dot_arguments(factors, layouts, op.attributes["axis"], together, dtype, op.result.dtype)
    name = section.name_of(op.result)
    section.write(call(f"{name} = jax.lax.dot_general", arguments, section.indent))
    section.codes[op.result.name], section.physical[op.result.name] = Code(name), section.layout(op.result)


def dot_scaled(section: Section, op: Op) -> None:
    layouts, factors = [], []
    for which, group in ((0, op.attributes["left_group"]), (2, op.attributes["right_group"])):
        value, scale = op.operands[which : which + 2]
        layout = factor_layout(section.layout(value), batch_axes(section.kernel, op))
        places = tuple(group if name == op.attributes["axis"] else name for name in layout)
        factor = f"{section.full(value, layout).text}, {section.full(scale, places).text}"
        factors.append(f"scaled({factor}, {layout.index(op.attributes['axis'])})")
        layouts.append(layout)
    _multiply(section, op, layouts, (factors[0], factors[1]), F32)


def reshape(section: Section, op: Op) -> None:
    (source,), target = op.operands, section.layout(op.result)
    if source.dtype == BOOL:
        raise fail("K0302", op.location, target=TARGET, dtype="bool", what="reshape")
    layout = section.layout(source)
    kept = [name for name in axes_of(layout) if name not in op.attributes["source"]]
    ordered = (*(name for name in layout if name is None), *kept, *op.attributes["source"])
    code = section.brought(section.full(source, layout), source.dtype, layout, ordered)
    section.define(op, Code(f"{code.at(ATOM)}.reshape{section.shared.shape(target)}"), target)


def load(section: Section, op: Op) -> None:
    site = section.plan.loaded[op.result.name]
    # The block of an in-out tensor is shared with its output.
    name = site.buffer.name if site.buffer.name in section.plan.aliases else site.name
    code = Code(f"{section.shared.refs[f'in {name}']}[...]")
    skipped = unneeded(section.kernel, op)
    bounds = [bound for bound in op.attributes.get("bounds", ()) if bound not in skipped]
    if bounds and "fill" in op.attributes:
        fill = op.attributes["fill"] if site.dtype == op.result.dtype else int(op.attributes["fill"])
        mask = section.mask(bounds, site.layout)
        code = Code(f"jnp.where({mask.text}, {code.text}, {jnp.constant(fill, site.dtype).text})")
    section.define(op, jnp.cast(code, site.dtype, op.result.dtype), site.layout)


def store(section: Section, op: Op) -> None:
    (value,), buffer = op.operands, op.attributes["buffer"]
    site, kept = section.plan.stored[buffer], section.plan.masked.get(buffer)
    ref = section.shared.refs[f"out {buffer}"]
    room = WIDTH - len(INDENT) * section.indent - len(f"{ref}[...] = ")
    as_it_is = not kept and value.dtype == site.dtype
    code = jnp.cast(section.full(value, site.layout, room if as_it_is else 0), value.dtype, site.dtype)
    if kept:
        mask = section.mask(kept, site.layout)
        code = Code(f"jnp.where({mask.text}, {code.text}, {section.shared.refs[f'in {buffer}']}[...])")
    section.assign(f"{ref}[...]", code)


STATEMENTS: dict[str, Callable[[Section, Op], None]] = {
    "reduce": reduce,
    "dot": dot,
    "reshape": reshape,
    "load": load,
    "store": store,
    "bitcast": lanes.bitcast,
    "scan": lanes.scan,
    "sort": lanes.sort,
    "topk": lanes.topk,
    "gather": lanes.gather,
    "flip": lanes.flip,
    "concat": lanes.concat,
    "join": lanes.join,
    "split": lanes.split,
    "relabel": lanes.relabel,
    "histogram": lanes.histogram,
    "philox": lanes.philox,
    "dot_scaled": dot_scaled,
    "while": rounds.repeat,
    "reduce_by": rounds.reduce_by,
    "scan_by": rounds.scan_by,
}
"""How each op is written that is not pointwise."""
