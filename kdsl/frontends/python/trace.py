"""Statements of a kernel's body: assignments, stores, branches, the grid, and what a kernel requires."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn, cast

from kdsl.diagnostics import fail
from kdsl.frontends.python import accesses, branches, calls, indexed, loops
from kdsl.frontends.python.expressions import COMPARE, Expressions
from kdsl.frontends.python.signature import Signature
from kdsl.frontends.python.values import (
    Gone,
    GridOf,
    IndexVariable,
    RangeOf,
    TensorRef,
    TilesOf,
    describe,
    form_of,
    holds_traced,
    is_dim,
    is_traced,
)
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import BOOL
from kdsl.ir.expr import Expr, cdiv, function, symbol
from kdsl.ir.kernel import COMPARE as CONSTRAINTS
from kdsl.ir.kernel import Axis, AxisKind, Bound, Comparison, Constraint, Kernel, Value
from kdsl.lang.dims import Dim

# What a statement is called, and what to do instead.
INSTEAD: dict[type[ast.stmt], tuple[str, str]] = {
    ast.Return: ("`return`", "store results to Out tensors"),
    ast.Try: ("`try`", "nothing raises on a device; check sizes with kdsl.require"),
    ast.With: ("`with`", "remove it"),
    ast.FunctionDef: ("a function definition", "define helpers outside and decorate them with @kdsl.inline"),
    ast.ClassDef: ("a class definition", "define classes outside"),
    ast.Import: ("`import`", "import at the top of the file"),
    ast.ImportFrom: ("`import`", "import at the top of the file"),
    ast.Break: ("`break`", "limit the loop with `tiles(..., stop=...)`, or write `while condition:`"),
    ast.Continue: ("`continue`", "put the rest of the body under `if`, or mask with kdsl.where"),
    ast.Assert: ("`assert`", "state constraints on sizes with kdsl.require, on values with kdsl.check"),
    ast.Delete: ("`del`", "remove it"),
    ast.Raise: ("`raise`", "check sizes with kdsl.require"),
    ast.Global: ("`global`", "remove it; a kernel changes nothing but its tensors"),
    ast.Nonlocal: ("`nonlocal`", "remove it; a kernel changes nothing but its tensors"),
    ast.Match: ("`match`", "use `if` on compile-time values"),
}


def trace(signature: Signature, empty: Kernel, statements: bool = False) -> Kernel:
    """The kernel with the body that the signature's function states. Raises KdslError."""
    tracer = Tracer(signature, Builder(empty))
    tracer.keeps_statements = statements
    definition = signature.source.definition
    tracer.block(definition.body)
    if not tracer.seen_grid:
        raise fail("K0102", signature.source.name_location, name=definition.name, problem="has none")
    kernel = tracer.builder.finish()
    return replace(kernel, sizes=tuple(signature.sizes.values()), constraints=tuple(tracer.constraints))


