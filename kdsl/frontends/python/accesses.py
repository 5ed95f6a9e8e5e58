"""Accesses of tensors: what an index means, and which indices are in bounds by themselves."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kdsl.frontends.python.lifting import as_number, common_dtype
from kdsl.frontends.python.values import IndexVariable, TensorRef, form_of
from kdsl.ir.dtypes import DType, promote
from kdsl.ir.expr import Expr, symbol, wrap
from kdsl.ir.kernel import Bound, Value

if TYPE_CHECKING:
    from kdsl.frontends.python.expressions import Expressions

Entry = tuple[ast.AST, Any]  # one index of an access, and where it is written


def entries(node: ast.expr, index: Any) -> list[Entry]:
    """The entries of an index in brackets."""
    if not isinstance(index, tuple):
        return [(node, index)]
    nodes = node.elts if isinstance(node, ast.Tuple) and len(node.elts) == len(index) else [node] * len(index)
    return list(zip(nodes, index, strict=True))


def load(trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry]) -> Value:
    """`tensor[...]`: read at an index that stays inside."""
    _readable(trace, node, tensor)
    forms = [_form(trace, tensor, dimension, entry, False) for dimension, entry in _ranked(trace, node, tensor, index)]
    _whole_once(trace, tensor, index)
    return _emit(trace, node, tensor, {"index": tuple(forms)})


def load_masked(
    trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry], fill: Entry | None
) -> Value:
    """`tensor.load(..., fill=...)`: lanes whose index leaves the tensor give the fill, or poison without one."""
    _readable(trace, node, tensor)
    buffer = tensor.buffer
    forms, bounds = [], []
    for dimension, entry in _ranked(trace, node, tensor, index):
        forms.append(_form(trace, tensor, dimension, entry, True))
        inside = isinstance(entry[1], IndexVariable) and entry[1].dim is tensor.dims[dimension] is not None
        if not inside and not isinstance(entry[1], slice):
            bounds.append(Bound(forms[-1], wrap(0), buffer.shape[dimension]))
    _whole_once(trace, tensor, index)
    attributes: dict[str, Any] = {"index": tuple(forms)}
    if fill is not None and fill[1] is not None:
        number = as_number(fill[1], buffer.dtype) if isinstance(fill[1], int | float) else None
        if number is None:
            problem = f"the fill {trace.quote(fill[0])} is no {buffer.dtype} that is known when compiling"
            trace.error(fill[0], "K0206", operation=f"{buffer.name}.load", problem=problem)
        if bounds:
            attributes["fill"] = number
    if bounds:
        attributes["bounds"] = tuple(bounds)
    return _emit(trace, node, tensor, attributes)


def store(trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry], thing: Any) -> None:
    """`tensor[...] = thing`: write, rounded to the tensor's dtype."""
    trace.at(node)
    buffer = tensor.buffer
    if buffer.role == "in":
        trace.error(node, "K0205", tensor=buffer.name)
    forms = [_form(trace, tensor, dimension, entry, False) for dimension, entry in _ranked(trace, node, tensor, index)]
    _whole_once(trace, tensor, index)
    value = _rounded(trace, node, tensor, thing)
    covered = {name for form in forms for name in form.symbols}
    loose = [name for name in trace.builder.kernel.tile_axes(value) if name not in covered]
    if loose:
        trace.error(node, "K0204", axes=trace.shown_axes(loose))
    trace.builder.effect("store", (value,), {"buffer": buffer.name, "index": tuple(forms)})


def _rounded(trace: Expressions, node: ast.AST, tensor: TensorRef, thing: Any) -> Value:
    """The stored value in the tensor's dtype. A store may round; what would cut or wrap has to be said."""
    buffer = tensor.buffer
    if isinstance(thing, bool | int | float):
        if as_number(thing, buffer.dtype) is None:
            problem = f"{thing} is no {buffer.dtype}, which {buffer.name} holds"
            trace.error(node, "K0206", operation="store", problem=problem)
        return trace.lift.value(thing, buffer.dtype)
    given = common_dtype([thing], trace.builder.location)
    if not _rounds_to(given, buffer.dtype):
        problem = f"the value is {given} and {buffer.name} holds {buffer.dtype}, which is more than rounding"
        trace.error(node, "K0206", operation="store", problem=problem)
    return trace.lift.value(thing, buffer.dtype)


def _rounds_to(given: DType, kept: DType) -> bool:
    return kept.is_float or promote(given, kept) == kept


def _readable(trace: Expressions, node: ast.AST, tensor: TensorRef) -> None:
    trace.at(node)
    if tensor.buffer.role == "out":
        trace.error(node, "K0208", tensor=tensor.buffer.name)


def _emit(trace: Expressions, node: ast.AST, tensor: TensorRef, attributes: dict[str, Any]) -> Value:
    trace.at(node)
    name = tensor.buffer.name
    return trace.builder.emit("load", (), {"buffer": name, **attributes}, hint=f"{name}_tile")


def _ranked(
    trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry]
) -> Sequence[tuple[int, Entry]]:
    rank = len(tensor.buffer.shape)
    if len(index) != rank:
        trace.error(node, "K0203", tensor=tensor.buffer.name, rank=rank, given=len(index))
    return list(enumerate(index))


def _whole_once(trace: Expressions, tensor: TensorRef, index: Sequence[Entry]) -> None:
    taken: set[str] = set()
    for (node, entry), dim in zip(index, tensor.dims, strict=True):
        if isinstance(entry, slice) and dim is not None:
            if dim.__name__ in taken:
                trace.error(node, "K0212", dim=dim.__name__)
            taken.add(dim.__name__)


def _form(trace: Expressions, tensor: TensorRef, dimension: int, at: Entry, may_leave: bool) -> Expr:
    """The index form of one dimension."""
    node, entry = at
    buffer, dim, extent = tensor.buffer, tensor.dims[dimension], tensor.buffer.shape[dimension]
    if isinstance(entry, slice):
        if entry != slice(None):
            instead = "loop or tile between limits: `Dim.tiles(..., start=..., stop=...)`"
            trace.error(node, "K0103", what="a slice with limits", instead=instead)
        if dim is None:
            instead = f"index it with a number, or with `c` where `c = kdsl.axis({extent})`"
            trace.error(node, "K0103", what="`:` for a dimension of constant size", instead=instead)
        return symbol(trace.whole_axis(dim.__name__, extent))
    trace.no_tile_size(node, entry)
    form = form_of(entry)
    if form is None:
        what = f"{trace.quote(node, entry)} as an index; indices are index variables, integers and forms of them"
        trace.error(node, "K0104", what=what)
    if may_leave:
        return form
    number, limit = form.constant, extent.constant
    if number is not None and (number < 0 or (limit is not None and number >= limit)):
        trace.error(node, "K0217", index=number, dimension=dimension, tensor=buffer.name, extent=extent)
    if isinstance(entry, IndexVariable) and not _runs_over(entry, dim, extent):
        got = entry.dim.__name__ if entry.dim else f"{entry.size} lanes of its own"
        fields = {"dimension": dimension, "tensor": buffer.name, "expected": extent, "index": entry.name, "got": got}
        trace.error(node, "K0214", **fields)
    return form


def _runs_over(variable: IndexVariable, dim: Any, extent: Expr) -> bool:
    """Whether all points of an index variable are in a dimension."""
    if variable.dim is not None:
        return variable.dim is dim
    lanes, limit = variable.size.constant, extent.constant
    return variable.size == extent or (lanes is not None and limit is not None and lanes <= limit)
