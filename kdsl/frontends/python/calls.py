"""Calls: methods of dimensions, tensors and tiles, operations, inline helpers, and plain Python functions."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kdsl.frontends.python import accesses, indexed, intrinsics
from kdsl.frontends.python.source import read
from kdsl.frontends.python.values import TensorRef, TileSize, TilesOf, holds_traced, is_dim, is_traced
from kdsl.ir.expr import Expr, Symbol, function, symbol, wrap
from kdsl.lang import operations
from kdsl.lang.dims import Dim
from kdsl.lang.kernel import INLINE, Kernel

if TYPE_CHECKING:
    from kdsl.frontends.python.trace import Tracer

INLINE_DEPTH = 32
# Plain functions that arrange things without looking into them, so that the things may be tiles.
ARRANGING = (len, zip, enumerate, reversed, list, tuple, dict)
# A loop's body may be traced twice, so what it does to a list would happen twice.
CHANGING = {
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "add", "discard", "setdefault",
}  # fmt: skip


class Returned(Exception):
    """An inline helper has reached its return; carries what it gives."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing


def call(trace: Tracer, node: ast.Call) -> Any:
    """What a call gives. Raises KdslError."""
    for item in (*node.args, *node.keywords):
        if isinstance(item, ast.Starred) or (isinstance(item, ast.keyword) and item.arg is None):
            trace.error(item, "K0103", what="a call with * or **", instead="write the arguments out")
    if isinstance(node.func, ast.Attribute):
        base = trace.eval(node.func.value)
        if is_traced(base):
            return _method(trace, node, base, node.func.attr)
        callee = trace.attribute(node.func, base)
        if isinstance(base, list | dict | set) and node.func.attr in CHANGING:
            instead = "make a new one, as in `parts = [*parts, x]`"
            trace.error(node, "K0103", what=f"changing a {type(base).__name__} in place", instead=instead)
    else:
        callee = trace.eval(node.func)
    if callee is operations.require:
        return trace.require(node)
    arguments = [trace.eval(item) for item in node.args]
    keywords = {str(item.arg): trace.eval(item.value) for item in node.keywords}
    trace.at(node)
    if callee is breakpoint:
        return _breakpoint(trace, node)
    if intrinsics.is_intrinsic(callee):
        return intrinsics.call(trace, node, callee, arguments, keywords)
    if getattr(callee, INLINE, False):
        return inline(trace, node, callee, arguments, keywords)
    if isinstance(callee, Kernel):
        trace.error(node, "K0104", what=f"a call of the kernel {callee.name}; kernels do not call kernels")
    return _plain(trace, node, callee, arguments, keywords)


def _breakpoint(trace: Tracer, node: ast.Call) -> None:
    """Python's own `breakpoint()`: `kdsl debug` stops there."""
    if node.args or node.keywords:
        trace.error(node, "K0104", what="an argument of `breakpoint()`")
    trace.builder.effect("breakpoint", (), {})


def _plain(trace: Tracer, node: ast.Call, callee: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    nodes = [*node.args, *(item.value for item in node.keywords)]
    for item, thing in zip(nodes, (*arguments, *keywords.values()), strict=True):
        trace.no_tile_size(item, thing)
        if is_traced(thing) or (holds_traced(thing) and callee not in ARRANGING):
            name = getattr(callee, "__name__", str(callee))
            trace.error(item, "K0110", name=name, argument=trace.quote(item, thing))
    return trace.plainly(node, callee, *arguments, **keywords)


def _method(trace: Tracer, node: ast.Call, base: Any, name: str) -> Any:
    """`Dim.tiles`, `tensor.load` and other accesses by name, and `.to`."""
    arguments = [(item, trace.eval(item)) for item in node.args]
    keywords = {str(item.arg): (item.value, trace.eval(item.value)) for item in node.keywords}
    trace.at(node)
    if is_dim(base) and name == "tiles" and len(arguments) == 1 and not keywords.keys() - {"start", "stop"}:
        return _tiles(trace, base, arguments[0], keywords)
    if isinstance(base, TensorRef) and name in indexed.KEYWORDS:
        return indexed.access(trace, node, base, name, arguments, keywords)
    if name == "to" and len(arguments) == 1 and not keywords and not isinstance(base, TensorRef):
        assert isinstance(node.func, ast.Attribute)
        return intrinsics.convert(trace, (node.func.value, base), arguments[0])
    what = f"a call of {trace.quote(node.func)} with these arguments"
    trace.error(node, "K0104", what=what)


def _tiles(trace: Tracer, dim: type[Dim], tile: accesses.Entry, limits: Mapping[str, accesses.Entry]) -> TilesOf:
    """`Dim.tiles(...)`: the limits stay within the dimension, whatever they are."""
    size, (node, given) = symbol(dim.__name__), tile
    if isinstance(given, TileSize):
        extent = symbol(given.name)
    elif isinstance(given, int) and not isinstance(given, bool) and given > 0:
        extent = wrap(given)
    else:
        trace.error(node, "K0104", what=f"tiles of {trace.quote(node, given)} points; give a Tile or Const parameter")
    start, stop = (
        trace.limit(*limits[name]) if name in limits and limits[name][1] is not None else None
        for name in ("start", "stop")
    )
    return TilesOf(
        dim,
        extent,
        wrap(0) if start is None else start if _never_negative(start) else function("max", start, 0),
        size if stop is None else function("min", stop, size),
    )


def _never_negative(form: Expr) -> bool:
    """Sizes, tile sizes, counters and named integers are not negative, so neither is a sum of their products."""
    return all(
        coefficient > 0 and all(isinstance(atom, Symbol) for atom in monomial) for monomial, coefficient in form.terms
    )


def inline(trace: Tracer, node: ast.Call, callee: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    """Trace a helper's body where it is called, with names of its own."""
    if trace.depth >= INLINE_DEPTH:
        trace.error(node, "K0114", limit=INLINE_DEPTH)
    try:
        bound = inspect.signature(callee).bind(*arguments, **keywords)
    except TypeError as error:
        trace.error(node, "K0104", what=f"{callee.__name__}: {error}")
    bound.apply_defaults()
    trace.hold(bound.arguments)
    outer = trace.source, trace.names, trace.loops, trace.builder.location, trace.caller
    trace.caller = trace.builder.statement
    trace.source, trace.names, trace.loops = read(callee), dict(bound.arguments), 0
    trace.depth += 1
    try:
        trace.block(trace.source.definition.body)
    except Returned as returned:
        return returned.thing
    finally:
        trace.source, trace.names, trace.loops, trace.builder.location, trace.caller = outer
        trace.depth -= 1
    return None
