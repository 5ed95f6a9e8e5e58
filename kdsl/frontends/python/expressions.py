"""Expressions of a kernel's body: plain Python where all is known when compiling, ops where it is not."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from kdsl.diagnostics import KdslError, fail
from kdsl.frontends.python import intrinsics
from kdsl.frontends.python.lifting import Lifter, is_operand
from kdsl.frontends.python.signature import Signature
from kdsl.frontends.python.source import Source
from kdsl.frontends.python.values import (
    Gone,
    IndexVariable,
    TensorRef,
    TileSize,
    TilesOf,
    form_of,
    is_dim,
    is_traced,
)
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr, function, symbol, wrap
from kdsl.ir.kernel import Bound, Scalar, Value, whole
from kdsl.ir.ops import OpTypeError
from kdsl.lang.dims import Dim
from kdsl.lang.dtypes import DType as DTypeClass
from kdsl.lang.kernel import INLINE, Kernel

# Python operator -> (plain Python, op).
BINARY: dict[type[ast.operator], tuple[Callable[[Any, Any], Any], str]] = {
    ast.Add: (operator.add, "add"), ast.Sub: (operator.sub, "sub"), ast.Mult: (operator.mul, "mul"),
    ast.Div: (operator.truediv, "div"), ast.FloorDiv: (operator.floordiv, "floordiv"),
    ast.Mod: (operator.mod, "floormod"), ast.BitAnd: (operator.and_, "and"), ast.BitOr: (operator.or_, "or"),
    ast.BitXor: (operator.xor, "xor"), ast.LShift: (operator.lshift, "shl"), ast.RShift: (operator.rshift, "shr"),
}  # fmt: skip
# What stays an integer form when both sides are forms.
FORMS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.Invert: "not"}
INLINE_DEPTH = 32


class Expressions:
    """Evaluates expressions in an environment of names. `trace.py` adds the statements."""

    def __init__(self, signature: Signature, builder: Builder) -> None:
        self.signature, self.builder = signature, builder
        self.lift = Lifter(builder)
        self.source: Source = signature.source
        self.names: dict[str, Any] = dict(signature.names)
        self.whole: dict[str, str] = {}  # dimension -> its own axis
        self.reserved = {node.id for node in ast.walk(self.source.definition) if isinstance(node, ast.Name)}
        self.depth = 0

    # -- errors and names ------------------------------------------------------------------------------------------

    def at(self, node: ast.AST) -> None:
        """Ops emitted from here on come from this node."""
        self.builder.location = self.source.locate(node)

    def error(self, node: ast.AST, code: str, **fields: object) -> NoReturn:
        raise fail(code, self.source.locate(node), **fields)

    def spell(self, thing: Any) -> str:
        """A thing as a message names it."""
        if isinstance(thing, TensorRef):
            return f"the tensor {thing.buffer.name}"
        return thing.name if isinstance(thing, IndexVariable | TileSize) else str(thing)

    def axis_name(self, wanted: str) -> str:
        """A name for a new axis that no size, tile parameter or other axis has."""
        kernel = self.builder.kernel
        taken = {axis.name for axis in kernel.axes} | self.signature.sizes.keys()
        taken |= {tile.name for tile in kernel.tiles}
        name, count = wanted, 0
        while name in taken:
            count += 1
            name = f"{wanted}_{count}"
        return name

    def axis_of(self, thing: Any) -> str:
        """The tile axis of an index variable, or a dimension's own. Raises KdslError K0213."""
        if isinstance(thing, IndexVariable) and thing.tile is not None:
            return thing.tile
        if is_dim(thing):
            self.size(thing)
            return self.whole_axis(thing.__name__, symbol(thing.__name__))
        raise fail("K0213", self.builder.location, thing=self.spell(thing))

    def whole_axis(self, name: str, extent: Expr) -> str:
        """The axis that `:` means for a dimension, made at its first use."""
        if name not in self.whole:
            wanted = name.lower() if name.lower() not in self.reserved else f"{name.lower()}_all"
            self.whole[name] = self.builder.add_axis(whole(self.axis_name(wanted), extent)).name
        return self.whole[name]

    def size(self, dim: type[Dim]) -> Expr:
        """The size of a dimension, which the kernel then needs to know."""
        if dim.__name__ not in self.signature.sizes:
            self.signature.add_size(dim, self.source.definition)
        return symbol(dim.__name__)

    def dtype_of(self, dtype: Any) -> DType:
        if not (isinstance(dtype, type) and issubclass(dtype, DTypeClass)):
            raise fail("K0104", self.builder.location, what=f"{dtype!r} is no dtype")
        return self.signature.resolve(dtype, self.source.definition)

    # -- expressions -----------------------------------------------------------------------------------------------

    def eval(self, node: ast.expr) -> Any:
        """What an expression means: a plain Python object, an IR value, or a thing of `values.py`."""
        method = getattr(self, f"eval_{type(node).__name__}", None)
        self.at(node)
        return self.python(node) if method is None else method(node)

    def python(self, node: ast.expr) -> Any:
        """An expression of a kind that only compile-time values have, such as a comprehension."""
        names = {}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and (inner.id in self.names or inner.id in self.source.globals):
                names[inner.id] = self.eval_Name(inner)
                if is_traced(names[inner.id]):
                    self.error(node, "K0104", what=f"a {type(node).__name__} on {self.spell(names[inner.id])}")
        code = compile(ast.Expression(node), self.source.file, "eval")
        return self.plainly(node, eval, code, names)

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
            builtins = self.source.globals["__builtins__"]
            table = builtins if isinstance(builtins, dict) else vars(builtins)
            if node.id not in table:
                self.error(node, "K0105", name=node.id, why="")
            thing = table[node.id]
        if is_dim(thing):
            self.size(thing)
        return thing

    def eval_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self.eval(item) for item in node.elts)

    def eval_List(self, node: ast.List) -> list[Any]:
        return [self.eval(item) for item in node.elts]

    def eval_Slice(self, node: ast.Slice) -> slice:
        parts = [None if part is None else self.eval(part) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        return self.eval(node.body if self.condition(node.test) else node.orelse)

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        stop = isinstance(node.op, ast.Or)
        for item in node.values:
            if self.condition(item) == stop:
                return stop
        return not stop

    def condition(self, node: ast.expr) -> bool:
        """A compile-time condition. Raises KdslError K0211 for one that is not."""
        thing = self.eval(node)
        if is_traced(thing) or isinstance(thing, Scalar):
            self.error(node, "K0211")
        return bool(thing)

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        return self.binary(node, node.op, self.eval(node.left), self.eval(node.right))

    def binary(self, node: ast.AST, kind: ast.operator, left: Any, right: Any) -> Any:
        """An arithmetic operator applied to two things."""
        self.at(node)
        if type(kind) not in BINARY:
            self.error(node, "K0104", what=f"the operator {type(kind).__name__} on tiles")
        plain, op = BINARY[type(kind)]
        self.no_tile_size(node, left, right)
        if not any(is_traced(thing) or isinstance(thing, Scalar) for thing in (left, right)):
            return self.plainly(node, plain, left, right)
        forms = form_of(left), form_of(right)
        if None not in forms and isinstance(kind, FORMS):
            return self.plainly(node, plain, *forms)  # Expr overloads the operator
        self.operands(node, left, right)
        return self.lift.apply(op, [left, right])

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        thing = self.eval(node.operand)
        self.at(node)
        self.no_tile_size(node, thing)
        if isinstance(node.op, ast.Not):
            return not self.condition(node.operand)
        if not is_traced(thing) and not isinstance(thing, Scalar):
            plain = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}[type(node.op)]
            return self.plainly(node, plain, thing)
        if isinstance(node.op, ast.UAdd):
            return thing
        form = form_of(thing)
        if form is not None and isinstance(node.op, ast.USub):
            return -form
        self.operands(node, thing)
        return self.lift.apply(UNARY[type(node.op)], [thing])

    def eval_Compare(self, node: ast.Compare) -> Any:
        things = [self.eval(item) for item in (node.left, *node.comparators)]
        self.at(node)
        self.no_tile_size(node, *things)
        if not any(is_traced(thing) or isinstance(thing, Scalar) for thing in things):
            # `is`, `in` and the rest keep Python's meaning on compile-time values.
            names = {f"x{place}": thing for place, thing in enumerate(things)}
            loads: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
            test = ast.fix_missing_locations(ast.Expression(ast.Compare(loads[0], node.ops, loads[1:])))
            return self.plainly(node, lambda: eval(compile(test, self.source.file, "eval"), {}, names))
        result: Any = None
        for kind, left, right in zip(node.ops, things, things[1:], strict=False):
            if type(kind) not in COMPARE:
                self.error(node, "K0104", what=f"the comparison {type(kind).__name__} on tiles")
            self.operands(node, left, right)
            holds = self.lift.apply(COMPARE[type(kind)], [left, right])
            result = holds if result is None else self.lift.apply("and", [result, holds])
        return result

    def plainly(self, node: ast.AST, compute: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Run plain Python on compile-time values. Raises KdslError K0111 with what it raises."""
        try:
            return compute(*arguments, **keywords)
        except KdslError:
            raise
        except Exception as error:
            self.error(node, "K0111", problem=f"{type(error).__name__}: {error}")

    def operands(self, node: ast.AST, *things: Any) -> None:
        for thing in things:
            if not is_operand(thing):
                self.error(node, "K0104", what=f"{self.spell(thing)} as an operand")

    def no_tile_size(self, node: ast.AST, *things: Any) -> None:
        for thing in things:
            if isinstance(thing, TileSize):
                self.error(node, "K0107", name=thing.name)

    # -- attributes, accesses, calls -------------------------------------------------------------------------------

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        base = self.eval(node.value)
        self.at(node)
        if isinstance(base, IndexVariable):
            parts = {"index": base.form, "start": base.start, "stop": base.stop, "size": base.size}
            if node.attr in parts:
                return parts[node.attr]
        if is_traced(base) and not is_dim(base):
            self.error(node, "K0104", what=f"{self.spell(base)} has no attribute {node.attr}")
        return self.plainly(node, getattr, base, node.attr)

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        base, index = self.eval(node.value), self.eval(node.slice)
        self.at(node)
        if not isinstance(base, TensorRef):
            if is_traced(base) or is_traced(index):
                self.error(node, "K0104", what=f"an index into {self.spell(base)}")
            return self.plainly(node, operator.getitem, base, index)
        return self.load(node, base, index if isinstance(index, tuple) else (index,))

    def load(self, node: ast.AST, tensor: TensorRef, index: Sequence[Any], **masked: Any) -> Value:
        """Read a tensor at an index; `masked` with a `fill` where the index may leave the tensor."""
        self.at(node)
        if tensor.buffer.role == "out":
            self.error(node, "K0208", tensor=tensor.buffer.name)
        forms, loose = self.place(node, tensor, index)
        attributes: dict[str, Any] = {"buffer": tensor.buffer.name, "index": forms}
        if masked and loose:
            attributes["bounds"] = loose
            fill = masked["fill"]
            if fill is not None:
                attributes["fill"] = float(fill) if tensor.buffer.dtype.is_float else int(fill)
        return self.builder.emit("load", (), attributes, hint=f"{tensor.buffer.name}_tile")

    def store(self, node: ast.AST, tensor: TensorRef, index: Sequence[Any], thing: Any) -> None:
        """Write a tensor at an index, rounding to its dtype."""
        self.at(node)
        buffer = tensor.buffer
        if buffer.role == "in":
            self.error(node, "K0205", tensor=buffer.name)
        self.no_tile_size(node, thing)
        self.operands(node, thing)
        value = self.lift.value(self.lift.value(thing), buffer.dtype)
        forms, _ = self.place(node, tensor, index)
        covered = {name for form in forms for name in form.symbols}
        loose = [name for name in self.builder.kernel.tile_axes(value) if name not in covered]
        if loose:
            self.error(node, "K0204", axes=", ".join(loose))
        try:
            self.builder.effect("store", (value,), {"buffer": buffer.name, "index": forms})
        except OpTypeError as error:
            self.error(node, "K0206", operation="store", problem=error)

    def place(
        self, node: ast.AST, tensor: TensorRef, index: Sequence[Any]
    ) -> tuple[tuple[Expr, ...], tuple[Bound, ...]]:
        """The index forms of an access, and bounds for the dimensions that they may leave."""
        buffer = tensor.buffer
        if len(index) != len(buffer.shape):
            self.error(node, "K0203", tensor=buffer.name, rank=len(buffer.shape), given=len(index))
        forms: list[Expr] = []
        loose: list[Bound] = []
        taken_whole: set[str] = set()
        for dimension, (entry, extent, dim) in enumerate(zip(index, buffer.shape, tensor.dims, strict=True)):
            if isinstance(entry, slice):
                if entry != slice(None):
                    self.error(node, "K0104", what="a slice with limits; use `Dim.tiles(..., start=, stop=)`")
                name = dim.__name__ if dim is not None else f"{buffer.name}_{dimension}"
                if name in taken_whole:
                    self.error(node, "K0212", dim=name)
                taken_whole.add(name)
                forms.append(symbol(self.whole_axis(name, extent)))
                continue
            self.no_tile_size(node, entry)
            form = form_of(entry)
            if form is None:
                self.error(node, "K0104", what=f"{self.spell(entry)} as an index")
            if isinstance(entry, IndexVariable) and entry.dim is not dim:
                got, expected = entry.dim.__name__ if entry.dim else "no dimension", str(extent)
                self.error(
                    node, "K0214", dimension=dimension, tensor=buffer.name, expected=expected, index=entry.name, got=got
                )
            if not isinstance(entry, IndexVariable):
                loose.append(Bound(form, wrap(0), extent))
            forms.append(form)
        return tuple(forms), tuple(loose)

    def eval_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            base = self.eval(node.func.value)
            if is_dim(base) or isinstance(base, Value | Expr | IndexVariable | TensorRef | Scalar):
                return self.method(node, base, node.func.attr)
        callee = self.eval(node.func)
        arguments = [self.eval(item) for item in node.args if not isinstance(item, ast.Starred)]
        keywords = {item.arg: self.eval(item.value) for item in node.keywords if item.arg}
        if len(arguments) != len(node.args) or len(keywords) != len(node.keywords):
            self.error(node, "K0104", what="a call with * or **")
        self.at(node)
        if intrinsics.is_intrinsic(callee):
            self.no_tile_size(node, *arguments, *keywords.values())
            return intrinsics.call(self, callee, arguments, keywords)
        if getattr(callee, INLINE, False):
            return self.inline(node, callee, arguments, keywords)
        if isinstance(callee, Kernel):
            self.error(node, "K0104", what=f"a call of the kernel {callee.name}; kernels do not call kernels")
        self.no_tile_size(node, *arguments, *keywords.values())
        if any(is_traced(thing) or isinstance(thing, Scalar) for thing in (*arguments, *keywords.values())):
            self.error(node, "K0110", name=getattr(callee, "__name__", str(callee)))
        return self.plainly(node, callee, *arguments, **keywords)

    def method(self, node: ast.Call, base: Any, name: str) -> Any:
        """`Dim.tiles`, `tensor.load` and `.to`."""
        arguments = [self.eval(item) for item in node.args]
        keywords = {item.arg: self.eval(item.value) for item in node.keywords if item.arg}
        self.at(node)
        if is_dim(base) and name == "tiles" and len(arguments) == 1 and not keywords.keys() - {"start", "stop"}:
            return self.tiles(node, base, arguments[0], keywords)
        if isinstance(base, TensorRef) and name == "load" and not keywords.keys() - {"fill"}:
            fill = keywords.get("fill")
            if fill is not None and not isinstance(fill, int | float):
                self.error(node, "K0104", what="a fill that is not known when compiling")
            return self.load(node, base, arguments, fill=fill)
        if name == "to" and len(arguments) == 1 and not keywords and not isinstance(base, TensorRef):
            return intrinsics.cast(self, base, arguments[0])
        self.error(node, "K0104", what=f"a call of {self.spell(base)}.{name} with these arguments")

    def tiles(self, node: ast.AST, dim: type[Dim], tile: Any, limits: dict[str, Any]) -> TilesOf:
        """`Dim.tiles(...)`: the limits stay within the dimension."""
        size = self.size(dim)
        if isinstance(tile, TileSize):
            extent = symbol(tile.name)
        else:
            given = form_of(tile)
            if given is None or given.constant is None or given.constant < 1:
                self.error(node, "K0104", what=f"tiles of {self.spell(tile)} points; give a Tile or Const parameter")
            extent = given
        ends: dict[str, Expr] = {"start": wrap(0), "stop": size}
        for name, limit in limits.items():
            if limit is None:
                continue
            form = form_of(limit)
            if form is None or any(
                self.builder.kernel.axis(a).kind == "tile" for a in self.builder.kernel.order(form.symbols)
            ):
                self.error(node, "K0104", what=f"{self.spell(limit)} as a limit; it must be one integer a program")
            ends[name] = function("min", form, size) if name == "stop" else form
        return TilesOf(dim, extent, ends["start"], ends["stop"])

    def inline(self, node: ast.Call, callee: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        raise NotImplementedError
