"""Statements of a kernel's body: assignments, stores, the grid, loops, and calls of inline helpers."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kdsl.diagnostics import fail
from kdsl.frontends.python.expressions import INLINE_DEPTH, Expressions
from kdsl.frontends.python.lifting import common_dtype
from kdsl.frontends.python.signature import Signature
from kdsl.frontends.python.source import read
from kdsl.frontends.python.values import Gone, GridOf, IndexVariable, TensorRef, TilesOf, form_of, is_dim, is_traced
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr, cdiv, function, symbol
from kdsl.ir.kernel import COMPARE, Axis, AxisKind, Bound, Constraint, Kernel, Op, Scalar, Value
from kdsl.lang import operations
from kdsl.lang.dims import Dim

SYMBOLS: dict[type[ast.cmpop], Any] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip

INSTEAD: dict[type[ast.stmt], tuple[str, str]] = {
    ast.While: ("`while`", "loop over tiles or points: `for k in K.tiles(BK)`"),
    ast.Return: ("`return`", "store results to Out tensors"),
    ast.Try: ("`try`", "nothing raises on a device; check sizes with kdsl.require"),
    ast.With: ("`with`", "remove it"),
    ast.FunctionDef: ("a function definition", "define helpers outside and decorate them with @kdsl.inline"),
    ast.Break: ("`break`", "limit the loop with `tiles(..., stop=...)` or mask with kdsl.where"),
    ast.Continue: ("`continue`", "mask with kdsl.where"),
    ast.Assert: ("`assert`", "state constraints on sizes with kdsl.require"),
    ast.Delete: ("`del`", "remove it"),
    ast.Raise: ("`raise`", "check sizes with kdsl.require"),
}


class Returned(Exception):
    """An inline helper has reached its return; carries what it gives."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing


@dataclass
class Carried:
    """A name that a loop carries: its value before the loop, and the axes and dtype found necessary so far."""

    name: str
    before: Any
    dtype: DType
    axes: tuple[str, ...]
    stable: bool = False


def trace(signature: Signature, empty: Kernel) -> Kernel:
    """The kernel with the body that the signature's function states. Raises KdslError."""
    tracer = Tracer(signature, Builder(empty))
    definition = signature.source.definition
    tracer.top_level(definition)
    kernel = tracer.builder.finish()
    return replace(kernel, sizes=tuple(signature.sizes.values()), constraints=tuple(tracer.constraints))


