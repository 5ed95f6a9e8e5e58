"""Accesses by name (`load`, `store`, atomics), and accesses at integers that only the kernel knows when it runs.

Index variables and forms of them make boxes. A loaded integer, a scalar or a mask makes an indexed access, whose
indices are tiles like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kdsl.frontends.python import accesses
from kdsl.frontends.python.accesses import Entry
from kdsl.frontends.python.lifting import common_dtype
from kdsl.frontends.python.values import TensorRef
from kdsl.ir.dtypes import BOOL, I64, U64
from kdsl.ir.kernel import Bound, Scalar, Value
from kdsl.ir.type_rules import OpTypeError

if TYPE_CHECKING:
    from kdsl.frontends.python.expressions import Expressions
    from kdsl.frontends.python.trace import Tracer

ATOMICS = {
    "atomic_add": "add", "atomic_max": "maximum", "atomic_min": "minimum", "atomic_and": "and", "atomic_or": "or",
    "atomic_xor": "xor", "atomic_exchange": "exchange",
}  # fmt: skip
# What each access takes by name: all that has to be given, then all that may be.
KEYWORDS: dict[str, tuple[set[str], set[str]]] = {
    "load": (set(), {"mask", "fill"}),
    "store": ({"value"}, {"mask"}),
    **{name: ({"value"}, {"mask"}) for name in ATOMICS},
    "atomic_cas": ({"expected", "value"}, {"mask"}),
}


def access(
    trace: Tracer, node: ast.Call, tensor: TensorRef, name: str, index: Sequence[Entry], given: Mapping[str, Entry]
) -> Value | None:
    """`tensor.name(*index, ...)`, for a name in KEYWORDS. Raises KdslError."""
    needed, optional = KEYWORDS[name]
    for wrong, problem in ((needed - given.keys(), "is missing"), (given.keys() - needed - optional, "is not known")):
        if wrong:
            fields = {"tensor": tensor.buffer.name, "access": name, "problem": f"{', '.join(sorted(wrong))} {problem}"}
            trace.error(node, "K0221", **fields)
    mask = given.get("mask", (node, None))
    if name == "load":
        return load(trace, node, tensor, index, mask, given.get("fill"))
    if not trace.inside_grid:
        trace.no_grid(node, "has a store outside it")
    if name == "store":
        store(trace, node, tensor, index, given["value"], mask)
        return None
    return atomic(trace, node, tensor, name, index, given, mask)


def is_indexed(index: Sequence[Entry]) -> bool:
    """Whether an index needs more than forms."""
    return any(isinstance(thing, Value | Scalar) for _, thing in index)


def load(
    trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry], mask: Entry, fill: Entry | None
) -> Value:
    """`tensor.load(...)`: lanes outside the tensor or the mask give the fill, or poison without one."""
    if mask[1] is None and not is_indexed(index):
        return accesses.load_masked(trace, node, tensor, index, fill)
    accesses.readable(trace, node, tensor)
    places = _places(trace, node, tensor, index, may_leave=True)
    masks = [] if mask[1] is None else [_mask(trace, tensor, mask)]
    bounds: list[Bound] = []
    for dimension, (_, thing) in enumerate(index):
        if isinstance(thing, Value | Scalar):
            extent = tensor.buffer.shape[dimension]
            masks += [trace.lift.apply("ge", [places[dimension], 0], "mask")]
            masks += [trace.lift.apply("lt", [places[dimension], extent], "mask")]
        else:
            at = accesses.form(trace, tensor, dimension, index[dimension], True)
            bounds += accesses.leaving(tensor, dimension, thing, at)
    if bounds:
        masks.append(trace.builder.emit("in_bounds", (), {"bounds": tuple(bounds)}))
    attributes: dict[str, Any] = {}
    number = accesses.filling(trace, tensor, fill)
    if masks and number is not None:
        attributes["fill"] = number
    return _load_at(trace, node, tensor, places, masks, attributes)


def load_at(trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry]) -> Value:
    """`tensor[...]` at loaded integers, which promise to stay inside."""
    accesses.readable(trace, node, tensor)
    return _load_at(trace, node, tensor, _places(trace, node, tensor, index), [], {})


def _load_at(
    trace: Expressions,
    node: ast.AST,
    tensor: TensorRef,
    places: list[Value],
    masks: list[Value],
    attributes: dict[str, Any],
) -> Value:
    trace.at(node)
    name, operands = tensor.buffer.name, [*places]
    if masks:
        mask, *rest = masks
        for other in rest:
            mask = trace.lift.apply("and", [mask, other], "mask")
        operands.append(mask)
        attributes["masked"] = True
    return trace.builder.emit("load_at", operands, {"buffer": name, **attributes}, hint=f"{name}_tile")


def store(
    trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry], value: Entry, mask: Entry
) -> None:
    """`tensor.store(...)`, and `tensor[...] = value` at loaded integers."""
    if mask[1] is None and not is_indexed(index):
        accesses.store(trace, node, tensor, index, value[1])
        return
    accesses.writable(trace, node, tensor)
    operands, attributes = _written(trace, node, tensor, index, [value], mask)
    by = {name for operand in operands[1 : 1 + len(index)] for name in operand.axes}
    accesses.covered(trace, node, {*operands[0].axes, *operands[-1].axes}, by)
    trace.at(node)
    trace.builder.effect("store_at", operands, attributes)


def atomic(
    trace: Tracer,
    node: ast.Call,
    tensor: TensorRef,
    name: str,
    index: Sequence[Entry],
    given: Mapping[str, Entry],
    mask: Entry,
) -> Value | None:
    """`tensor.atomic_...(...)`; its result is made only where it is used."""
    accesses.writable(trace, node, tensor)
    accesses.readable(trace, node, tensor)
    values = [given[key] for key in ("expected", "value") if key in given]
    operands, attributes = _written(trace, node, tensor, index, values, mask)
    op = "atomic" if name in ATOMICS else "atomic_cas"
    if name in ATOMICS:
        attributes["combine"] = ATOMICS[name]
    trace.at(node)
    try:
        if trace.unused is node:
            trace.builder.effect(op, operands, attributes)
            return None
        hints = [f"{tensor.buffer.name}_before"]
        return trace.builder.emit_all(op, operands, attributes, hints, asked=True)[0]
    except OpTypeError as error:
        trace.error(node, "K0206", operation=f"{tensor.buffer.name}.{name}", problem=error)


def _written(
    trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry], values: Sequence[Entry], mask: Entry
) -> tuple[list[Value], dict[str, Any]]:
    """The operands of an access that writes: values in the tensor's dtype, indices, mask."""
    places = _places(trace, node, tensor, index)
    operands = [*(accesses.rounded(trace, at, tensor, thing) for at, thing in values), *places]
    attributes: dict[str, Any] = {"buffer": tensor.buffer.name}
    if mask[1] is not None:
        operands.append(_mask(trace, tensor, mask))
        attributes["masked"] = True
    return operands, attributes


def _places(
    trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry], may_leave: bool = False
) -> list[Value]:
    """The index of each dimension as an integer tile."""
    places = []
    for dimension, (at, thing) in accesses.ranked(trace, node, tensor, index):
        if isinstance(thing, Value | Scalar):
            dtype = common_dtype([thing], trace.builder.location)
            if not dtype.is_integer or dtype.is_storage:
                trace.error(at, "K0104", what=f"{trace.quote(at, thing)} as an index; indices are integers")
            # A place past 2**63 is outside either way; as i64 it can be compared with a size.
            places.append(trace.lift.value(thing, I64 if dtype == U64 else dtype))
        else:
            places.append(trace.lift.index(accesses.form(trace, tensor, dimension, (at, thing), may_leave)))
    return places


def _mask(trace: Expressions, tensor: TensorRef, mask: Entry) -> Value:
    trace.operand(*mask)
    value = trace.lift.value(mask[1])
    if value.dtype != BOOL:
        problem = f"the mask is {value.dtype}, not bool"
        trace.error(mask[0], "K0206", operation=f"an access of {tensor.buffer.name}", problem=problem)
    return value
