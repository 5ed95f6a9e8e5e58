"""Loops and branches: functions of what they carry, which are the op's values and the tensors that they write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdsl.codegen import jnp
from kdsl.codegen.jnp import Code
from kdsl.codegen.layout import Layout
from kdsl.ir.dtypes import I32, I64
from kdsl.ir.kernel import Op, Region, Value

from .arrays import as_value
from .boxes import written_in

if TYPE_CHECKING:
    from .body import Body


def loop(body: Body, op: Op) -> None:
    """A fori_loop."""
    (region,), axis = op.regions, body.kernel.axis(op.attributes["axis"])
    written = written_in(body.kernel, region.ops)
    layouts = [body.layouts[value.name] for value in region.arguments]
    initial = _carried(body, op.operands, layouts)
    name = body.names.fresh("step")
    _define(body, name, [body.axes[axis.name]], region, layouts, written)
    trips = body.counts.get(axis.extent) or body.form(axis.extent).text
    start = as_value([*initial, *written])
    body.line(f"{_results(body, op, written)}jax.lax.fori_loop(0, {trips}, {name}, {start})")


def branch(body: Body, op: Op) -> None:
    """A cond; the tensors that a branch may write are its operands."""
    written = written_in(body.kernel, [inner for region in op.regions for inner in region.ops])
    if not op.results and not written:
        return
    layouts = [body.layouts[value.name] for value in op.results]
    names = [body.names.fresh(hint) for hint in ("then", "otherwise")]
    condition = body.carried(op.operands[0], ())
    for name, region in zip(names, op.regions, strict=True):
        with body.function(name, written):
            body.region(region)
            body.line(f"return {', '.join([*_carried(body, region.ops[-1].operands, layouts), *written])}")
    call = ", ".join([condition, *names, *written])
    body.line(f"{_results(body, op, written)}jax.lax.cond({call})")


def repeat(body: Body, op: Op) -> None:
    """A while_loop. Where the test writes too, it is run at the end of each step, and its verdict is carried."""
    test, region = op.regions
    written = written_in(body.kernel, [*test.ops, *region.ops])
    layouts = [body.layouts[value.name] for value in test.arguments]
    start = as_value([*_carried(body, op.operands, layouts), *written])
    goes_on, step = body.names.fresh("goes_on"), body.names.fresh("step")
    writes = bool(written_in(body.kernel, test.ops))
    carried = [*(body.names.of[value.name] for value in test.arguments), *written]
    with body.function(goes_on, [], carried):
        _name(body, test)
        body.region(test)
        condition = body.carried(test.ops[-1].operands[0], ())
        body.line(f"return {f'{condition}, {as_value(carried)}' if writes else condition}")
    _define(body, step, [], region, layouts, written)
    if writes:
        holds = "lambda carried: carried[0]"
        again = f"jax.lax.while_loop({holds}, lambda carried: {goes_on}({step}(carried[1])), {goes_on}({start}))"
        body.line(f"{_results(body, op, written)}{again}[1]")
    else:
        body.line(f"{_results(body, op, written)}jax.lax.while_loop({goes_on}, {step}, {start})")


def let(body: Body, op: Op) -> None:
    (value,) = op.operands
    code = jnp.typed(body.value(value), value.dtype)
    code = code if value.dtype in (I32, I64) else jnp.cast(code, value.dtype, I32)
    body.line(f"{body.axes[op.attributes['integer']]} = jnp.maximum({code.text}, 0)")


def _define(
    body: Body, name: str, index: list[str], region: Region, layouts: Sequence[Layout], written: Sequence[str]
) -> None:
    """A step: a function of what is carried, which gives it changed."""
    with body.function(name, index, [*(body.names.of[value.name] for value in region.arguments), *written]):
        _name(body, region)
        body.region(region)
        final = _carried(body, region.ops[-1].operands, layouts)
        body.line(f"return {', '.join([*final, *written]) or '()'}")


def _name(body: Body, region: Region) -> None:
    for value in region.arguments:
        body.held[value.name] = Code(body.names.of[value.name])


def _carried(body: Body, values: Sequence[Value], layouts: Sequence[Layout]) -> list[str]:
    return [body.carried(value, layout) for value, layout in zip(values, layouts, strict=True)]


def _results(body: Body, op: Op, written: Sequence[str]) -> str:
    """`a, b = `, for the results of the op and the tensors that it wrote."""
    for value in op.results:
        body.held[value.name] = Code(body.names.of[value.name])
    names = ", ".join([*(body.names.of[value.name] for value in op.results), *written])
    return f"{names} = " if names else ""
