"""Accesses of tensors: what an index means, and which indices are in bounds by themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kdsl.frontends.python.lifting import as_number, common_dtype
from kdsl.frontends.python.values import IndexVariable, TensorRef, form_of
from kdsl.ir.dtypes import DType, promote
from kdsl.ir.expr import Expr, symbol, wrap
from kdsl.ir.kernel import Bound, Value
from kdsl.lang.dims import as_expr

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
    readable(trace, node, tensor)
    forms = [form(trace, tensor, dimension, entry, False) for dimension, entry in ranked(trace, node, tensor, index)]
    return _emit(trace, node, tensor, {"index": tuple(forms)})


def load_masked(
    trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry], fill: Entry | None
) -> Value:
    """`tensor.load(..., fill=...)`: lanes whose index leaves the tensor give the fill, or poison without one."""
    readable(trace, node, tensor)
    forms, bounds = [], []
    for dimension, entry in ranked(trace, node, tensor, index):
        forms.append(form(trace, tensor, dimension, entry, True))
        bounds += leaving(tensor, dimension, entry[1], forms[-1])
    attributes: dict[str, Any] = {"index": tuple(forms)}
    number = filling(trace, tensor, fill)
    if bounds:
        attributes["bounds"] = tuple(bounds)
        if number is not None:
            attributes["fill"] = number
    return _emit(trace, node, tensor, attributes)


def leaving(tensor: TensorRef, dimension: int, entry: Any, at: Expr) -> list[Bound]:
    """What keeps an index of a dimension inside, unless it is inside by itself."""
    inside = isinstance(entry, IndexVariable) and entry.dim is tensor.dims[dimension] is not None
    return [] if inside or isinstance(entry, slice) else [Bound(at, wrap(0), tensor.buffer.shape[dimension])]


def filling(trace: Expressions, tensor: TensorRef, fill: Entry | None) -> bool | int | float | None:
    """The number that lanes outside give, if one is given."""
    if fill is None or fill[1] is None:
        return None
    buffer = tensor.buffer
    number = as_number(fill[1], buffer.dtype) if isinstance(fill[1], int | float) else None
    if number is None:
        problem = f"the fill {trace.quote(fill[0])} is no {buffer.dtype} that is known when compiling"
        trace.error(fill[0], "K0206", operation=f"{buffer.name}.load", problem=problem)
    return number


def store(trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry], thing: Any) -> None:
    """`tensor[...] = thing`: write, rounded to the tensor's dtype."""
    writable(trace, node, tensor)
    forms = [form(trace, tensor, dimension, entry, False) for dimension, entry in ranked(trace, node, tensor, index)]
    value = rounded(trace, node, tensor, thing)
    covered(trace, node, value.axes, {name for at in forms for name in at.symbols})
    trace.builder.effect("store", (value,), {"buffer": tensor.buffer.name, "index": tuple(forms)})


def covered(trace: Expressions, node: ast.AST, axes: Iterable[str], by: set[str]) -> None:
    """Raises KdslError K0204 where lanes along an axis would share an element."""
    loose = [name for name in axes if name not in by and trace.builder.kernel.axis(name).kind == "tile"]
    if loose:
        trace.error(node, "K0204", axes=trace.shown_axes(loose))


def rounded(trace: Expressions, node: ast.AST, tensor: TensorRef, thing: Any) -> Value:
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


def writable(trace: Expressions, node: ast.AST, tensor: TensorRef) -> None:
    trace.at(node)
    if tensor.buffer.role == "in":
        trace.error(node, "K0205", tensor=tensor.buffer.name)


def readable(trace: Expressions, node: ast.AST, tensor: TensorRef) -> None:
    trace.at(node)
    if tensor.buffer.role == "out":
        trace.error(node, "K0208", tensor=tensor.buffer.name)


def _emit(trace: Expressions, node: ast.AST, tensor: TensorRef, attributes: dict[str, Any]) -> Value:
    trace.at(node)
    name = tensor.buffer.name
    return trace.builder.emit("load", (), {"buffer": name, **attributes}, hint=f"{name}_tile")


def ranked(trace: Expressions, node: ast.AST, tensor: TensorRef, index: Sequence[Entry]) -> Sequence[tuple[int, Entry]]:
    """The entries with their dimensions: one for each, and `:` at most once for a dimension."""
    rank = len(tensor.buffer.shape)
    if len(index) != rank:
        trace.error(node, "K0203", tensor=tensor.buffer.name, rank=rank, given=len(index))
    _whole_once(trace, tensor, index)
    return list(enumerate(index))


def _whole_once(trace: Expressions, tensor: TensorRef, index: Sequence[Entry]) -> None:
    taken: set[str] = set()
    for (node, entry), dim in zip(index, tensor.dims, strict=True):
        if isinstance(entry, slice) and dim is not None:
            if dim.__name__ in taken:
                trace.error(node, "K0212", dim=dim.__name__)
            taken.add(dim.__name__)


def form(trace: Expressions, tensor: TensorRef, dimension: int, at: Entry, may_leave: bool) -> Expr:
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
    place = form_of(entry)
    if place is None:
        trace.error(node, "K0104", what=f"{trace.quote(node, entry)} as an index; indices are integers")
    if may_leave:
        return place
    number, limit = place.constant, extent.constant
    if number is not None and (number < 0 or (limit is not None and number >= limit)):
        trace.error(node, "K0217", index=number, dimension=dimension, tensor=buffer.name, extent=extent)
    if isinstance(entry, IndexVariable) and not _runs_over(entry, dim, extent):
        got = entry.dim.__name__ if entry.dim else f"{entry.size} lanes of its own"
        fields = {"dimension": dimension, "tensor": buffer.name, "expected": extent, "index": entry.name, "got": got}
        trace.error(node, "K0214", **fields)
    return place


def _runs_over(variable: IndexVariable, dim: Any, extent: Expr) -> bool:
    """Whether all points of an index variable are in a dimension."""
    if variable.dim is not None:
        spare = None if dim is None else (as_expr(dim) - as_expr(variable.dim)).constant
        return variable.dim is dim or (spare is not None and spare >= 0)
    lanes, limit = variable.size.constant, extent.constant
    return variable.size == extent or (lanes is not None and limit is not None and lanes <= limit)