class Tracer(Expressions):
    """Runs statements over the names of the function that is being traced."""

    def __init__(self, signature: Signature, builder: Builder) -> None:
        super().__init__(signature, builder)
        self.constraints: list[Constraint] = []
        self.seen_grid = False
        self.inside_grid = False
        self.loops = 0  # how many loops and branches of the function being traced are open
        self.unused: ast.expr | None = None  # the call whose result nothing takes
        self.depth = 0  # how many inline helpers

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        method = getattr(self, f"do_{type(node).__name__}", None)
        if method is None:
            what, instead = INSTEAD.get(type(node), (f"a statement of kind {type(node).__name__}", "remove it"))
            self.error(node, "K0103", what=what, instead=instead)
        self.at(node)
        with self.stating(node):
            method(node)

    # -- simple statements -----------------------------------------------------------------------------------------

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.unused = node.value
            thing = self.eval(node.value)
            if isinstance(thing, Value):
                self.error(node, "K0103", what="an unused tile", instead="assign it to a name or store it")

    def do_Assign(self, node: ast.Assign) -> None:
        thing = self.eval(node.value)
        if len(node.targets) > 1:
            self.hold(thing)
        for target in node.targets:
            self.assign(target, thing)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.eval(node.value))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        left, right = self.eval(node.target), self.eval(node.value)
        self.assign(node.target, self.binary(node, node.op, (node.target, left), (node.value, right)))

    def assign(self, target: ast.expr, thing: Any) -> None:
        if isinstance(target, ast.Name):
            variable = self.names.get(target.id)
            if isinstance(variable, IndexVariable) and variable.name == target.id:
                self.error(target, "K0216", name=target.id, what="an index variable")
            if isinstance(variable, TensorRef) and variable.buffer.role == "out" and not self.depth:
                self.error(target, "K0216", name=target.id, what="an output")
            if isinstance(thing, Value):
                thing = self.builder.rename_last(thing, target.id)
            self.hold(thing)
            self.names[target.id] = thing
        elif isinstance(target, ast.Tuple | ast.List):
            things = list(thing) if isinstance(thing, tuple | list) else None
            if things is None or len(things) != len(target.elts):
                what = f"unpacking {describe(thing)} into {self.quote(target)}"
                self.error(target, "K0103", what=what, instead="give one name for each element of a tuple or list")
            for inner, item in zip(target.elts, things, strict=True):
                self.assign(inner, item)
        elif isinstance(target, ast.Subscript):
            tensor, index = self.eval(target.value), self.eval(target.slice)
            if not isinstance(tensor, TensorRef):
                what = f"a store into {self.quote(target.value, tensor)}, which is no tensor"
                self.error(target, "K0104", what=what)
            if not self.inside_grid:
                self.no_grid(target, "has a store outside it")
            entries, nothing = accesses.entries(target.slice, index), (target, None)
            indexed.store(self, target, tensor, entries, (target, thing), nothing)
        else:
            self.error(target, "K0104", what=f"an assignment to {self.quote(target)}")

    def do_If(self, node: ast.If) -> None:
        thing = self.eval(node.test)
        self.no_tile_size(node.test, thing)
        if not is_traced(thing):
            return self.block(node.body if self.truth(node.test, thing) else node.orelse)
        if not self.inside_grid:
            self.no_grid(node.test, "has a condition outside it that is known only when the kernel runs")
        branches.branch(self, node, self.condition(node.test, thing))

    def condition(self, node: ast.expr, thing: Any) -> Value:
        """One bool a program, known when the kernel runs. Raises KdslError K0211 for a tile, K0206 for no bool."""
        self.operand(node, thing)
        value = self.lift.value(thing)
        if value.dtype != BOOL:
            problem = f"{self.quote(node)} is {value.dtype}, not bool"
            self.error(node, "K0206", operation="a condition", problem=problem)
        tile_axes = self.builder.kernel.tile_axes(value)
        if tile_axes:
            self.error(node, "K0211", condition=f"{self.quote(node)} is a tile over {self.shown_axes(tile_axes)}")
        return value

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            self.error(node.orelse[0], "K0103", what="`else` after a loop", instead="put it after the loop")
        if not self.inside_grid:
            self.no_grid(node, "has a loop outside it")
        loops.While(self, node).run()

    def do_Return(self, node: ast.Return) -> None:
        if not self.depth or self.loops:
            what, instead = INSTEAD[ast.Return]
            if self.depth:
                what = "`return` in a loop or in a branch that is taken when the kernel runs"
                instead = "assign to a name, and return that after it"
            self.error(node, "K0103", what=what, instead=instead)
        raise calls.Returned(None if node.value is None else self.eval(node.value))

    def eval_ListComp(self, node: ast.ListComp) -> list[Any]:
        """A list built from compile-time sequences; its elements may be tiles."""
        outer = dict(self.names)
        try:
            return list(self.comprehension(node.elt, node.generators))
        finally:
            self.names = outer

    def comprehension(self, element: ast.expr, generators: Sequence[ast.comprehension]) -> Iterator[Any]:
        if not generators:
            yield self.eval(element)
            return
        first, *rest = generators
        for thing in self.sequence(first.iter, self.eval(first.iter)):
            self.assign(first.target, thing)
            if all(self.truth(test, self.eval(test)) for test in first.ifs):
                yield from self.comprehension(element, rest)

    def eval_Call(self, node: ast.Call) -> Any:
        return calls.call(self, node)

    def inline(self, node: ast.Call, callee: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """What a function decorated with @kdsl.inline gives, traced here."""
        return calls.inline(self, node, callee, arguments, keywords)

    def require(self, call: ast.Call) -> None:
        """`require(left == right)` on sizes becomes a constraint; one that is known now has to hold now."""
        condition = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if condition is None:
            self.error(call, "K0104", what="a require of other than one condition")
        if isinstance(condition, ast.Compare) and len(condition.ops) == 1:
            nodes = condition.left, condition.comparators[0]
            left, right = (self.eval(node) for node in nodes)
            for node, thing in zip(nodes, (left, right), strict=True):
                self.no_tile_size(node, thing)
            if holds_traced(left) or holds_traced(right):
                self.constraints.append(self.constraint(condition, form_of(left), form_of(right)))
                return
        if not self.truth(condition, self.eval(condition)):
            self.error(condition, "K0111", problem=f"the required {self.quote(condition)} is false")

    def constraint(self, node: ast.Compare, left: Expr | None, right: Expr | None) -> Constraint:
        comparison = COMPARE[type(node.ops[0])][0]
        known = self.signature.sizes.keys()
        if left is None or right is None or comparison not in CONSTRAINTS or not left.symbols | right.symbols <= known:
            self.error(node, "K0104", what="a require that is not a comparison of sizes")
        return Constraint(left, cast(Comparison, comparison), right, self.source.locate(node))

    # -- loops -----------------------------------------------------------------------------------------------------

    def do_For(self, node: ast.For) -> None:
        if node.orelse:
            self.error(node.orelse[0], "K0103", what="`else` after a loop", instead="put it after the loop")
        things = self.eval(node.iter)
        if isinstance(things, GridOf):
            self.grid(node, things)
        elif isinstance(things, TilesOf | RangeOf) or is_dim(things):
            if not self.inside_grid:
                self.no_grid(node, "has a loop outside it")
            loops.For(self, node, things).run()
        else:
            for thing in self.sequence(node.iter, things):
                self.assign(node.target, thing)
                self.block(node.body)

    def no_grid(self, node: ast.AST, problem: str) -> NoReturn:
        self.error(node, "K0102", name=self.signature.source.definition.name, problem=problem)

    def grid(self, node: ast.For, grid: GridOf) -> None:
        if self.seen_grid or self.loops:
            self.no_grid(node, "has a second one")
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        if len(targets) != len(grid.axes):
            self.error(node.target, "K0104", what=f"{len(targets)} names for a grid of {len(grid.axes)} axes")
        self.seen_grid = self.inside_grid = True
        written = node.iter.args if isinstance(node.iter, ast.Call) else []
        places = written if len(written) == len(targets) else [node.iter] * len(targets)
        for target, axis, place in zip(targets, grid.axes, places, strict=True):
            if not isinstance(axis, TilesOf) and not is_dim(axis):
                self.error(place, "K0213", thing=self.quote(place, axis))
            self.names[self.target(target)] = self.index_variable(target, axis, "program")[0]
        self.block(branches.without_returns(node.body))
        self.inside_grid = False
        for target in targets:
            self.names[self.target(target)] = Gone("its grid has ended")

    def target(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            self.error(target, "K0104", what=f"{self.quote(target)} as a loop variable, which has to be a name")
        return target.id

    def index_variable(self, target: ast.expr, over: TilesOf | type[Dim], kind: AxisKind) -> tuple[IndexVariable, str]:
        """The variable of a grid or loop, and its axis: `m_block` counts tiles, `m` the lanes of one."""
        name = self.target(target)
        if isinstance(self.names.get(name), IndexVariable):
            self.error(target, "K0216", name=name, what="an index variable")
        if not isinstance(over, TilesOf):
            axis = self.builder.add_axis(Axis(self.axis_name(name), kind, self.size(over, target)))
            form = symbol(axis.name)
            return IndexVariable(name, form, over, None, form, form + 1, symbol(over.__name__), form), axis.name
        extent = cdiv(over.stop - over.start, over.tile)
        if kind == "program" and not extent.symbols <= self.fixed():
            self.error(target, "K0104", what=f"limits of {name} that vary from program to program")
        block = self.builder.add_axis(Axis(self.axis_name(f"{name}_block"), kind, extent)).name
        start = over.start + over.tile * symbol(block)
        lane = self.axis_name(name)
        form = start + symbol(lane)
        self.builder.add_axis(Axis(lane, "tile", over.tile, (Bound(form, None, over.stop),)))
        stop = function("min", start + over.tile, over.stop)
        size = symbol(over.dim.__name__)
        return IndexVariable(name, form, over.dim, lane, start, stop, size, symbol(block)), block
