"""Loops that run on the device: which names they carry, found by tracing the body until nothing changes.

A name that has a value before the loop and is assigned in its body is carried from one iteration to the next. What
axes it varies over, and for a Python number also its dtype, depends on the body, which depends on them: so the body is
traced again with what was found, until that is stable. A name that the body leaves alone after all is dropped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kdsl.frontends.python.lifting import common_dtype, is_operand, is_weak
from kdsl.frontends.python.values import Gone, IndexVariable, RangeOf, TilesOf, describe, is_traced
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import cdiv, symbol
from kdsl.ir.kernel import Axis, Op, Region, Value
from kdsl.lang.dims import Dim

if TYPE_CHECKING:
    from kdsl.frontends.python.trace import Tracer

# What is in these has names of its own.
SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
# Each round adds an axis or changes a dtype; a body that never settles is an error.
ROUNDS = 32


@dataclass
class Carried:
    """A name that a loop carries: its value before the loop, and the axes and dtype found necessary so far."""

    name: str
    before: Any
    dtype: DType
    axes: tuple[str, ...]


@dataclass
class Attempt:
    """One tracing of the body: what the carried names are before, inside and after it.

    `axis` is the loop's own, "" for a `while`, which has a `test` instead; `varying` are axes that all carried names
    get from it.
    """

    initial: list[Value]
    arguments: list[Value]
    final: list[Value]
    ops: list[Op]
    axis: str = ""
    test: Region | None = None
    varying: tuple[str, ...] = ()


class Loop:
    """A loop in order, inside the grid. `For` and `While` say how it is entered and what op it becomes."""

    node: ast.For | ast.While

    def __init__(self, trace: Tracer, node: ast.For | ast.While, target: str = "") -> None:
        self.trace, self.node, self.name = trace, node, target
        self.assigned = [name for name in assigned_names(node.body) if name != self.name]
        self.carried: list[Carried] = []
        self.lost: dict[str, Gone] = {}  # what has a value before that no loop can carry
        for name in self.assigned:
            before = trace.names.get(name)
            if isinstance(before, IndexVariable) and before.name == name:
                continue  # assigning to it is an error, as it is outside a loop
            if is_operand(before):
                axes = before.axes if isinstance(before, Value) else ()
                self.carried.append(Carried(name, before, common_dtype([before], trace.builder.location), axes))
            elif name in trace.names:
                self.lost[name] = Gone(f"it is {describe(before)}, and a loop carries only tiles and numbers")
        self.state = trace.builder.snapshot(), dict(trace.names), dict(trace.whole), list(trace.constraints)

    def run(self) -> None:
        """Trace the loop into the kernel. Raises KdslError."""
        for _ in range(ROUNDS):
            attempt = self.attempt()
            if self.settled(attempt):
                return self.finish(attempt)
            self.trace.builder.restore(self.state[0])
            self.trace.names, self.trace.whole = dict(self.state[1]), dict(self.state[2])
            self.trace.constraints = list(self.state[3])
        self.trace.error(self.node, "K0103", what="a loop whose values never settle", instead="cast what it carries")

    def attempt(self) -> Attempt:
        raise NotImplementedError

    def emit(self, attempt: Attempt) -> tuple[Value, ...]:
        """Append the loop; gives what the carried names are after it."""
        raise NotImplementedError

    def before(self) -> list[Value]:
        """The initial values; what no loop can carry is gone from here on."""
        self.trace.names |= self.lost
        return [self.trace.lift.value(item.before, item.dtype) for item in self.carried]

    def enter(self) -> list[Value]:
        """New arguments of a region, which the carried names now stand for."""
        order, fresh = self.trace.builder.kernel.order, self.trace.builder.fresh
        arguments = [Value(fresh(item.name), item.dtype, order(item.axes)) for item in self.carried]
        self.trace.names |= {item.name: argument for item, argument in zip(self.carried, arguments, strict=True)}
        return arguments

    def body(self) -> tuple[list[Value], list[Op]]:
        """What the body yields, and its ops."""
        trace = self.trace
        with trace.builder.region() as ops:
            trace.loops += 1
            trace.block(self.node.body)
            trace.loops -= 1
            trace.at(self.node)
            with trace.stating(None):
                final = [self.final(item) for item in self.carried]
            ops.append(Op("yield", tuple(final), location=trace.builder.location))
        return final, ops

    def final(self, item: Carried) -> Value:
        """What an iteration leaves in a carried name, in the dtype that it is carried in."""
        trace, thing = self.trace, self.trace.names[item.name]
        if not is_operand(thing):
            self.changes(item, describe(thing))
        joined = [thing, item.dtype] if is_weak(thing) else [thing]
        dtype = common_dtype(joined, trace.builder.location)
        # A Python number before the loop takes the dtype that the body gives it.
        if dtype != item.dtype and not (
            is_weak(item.before) and common_dtype([item.before, dtype], trace.builder.location) == dtype
        ):
            self.changes(item, str(dtype))
        return trace.lift.value(thing, dtype)

    def changes(self, item: Carried, after: str) -> None:
        self.trace.error(self.last(item.name), "K0209", name=item.name, before=item.dtype, after=after)

    def settled(self, attempt: Attempt) -> bool:
        """Whether the body left dtypes and axes as they were; if not, what it needs is noted for the next attempt."""
        kept, stable = [], True
        for item, initial, argument, final in zip(
            self.carried, attempt.initial, attempt.arguments, attempt.final, strict=True
        ):
            if final == argument and self.trace.names[item.name] == argument:
                stable = False
                continue
            axes = self.trace.builder.kernel.order({*initial.axes, *final.axes, *item.axes, *attempt.varying})
            stable = stable and axes == item.axes and final.dtype == item.dtype
            item.axes, item.dtype = axes, final.dtype
            kept.append(item)
        self.carried = kept
        return stable

    def finish(self, attempt: Attempt) -> None:
        trace, kernel = self.trace, self.trace.builder.kernel
        # The tile axes of this loop, and of loops inside it, that its values could still vary over.
        inside = [axis.name for axis in kernel.axes if any(attempt.axis in bound.symbols for bound in axis.bounds)]
        for item in self.carried:
            for name in inside:
                if name in item.axes:
                    self.trace.error(self.last(item.name), "K0210", name=item.name, axis=self.trace.shown_axes([name]))
        names = [item.name for item in self.carried]
        results = self.emit(attempt)
        for name in self.assigned:
            unchanged = name in self.state[1] and trace.names.get(name) is self.state[1][name]
            if not unchanged:
                trace.names[name] = Gone("it was assigned in a loop, which may run zero times")
        trace.names |= dict(zip(names, results, strict=True))
        if self.name:
            trace.names[self.name] = Gone("its loop has ended")

    def last(self, name: str) -> ast.AST:
        """Where the body last assigns a name."""
        return [node for node in _stores(self.node.body) if node.id == name][-1]


class For(Loop):
    """A loop over tiles, points, or a range of integers."""

    node: ast.For

    def __init__(self, trace: Tracer, node: ast.For, over: TilesOf | RangeOf | type[Dim]) -> None:
        super().__init__(trace, node, trace.target(node.target))
        self.over = over

    def attempt(self) -> Attempt:
        variable, axis = self.variable()
        initial, arguments = self.before(), self.enter()
        self.trace.names[self.name] = variable
        final, ops = self.body()
        return Attempt(initial, arguments, final, ops, axis)

    def variable(self) -> tuple[Any, str]:
        """What the loop's name stands for, and the loop's axis."""
        trace, over = self.trace, self.over
        if not isinstance(over, RangeOf):
            return trace.index_variable(self.node.target, over, "loop")
        extent = cdiv(over.stop - over.start, over.step)
        axis = trace.builder.add_axis(Axis(trace.axis_name(self.name), "loop", extent))
        return over.start + over.step * symbol(axis.name), axis.name

    def emit(self, attempt: Attempt) -> tuple[Value, ...]:
        names = [item.name for item in self.carried]
        return self.trace.builder.loop(attempt.axis, attempt.initial, attempt.arguments, attempt.ops, names)


class While(Loop):
    """A loop as long as a condition holds that is known only when the kernel runs."""

    node: ast.While

    def attempt(self) -> Attempt:
        trace = self.trace
        with trace.stating(None):  # a debugger stops at the tests
            initial = self.before()
        tested = self.enter()
        with trace.builder.region() as test, trace.stating(self.node):
            thing = trace.eval(self.node.test)
            if not is_traced(thing):
                what = "`while` with a condition that is known when the kernel is compiled"
                trace.error(self.node.test, "K0103", what=what, instead="use `for` over a range or a dimension")
            condition = trace.condition(self.node.test, thing)
            test.append(Op("yield", (condition,), location=trace.builder.location))
        arguments = self.enter()
        final, ops = self.body()
        return Attempt(initial, arguments, final, ops, "", Region(tuple(tested), tuple(test)), condition.axes)

    def emit(self, attempt: Attempt) -> tuple[Value, ...]:
        assert attempt.test is not None
        names = [item.name for item in self.carried]
        regions = attempt.test, Region(tuple(attempt.arguments), tuple(attempt.ops))
        return self.trace.builder.emit_all("while", attempt.initial, {}, names, regions)


def assigned_names(statements: Sequence[ast.stmt]) -> list[str]:
    """Names that the statements assign, in the order of the text."""
    return list(dict.fromkeys(node.id for node in _stores(statements)))


def _stores(nodes: Sequence[ast.AST]) -> Iterator[ast.Name]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node
        elif not isinstance(node, SCOPES):
            yield from _stores(list(ast.iter_child_nodes(node)))
