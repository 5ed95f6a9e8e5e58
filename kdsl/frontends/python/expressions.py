"""Expressions of a kernel's body: plain Python where all is known when compiling, ops where it is not."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from kdsl.diagnostics import KdslError
from kdsl.frontends.python import accesses, indexed
from kdsl.frontends.python.environment import Environment
from kdsl.frontends.python.lifting import is_operand
from kdsl.frontends.python.values import (
    Gone,
    IndexVariable,
    TensorRef,
    describe,
    form_of,
    holds_traced,
    is_dim,
    is_traced,
)

Plain = Callable[[Any, Any], Any]

# Python operator -> (as the author writes it, plain Python, op; "" where tiles have none).
BINARY: dict[type[ast.operator], tuple[str, Plain, str]] = {
    ast.Add: ("+", operator.add, "add"), ast.Sub: ("-", operator.sub, "sub"), ast.Mult: ("*", operator.mul, "mul"),
    ast.Div: ("/", operator.truediv, "div"), ast.FloorDiv: ("//", operator.floordiv, "floordiv"),
    ast.Mod: ("%", operator.mod, "floormod"), ast.BitAnd: ("&", operator.and_, "and"),
    ast.BitOr: ("|", operator.or_, "or"), ast.BitXor: ("^", operator.xor, "xor"),
    ast.LShift: ("<<", operator.lshift, "shl"), ast.RShift: (">>", operator.rshift, "shr"),
    ast.Pow: ("**", operator.pow, "pow"), ast.MatMult: ("@", operator.matmul, ""),
}  # fmt: skip
# What stays an integer form when both sides are forms.
FORMS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
COMPARE: dict[type[ast.cmpop], tuple[str, Plain, str]] = {
    ast.Eq: ("==", operator.eq, "eq"), ast.NotEq: ("!=", operator.ne, "ne"), ast.Lt: ("<", operator.lt, "lt"),
    ast.LtE: ("<=", operator.le, "le"), ast.Gt: (">", operator.gt, "gt"), ast.GtE: (">=", operator.ge, "ge"),
    ast.Is: ("is", operator.is_, ""), ast.IsNot: ("is not", operator.is_not, ""),
    ast.In: ("in", lambda item, group: item in group, ""),
    ast.NotIn: ("not in", lambda item, group: item not in group, ""),
}  # fmt: skip
UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any], str]] = {
    ast.USub: ("-", operator.neg, "neg"), ast.Invert: ("~", operator.invert, "not"), ast.UAdd: ("+", operator.pos, ""),
}  # fmt: skip
INSTEAD = {"@": "use kdsl.dot(x, y)"}
# Whole powers up to this one are products, which every target rounds alike and which integers have, too.
LARGEST_PRODUCT = 8
# Expressions that would change names or leave the function.
FORBIDDEN: dict[type[ast.AST], tuple[str, str]] = {
    ast.NamedExpr: ("an assignment inside an expression", "write it as a statement of its own"),
    ast.Starred: ("`*` in an expression", "write the elements out"),
    ast.Await: ("`await`", "remove it"),
    ast.Yield: ("`yield`", "store results to Out tensors"),
    ast.YieldFrom: ("`yield`", "store results to Out tensors"),
}


class Expressions(Environment):
    """Evaluates expressions in the environment. `trace.py` adds statements and calls."""

    def eval(self, node: ast.expr) -> Any:
        """What an expression means: a plain Python object, an IR value, or a thing of `values.py`."""
        method = getattr(self, f"eval_{type(node).__name__}", None)
        self.at(node)
        return self.python(node) if method is None else method(node)

    def python(self, node: ast.expr) -> Any:
        """An expression of a kind that only compile-time values have, such as a comprehension."""
        inside = list(ast.walk(node))
        bound = {inner.id for inner in inside if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}
        bound |= {inner.arg for inner in inside if isinstance(inner, ast.arg)}
        names = {}
        for inner in inside:
            if type(inner) in FORBIDDEN:
                what, instead = FORBIDDEN[type(inner)]
                self.error(inner, "K0103", what=what, instead=instead)
            if isinstance(inner, ast.Name) and inner.id not in bound:
                names[inner.id] = self.eval_Name(inner)
                if holds_traced(names[inner.id]):
                    quoted = self.quote(inner, names[inner.id])
                    self.error(inner, "K0104", what=f"{quoted} in a {type(node).__name__}, which is plain Python")
        code = self.plainly(node, compile, ast.Expression(node), self.source.file, "eval")
        return self.plainly(node, lambda: eval(code, names))

    def plainly(self, node: ast.AST, compute: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Run plain Python on compile-time values. Raises KdslError K0111 with what it raises."""
        try:
            return compute(*arguments, **keywords)
        except (KdslError, RecursionError):
            raise
        except (Exception, SystemExit) as error:
            self.error(node, "K0111", problem=f"{type(error).__name__}: {error}")

    def operand(self, node: ast.AST, thing: Any) -> None:
        self.no_tile_size(node, thing)
        if not is_operand(thing):
            self.error(node, "K0104", what=f"{self.quote(node, thing)} is no tile, number or size")

    # -- names and literals ----------------------------------------------------------------------------------------

    def eval_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def eval_Name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            thing = self.names[node.id]
            if isinstance(thing, Gone):
                self.error(node, "K0105", name=node.id, why=f": {thing.reason}")
        elif node.id in self.source.globals:
            thing = self.source.globals[node.id]
        else:
            builtins = self.source.globals.get("__builtins__", {})
            table = builtins if isinstance(builtins, dict) else vars(builtins)
            if node.id not in table:
                self.error(node, "K0105", name=node.id, why="")
            thing = table[node.id]
        if is_dim(thing):
            self.size(thing, node)
        return thing

    def eval_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self.elements(node))

    def eval_List(self, node: ast.List) -> list[Any]:
        return list(self.elements(node))

    def elements(self, node: ast.Tuple | ast.List) -> Iterator[Any]:
        for item in node.elts:
            if isinstance(item, ast.Starred):
                yield from self.sequence(item.value, self.eval(item.value))
            else:
                yield self.eval(item)

    def sequence(self, node: ast.expr, things: Any) -> list[Any]:
        """The elements of a compile-time sequence, which may be tiles."""
        self.no_tile_size(node, things)
        if is_traced(things):
            self.error(node, "K0104", what=f"a loop over {self.quote(node, things)}")
        elements: list[Any] = self.plainly(node, list, things)
        return elements

    def eval_Slice(self, node: ast.Slice) -> slice:
        parts = [None if part is None else self.eval(part) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)

    # -- conditions ------------------------------------------------------------------------------------------------

    def truth(self, node: ast.expr, thing: Any) -> bool:
        """Whether a compile-time condition holds. Raises KdslError K0211 for one that is known only later."""
        self.no_tile_size(node, thing)
        if is_traced(thing):
            self.error(node, "K0211", condition=f"{self.quote(node)} is {describe(thing)}")
        return bool(self.plainly(node, bool, thing))

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        return self.eval(node.body if self.truth(node.test, self.eval(node.test)) else node.orelse)

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        thing = None
        for item in node.values:
            thing = self.eval(item)
            if self.truth(item, thing) == isinstance(node.op, ast.Or):
                return thing
        return thing

    def eval_Compare(self, node: ast.Compare) -> Any:
        nodes = [node.left, *node.comparators]
        things = [self.eval(item) for item in nodes]
        self.at(node)
        result: Any = None
        for place, kind in enumerate(node.ops):
            holds = self.comparison(node, kind, nodes[place : place + 2], things[place : place + 2])
            if result is None or result is True:
                result = holds
            elif result is not False:
                result = result and holds if not is_traced(result) else self.lift.apply("and", [result, holds], "and")
        return result

    def comparison(self, node: ast.Compare, kind: ast.cmpop, nodes: list[ast.expr], things: list[Any]) -> Any:
        title, plain, op = COMPARE[type(kind)]
        for item, thing in zip(nodes, things, strict=True):
            self.no_tile_size(item, thing)
        about_none = title in ("is", "is not") and None in [thing for thing in things if thing is None]
        if about_none or not any(map(holds_traced, things)):
            return self.plainly(node, plain, *things)
        if not op:
            self.error(node, "K0103", what=f"`{title}` on tiles", instead="compare with == or <, giving a bool tile")
        for item, thing in zip(nodes, things, strict=True):
            self.operand(item, thing)
        return self.lift.apply(op, things, title)

    # -- arithmetic ------------------------------------------------------------------------------------------------

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.eval(node.left), self.eval(node.right)
        return self.binary(node, node.op, (node.left, left), (node.right, right))

    def binary(self, node: ast.AST, kind: ast.operator, left: tuple[ast.expr, Any], right: tuple[ast.expr, Any]) -> Any:
        """An arithmetic operator applied to two things, each with the node it comes from."""
        self.at(node)
        title, plain, op = BINARY[type(kind)]
        things = left[1], right[1]
        for item, thing in (left, right):
            self.no_tile_size(item, thing)
        if not any(map(is_traced, things)):
            return self.plainly(node, plain, *things)
        forms = [form_of(thing) for thing in things]
        if None not in forms and isinstance(kind, FORMS):
            return self.plainly(node, plain, *forms)  # Expr overloads the operator
        for item, thing in (left, right):
            self.operand(item, thing)
        if not op:
            self.error(node, "K0103", what=f"`{title}` on tiles", instead=INSTEAD[title])
        exponent = things[1]
        if op == "pow" and type(exponent) is int and 0 <= exponent <= LARGEST_PRODUCT:
            return self.product(things[0], exponent)
        return self.lift.apply(op, things, f"`{title}`")

    def product(self, base: Any, exponent: int) -> Any:
        """base ** exponent by squaring; the power of zero is one over all lanes of the base."""
        square = self.lift.value(base)
        power = self.lift.value(1, square.dtype) if exponent == 0 else None
        if power is not None:
            return self.lift.emit("broadcast", [power], {"axes": square.axes}, title="`**`")
        while True:
            if exponent % 2:
                power = square if power is None else self.lift.apply("mul", [power, square], "`**`")
            exponent //= 2
            if not exponent:
                return power
            square = self.lift.apply("mul", [square, square], "`**`")

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        thing = self.eval(node.operand)
        self.at(node)
        if isinstance(node.op, ast.Not):
            return not self.truth(node.operand, thing)
        title, plain, op = UNARY[type(node.op)]
        self.no_tile_size(node.operand, thing)
        if not is_traced(thing):
            return self.plainly(node, plain, thing)
        self.operand(node.operand, thing)
        form = form_of(thing)
        if form is not None and title == "-":
            return -form
        return self.lift.apply(op, [thing], f"`{title}`") if op else thing

    # -- attributes and accesses -----------------------------------------------------------------------------------

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(node, self.eval(node.value))

    def attribute(self, node: ast.Attribute, base: Any) -> Any:
        self.at(node)
        if isinstance(base, IndexVariable):
            parts = {"index": base.form, "start": base.start, "stop": base.stop, "size": base.size}
            if node.attr in parts:
                return parts[node.attr]
        if is_traced(base):
            self.error(node, "K0104", what=f"{self.quote(node.value, base)} has no attribute {node.attr}")
        return self.plainly(node, getattr, base, node.attr)

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        base, index = self.eval(node.value), self.eval(node.slice)
        self.at(node)
        if isinstance(base, TensorRef):
            entries = accesses.entries(node.slice, index)
            return (indexed.load_at if indexed.is_indexed(entries) else accesses.load)(self, node, base, entries)
        self.no_tile_size(node.slice, index)
        if is_traced(base) or holds_traced(index):
            self.error(node, "K0104", what=f"an index into {self.quote(node.value, base)}; only tensors have one")
        return self.plainly(node, operator.getitem, base, index)