class Tracer(Expressions):
    """Runs statements over the names of the function that is being traced."""

    def __init__(self, signature: Signature, builder: Builder) -> None:
        super().__init__(signature, builder)
        self.constraints: list[Constraint] = []
        self.seen_grid = False
        self.nested = False
        self.loops = 0  # how many loops of the function being traced are open

    def top_level(self, definition: ast.FunctionDef) -> None:
        self.block(definition.body)
        if not self.seen_grid:
            self.error(definition, "K0102", name=definition.name, problem="has none")

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        method = getattr(self, f"do_{type(node).__name__}", None)
        if method is None:
            what, instead = INSTEAD.get(type(node), (f"a {type(node).__name__} statement", "remove it"))
            self.error(node, "K0103", what=what, instead=instead)
        self.at(node)
        method(node)

    # -- simple statements -----------------------------------------------------------------------------------------

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call) and self.is_require(call):
            self.require(call)
        elif not isinstance(call, ast.Constant):
            thing = self.eval(call)
            if isinstance(thing, Value):
                self.error(node, "K0103", what="an unused tile", instead="assign it to a name or store it")

    def do_Assign(self, node: ast.Assign) -> None:
        thing = self.eval(node.value)
        for target in node.targets:
            self.assign(target, thing)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.eval(node.value))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        reading = ast.copy_location(ast.parse(ast.unparse(node.target), mode="eval").body, node.target)
        for inner in ast.walk(reading):
            ast.copy_location(inner, node.target)
        self.assign(node.target, self.binary(node, node.op, self.eval(reading), self.eval(node.value)))

    def assign(self, target: ast.expr, thing: Any) -> None:
        if isinstance(target, ast.Name):
            if isinstance(self.names.get(target.id), IndexVariable):
                self.error(target, "K0216", name=target.id)
            self.names[target.id] = self.builder.rename_last(thing, target.id) if isinstance(thing, Value) else thing
        elif isinstance(target, ast.Tuple):
            things = list(thing) if isinstance(thing, tuple | list) else None
            if things is None or len(things) != len(target.elts):
                self.error(target, "K0104", what=f"an unpacking of {self.spell(thing)} into {len(target.elts)} names")
            for inner, item in zip(target.elts, things, strict=True):
                self.assign(inner, item)
        elif isinstance(target, ast.Subscript):
            tensor, index = self.eval(target.value), self.eval(target.slice)
            if not isinstance(tensor, TensorRef):
                self.error(target, "K0104", what=f"a store into {self.spell(tensor)}")
            self.store(target, tensor, index if isinstance(index, tuple) else (index,), thing)
        else:
            self.error(target, "K0104", what=f"an assignment to {ast.unparse(target)}")

    def do_If(self, node: ast.If) -> None:
        self.block(node.body if self.condition(node.test) else node.orelse)

    def is_require(self, call: ast.Call) -> bool:
        try:
            return self.eval(call.func) is operations.require
        except Exception:
            return False

    def require(self, call: ast.Call) -> None:
        """`require(left == right)` on sizes becomes a constraint."""
        (condition,) = call.args if len(call.args) == 1 else (None,)
        if not isinstance(condition, ast.Compare) or len(condition.ops) != 1:
            self.error(call, "K0104", what="a require that is not one comparison of sizes")
        left, right = self.eval(condition.left), self.eval(condition.comparators[0])
        self.no_tile_size(call, left, right)
        forms = form_of(left), form_of(right)
        comparison = SYMBOLS.get(type(condition.ops[0]))
        if forms[0] is None or forms[1] is None or comparison not in COMPARE:
            self.error(call, "K0104", what="a require that is not one comparison of sizes")
        constraint = Constraint(forms[0], comparison, forms[1], self.source.locate(condition))
        if not constraint.left.symbols | constraint.right.symbols and not constraint.holds({}):
            self.error(call, "K0111", problem=f"{constraint} is false")
        self.constraints.append(constraint)

    # -- grid and loops --------------------------------------------------------------------------------------------

    def do_For(self, node: ast.For) -> None:
        if node.orelse:
            self.error(node, "K0103", what="`else` after a loop", instead="put it after the loop")
        things = self.eval(node.iter)
        if isinstance(things, GridOf):
            self.grid(node, things)
        elif self.nested and (isinstance(things, TilesOf) or is_dim(things)):
            self.loop(node, things)
        elif isinstance(things, TilesOf) or is_dim(things):
            self.error(node, "K0102", name=self.source.definition.name, problem="has a loop outside it")
        elif is_traced(things) or isinstance(things, Scalar):
            self.error(node, "K0104", what=f"a loop over {self.spell(things)}")
        else:
            for thing in self.plainly(node, list, things):
                self.assign(node.target, thing)
                self.block(node.body)

    def grid(self, node: ast.For, grid: GridOf) -> None:
        if self.seen_grid or self.nested:
            problem = "has a second one" if self.seen_grid else "has it inside a loop"
            self.error(node, "K0102", name=self.source.definition.name, problem=problem)
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        if len(targets) != len(grid.axes):
            self.error(node, "K0104", what=f"a grid of {len(grid.axes)} axes with {len(targets)} names")
        self.seen_grid = self.nested = True
        for target, axis in zip(targets, grid.axes, strict=True):
            if not isinstance(axis, TilesOf) and not is_dim(axis):
                self.error(node, "K0213", thing=self.spell(axis))
            self.names[self.target(target)], _ = self.index_variable(target, axis, "program")
        self.block(node.body)
        self.nested = False
        for target in targets:
            self.names[self.target(target)] = Gone("its grid has ended")

    def target(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            self.error(target, "K0104", what="a loop variable that is not a name")
        return target.id

    def index_variable(self, target: ast.expr, over: TilesOf | type[Dim], kind: AxisKind) -> tuple[IndexVariable, str]:
        """The variable of a grid or loop, and its axis: `m_block` counts tiles, `m` the lanes of one."""
        name = self.target(target)
        if isinstance(self.names.get(name), IndexVariable):
            self.error(target, "K0216", name=name)
        if not isinstance(over, TilesOf):
            axis = self.builder.add_axis(Axis(self.axis_name(name), kind, self.size(over)))
            form = symbol(axis.name)
            return IndexVariable(name, form, over, None, form, form + 1, symbol(over.__name__)), axis.name
        extent = cdiv(over.stop - over.start, over.tile)
        block = self.builder.add_axis(Axis(self.axis_name(f"{name}_block"), kind, extent)).name
        start = over.start + over.tile * symbol(block)
        lane = self.axis_name(name)
        form = start + symbol(lane)
        self.builder.add_axis(Axis(lane, "tile", over.tile, (Bound(form, None, over.stop),)))
        stop = function("min", start + over.tile, over.stop)
        return IndexVariable(name, form, over.dim, lane, start, stop, symbol(over.dim.__name__)), block

    def loop(self, node: ast.For, over: TilesOf | type[Dim]) -> None:
        """A loop in order. Its body is traced until what it carries has stable axes and dtypes."""
        name = self.target(node.target)
        assigned = _assigned(node.body)
        carried = [
            self.carried(other, self.names[other])
            for other in assigned
            if other != name and isinstance(self.names.get(other), Value | Scalar | Expr | bool | int | float)
        ]
        state = self.builder.snapshot(), dict(self.names), dict(self.whole)
        while True:
            variable, loop_axis = self.index_variable(node.target, over, "loop")
            initial = [self.lift.value(item.before, item.dtype) for item in carried]
            arguments = [
                Value(self.builder.fresh(item.name), item.dtype, self.builder.kernel.order(item.axes))
                for item in carried
            ]
            for item, argument in zip(carried, arguments, strict=True):
                self.names[item.name] = argument
            self.names[name] = variable
            with self.builder.region() as ops:
                self.loops += 1
                self.block(node.body)
                self.loops -= 1
                self.at(node)
                final = [self.final(node, item) for item in carried]
                ops.append(Op("yield", tuple(final), location=self.builder.location))
            if self.widen(carried, [*zip(initial, final, strict=True)]):
                break
            self.builder.restore(state[0])
            self.names, self.whole = dict(state[1]), dict(state[2])
        self.leave(node, carried, loop_axis)
        results = self.builder.loop(loop_axis, initial, arguments, ops, [item.name for item in carried])
        self.names |= {item.name: result for item, result in zip(carried, results, strict=True)}
        for other in assigned:
            if other not in {item.name for item in carried}:
                self.names[other] = Gone("it was assigned in a loop that may run zero times")
        self.names[name] = Gone("its loop has ended")

    def carried(self, name: str, before: Any) -> Carried:
        assert self.builder.location is not None
        axes = before.axes if isinstance(before, Value) else ()
        return Carried(name, before, common_dtype([before], self.builder.location), axes)

    def final(self, node: ast.For, item: Carried) -> Value:
        """What an iteration leaves in a carried name."""
        thing = self.names[item.name]
        if not isinstance(thing, Value | Scalar | Expr | bool | int | float | IndexVariable) and not is_dim(thing):
            self.error(node, "K0209", name=item.name, before=item.dtype, after=self.spell(thing))
        value = thing if isinstance(thing, Value) else self.lift.value(thing)
        if value.dtype != item.dtype:
            if isinstance(item.before, Value | Scalar):
                self.error(node, "K0209", name=item.name, before=item.dtype, after=value.dtype)
            # A Python number before the loop is weak: it takes the loop's dtype, and the body is traced again.
            item.dtype, item.stable = value.dtype, False
        return value

    def widen(self, carried: Sequence[Carried], ends: Sequence[tuple[Value, Value]]) -> bool:
        """Take the axes of first and last values into what is carried; whether all was stable."""
        stable = True
        for item, (initial, final) in zip(carried, ends, strict=True):
            axes = self.builder.kernel.order({*initial.axes, *final.axes, *item.axes})
            stable &= item.stable and axes == item.axes
            item.axes, item.stable = axes, True
        return stable

    def leave(self, node: ast.For, carried: Sequence[Carried], loop_axis: str) -> None:
        kernel = self.builder.kernel
        inside = [a.name for a in kernel.axes if any(loop_axis in bound.symbols for bound in a.bounds)]
        for item in carried:
            for axis in inside:
                if axis in item.axes:
                    self.error(node, "K0210", name=item.name, axis=axis)

    # -- inline helpers --------------------------------------------------------------------------------------------

    def inline(self, node: ast.Call, callee: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Trace a helper's body where it is called, with names of its own."""
        if self.depth >= INLINE_DEPTH:
            self.error(node, "K0114", limit=INLINE_DEPTH)
        try:
            bound = inspect.signature(callee).bind(*arguments, **keywords)
        except TypeError as error:
            self.error(node, "K0104", what=f"{callee.__name__}: {error}")
        bound.apply_defaults()
        outer = self.source, self.names, self.loops, self.builder.location
        self.source, self.names, self.loops = read(callee), dict(bound.arguments), 0
        self.depth += 1
        try:
            self.block(self.source.definition.body)
        except Returned as returned:
            return returned.thing
        finally:
            self.source, self.names, self.loops, self.builder.location = outer
            self.depth -= 1
        return None

    def do_Return(self, node: ast.Return) -> None:
        if not self.depth or self.loops:
            what, instead = INSTEAD[ast.Return]
            raise fail("K0103", self.source.locate(node), what=what, instead=instead)
        raise Returned(None if node.value is None else self.eval(node.value))


def _assigned(statements: Sequence[ast.stmt]) -> list[str]:
    """Names that the statements assign, in the order of the text."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] = None
    return list(names)
