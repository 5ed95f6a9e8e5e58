"""What a call of an operation is given: tiles, axes and words, each checked and with the place where it is written."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kdsl.frontends.python.accesses import Entry
from kdsl.frontends.python.values import IndexVariable
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr, wrap
from kdsl.ir.kernel import Region, Value
from kdsl.ir.type_rules import OpTypeError

if TYPE_CHECKING:
    from kdsl.frontends.python.trace import Tracer


@dataclass(frozen=True)
class Call:
    """A call of an operation: what is given for each parameter, and where that is written."""

    trace: Tracer
    title: str
    node: ast.Call
    things: Mapping[str, Any]
    nodes: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.things[name]

    def where(self, name: str) -> ast.expr:
        node = self.nodes.get(name, self.node)
        return node if isinstance(node, ast.expr) else self.node

    def entries(self, name: str) -> list[Entry]:
        """The elements of an argument that is a tuple or list, or the argument alone; each with its place."""
        things, node = self[name], self.where(name)
        if not isinstance(things, tuple | list):
            return [(node, things)]
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == len(things):
            return list(zip(node.elts, things, strict=True))
        return [(node, thing) for thing in things]

    def value(self, name: str, dtype: DType | None = None) -> Value:
        """A tile, of `dtype` if given."""
        self.trace.operand(self.where(name), self[name])
        return self.trace.lift.value(self[name], dtype)

    def values(self, name: str) -> list[Value]:
        """A tuple of tiles, or one alone."""
        for node, thing in self.entries(name):
            self.trace.operand(node, thing)
        return [self.trace.lift.value(thing) for _, thing in self.entries(name)]

    def axis(self, name: str) -> str:
        """The tile axis that an argument names."""
        return self.trace.axis_of(self[name], self.where(name))

    def axes(self, name: str) -> tuple[str, ...]:
        """The tile axes that a tuple names, or one alone."""
        return tuple(self.trace.axis_of(thing, node) for node, thing in self.entries(name))

    def own_axis(self, name: str, value: Value, of: str = "x") -> str:
        """The axis that an argument names, which a value has to vary over. Raises KdslError K0202."""
        axis = self.axis(name)
        self.varies_over(axis, value, of)
        return axis

    def varies_over(self, axis: str, value: Value, of: str) -> None:
        trace = self.trace
        if axis not in trace.builder.kernel.tile_axes(value):
            own = trace.shown_axes(trace.builder.kernel.tile_axes(value)) or "it has none"
            shown = trace.shown_axes([axis])
            trace.error(self.where(of), "K0202", value=trace.quote(self.where(of)), axis=shown, axes=own)

    def start(self, name: str) -> Expr:
        """The place in its dimension where the axis that an argument names starts."""
        return self[name].start if isinstance(self[name], IndexVariable) else wrap(0)

    def flag(self, name: str) -> bool:
        """An argument that is true or false when the kernel is compiled."""
        return self.trace.truth(self.where(name), self[name])

    def word(self, name: str, known: Sequence[str], code: str = "K0220") -> str:
        """An argument that is one of some words. Raises KdslError."""
        if self[name] not in known:
            problem = f"there is no {name} {self[name]!r}, only {', '.join(known)}"
            self.trace.error(self.where(name), code, operation=self.title, problem=problem)
        return str(self[name])

    def emit(self, name: str, operands: Sequence[Value], attributes: Mapping[str, Any], code: str = "K0206") -> Value:
        """An op with one result. What its row forbids is an error of the author's, with the code."""
        (result,) = self.emit_all(name, operands, attributes, code=code, results=1)
        self.trace.builder.unnamed.add(result.name)
        return result

    def emit_all(
        self,
        name: str,
        operands: Sequence[Value],
        attributes: Mapping[str, Any],
        regions: Sequence[Region] = (),
        code: str = "K0206",
        results: int | None = None,
    ) -> tuple[Value, ...]:
        """An op with as many results as operands, or as said."""
        hints = [self.title.removeprefix("kdsl.")] * (len(operands) if results is None else results)
        self.trace.at(self.node)
        try:
            return self.trace.builder.emit_all(name, operands, attributes, hints, regions)
        except OpTypeError as error:
            # The author did not write the names of IR values.
            problem = re.sub(r"%[\w.]+", "the operand", str(error))
            self.trace.error(self.node, code, operation=self.title, problem=problem)


Handler = Callable[[Call], Any]
