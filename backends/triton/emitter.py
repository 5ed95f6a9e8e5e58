"""A kernel's body as Triton source: one statement a step, in the author's names.

Ops that the author gave no name and that are used once are written into the expression that uses them. What a loop
carries keeps one variable (see lifetimes.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kdsl.codegen.layout import Layout, assign_layouts
from kdsl.ir.dtypes import I64
from kdsl.ir.expr import Expr, symbol
from kdsl.ir.kernel import Kernel, Op, Region, Value, walk
from kdsl.ir.ops import is_pointwise

from .access import load, store
from .expressions import ATOM, MULTIPLY, TYPES, Text, literal, pointwise, typed, without_parentheses
from .legalize import is_matmul
from .lifetimes import Lifetimes
from .reductions import SEARCHES, reduction, search
from .scope import Scope

INDENT = "    "
WIDTH = 120


class Emitter:
    """Emits one legalized kernel. `lines` are the statements of the kernel function, indented."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.scope = Scope(kernel)
        self.layouts = assign_layouts(kernel)
        self.lifetimes = Lifetimes(kernel, self.layouts)
        self.texts: dict[str, Text] = {}  # values without a variable
        self.lines: list[str] = []
        self.loops: list[str] = []
        self.line: int | None = None
        self.pending: set[tuple[str, str]] = set()  # (access, buffer) since the last barrier

    def run(self) -> list[str]:
        for line in [*self.scope.program_ids(), *self.scope.definitions(self.kernel.body, [])]:
            self.write(line)
        self.region(self.kernel.body)
        return self.lines

    # -- statements ------------------------------------------------------------------------------------------------

    def write(self, statement: str) -> None:
        self.lines.append(INDENT * (1 + len(self.loops)) + statement)

    def assign(self, name: str, text: Text) -> None:
        """Give a variable its value: in two steps where the line would be long and its last step is a cast."""
        cast = re.fullmatch(r"(.*)(\.to\(tl\.\w+\))", text.code)
        if cast is None or self.fits(f"{name} = {text.code}"):
            self.write(f"{name} = {text.code}")
            return
        self.write(f"{name} = {without_parentheses(cast[1])}")
        self.write(f"{name} = {name}{cast[2]}")

    def fits(self, statement: str) -> bool:
        return len(INDENT) * (1 + len(self.loops)) + len(statement) <= WIDTH

    def comment(self, op: Op) -> None:
        """Say which line of the author's the next statement is from, where that changes."""
        if op.location is not None and op.location.line != self.line:
            self.line = op.location.line
            self.write(f"# line {self.line}")

    def region(self, region: Region) -> None:
        for op in region.ops:
            if op.name in STATEMENTS:
                STATEMENTS[op.name](self, op)
                continue
            text = pointwise_expression(self, op) if is_pointwise(op) else EXPRESSIONS[op.name](self, op)
            if self.lifetimes.immediate(op) or self.lifetimes.inlined(op):
                self.texts[op.result.name] = text
            else:
                self.comment(op)
                self.assign(self.variable(op.result), text)

    def variable(self, value: Value) -> str:
        leader = self.lifetimes.leader(value)
        return self.scope.names.give(("value", leader.name), self.lifetimes.wanted_name(leader))

    def barrier(self, access: str, buffer: str) -> None:
        """Wait for the program's other threads where an access may meet an earlier one to the same elements."""
        if ("store", buffer) in self.pending or (access == "store" and ("load", buffer) in self.pending):
            self.write("tl.debug_barrier()")
            self.pending.clear()
        self.pending.add((access, buffer))

    # -- values ----------------------------------------------------------------------------------------------------

    def operand(self, value: Value) -> Text:
        return self.texts.get(value.name) or Text(self.variable(value))

    def aligned(self, value: Value, layout: Layout) -> Text:
        """A value's expression in a layout that has all its axes, with size 1 along those that it lacks."""
        text, own = self.operand(value), [name for name in self.layouts[value.name] if name]
        order = sorted(own, key=layout.index)
        if own != order:
            steps = ", ".join(str(own.index(name)) for name in order)
            text = Text(f"tl.trans({text.code})" if len(own) == 2 else f"tl.permute({text.code}, ({steps}))")
        expand = self.scope.expand(order, layout)
        return Text(text.within(ATOM) + expand) if expand else text

    def full(self, value: Value, layout: Layout) -> str:
        """A value as an array that has the layout's whole shape."""
        text, own = self.aligned(value, layout), self.layouts[value.name]
        if not layout:
            return typed(text, value.dtype).code
        if own:
            same = len(own) == len(layout)
            return text.code if same else f"tl.broadcast_to({text.code}, {self.scope.shape(layout)})"
        if text.code in ("0", "0.0"):
            return f"tl.zeros({self.scope.shape(layout)}, {TYPES[value.dtype.name]})"
        return f"tl.full({self.scope.shape(layout)}, {text.code}, {TYPES[value.dtype.name]})"


# -- statements --------------------------------------------------------------------------------------------------------


def loop(emitter: Emitter, op: Op) -> None:
    (body,), axis = op.regions, op.attributes["axis"]
    for argument, initial in zip(body.arguments, op.operands, strict=True):
        if not emitter.lifetimes.shared(initial, argument):
            emitter.comment(op)
            emitter.write(f"{emitter.variable(argument)} = {emitter.full(initial, emitter.layouts[argument.name])}")
    emitter.comment(op)
    trips = emitter.scope.integer(emitter.kernel.axis(axis).extent).code
    emitter.write(f"for {emitter.scope.names['symbol', axis]} in range({trips}):")
    # An iteration meets what the one before it did to memory.
    emitter.pending |= {(inner.name, inner.attributes["buffer"]) for inner in walk(body) if inner.name in ACCESSES}
    emitter.loops.append(axis)
    head = emitter.scope.definitions(body, emitter.loops)
    for line in head:
        emitter.write(line)
    emitter.region(body)
    carry(emitter, body)
    if not head and all(emitter.lifetimes.immediate(inner) or inner.name == "yield" for inner in body.ops):
        emitter.write("pass")
    emitter.loops.pop()
    emitter.line = None


def carry(emitter: Emitter, body: Region) -> None:
    """What is yielded becomes the argument of the next iteration."""
    moves = [
        (emitter.variable(argument), emitter.full(final, emitter.layouts[argument.name]))
        for argument, final in zip(body.arguments, body.ops[-1].operands, strict=True)
        if not emitter.lifetimes.shared(final, argument)
    ]
    targets = [target for target, _ in moves]
    if any(target in value for target in targets for _, value in moves):  # one needs what another overwrites
        emitter.write(f"{', '.join(targets)} = {', '.join(value for _, value in moves)}")
    else:
        for target, value in moves:
            emitter.write(f"{target} = {value}")


ACCESSES = frozenset({"load", "store"})
STATEMENTS: dict[str, Callable[[Emitter, Op], None]] = {
    "load": load,
    "store": store,
    "for": loop,
    "yield": lambda emitter, op: None,
}

# -- expressions -------------------------------------------------------------------------------------------------------


def pointwise_expression(emitter: Emitter, op: Op) -> Text:
    layout = emitter.layouts[op.result.name]
    if op.name == "add":
        for product_value, rest in (op.operands, op.operands[::-1]):
            product = emitter.lifetimes.inlined_op(product_value, "dot")
            same = emitter.layouts[product_value.name] == emitter.layouts[rest.name] == layout
            if product is not None and is_matmul(emitter.kernel, product) and same:
                return matmul(emitter, product, rest)
    return pointwise(op, [emitter.aligned(value, layout) for value in op.operands])


def constant(emitter: Emitter, op: Op) -> Text:
    return literal(op.attributes["value"], op.result.dtype)


def argument(emitter: Emitter, op: Op) -> Text:
    """A launch passes integers as i32 or wider, floats as fp32, and an integer 1 as a constant."""
    dtype, name = op.result.dtype, emitter.scope.names["argument", op.attributes["scalar"]]
    return Text(name) if dtype.name == "f32" else Text(f"tl.cast({name}, {TYPES[dtype.name]})")


def index(emitter: Emitter, op: Op) -> Text:
    form: Expr = op.attributes["form"]
    if op.result.dtype != I64:
        return emitter.scope.integer(form, emitter.layouts[op.result.name])
    return emitter.scope.wide_integer(form, emitter.layouts[op.result.name])


def in_bounds(emitter: Emitter, op: Op) -> Text:
    mask = emitter.scope.mask(op.attributes["bounds"], emitter.layouts[op.result.name])
    return mask or Text("True", untyped=True)


def broadcast(emitter: Emitter, op: Op) -> Text:
    return Text(emitter.full(op.operands[0], emitter.layouts[op.result.name]))


def reduce(emitter: Emitter, op: Op) -> Text:
    (source,), name, combine = op.operands, op.attributes["axis"], op.attributes["combine"]
    layout = emitter.layouts[source.name]
    if combine not in SEARCHES:
        return reduction(combine, emitter.operand(source), source.dtype, layout.index(name))
    lanes = emitter.scope.lanes(symbol(name), name, layout).code
    if len(layout) > 1:
        lanes = f"tl.broadcast_to({lanes}, {emitter.scope.shape(layout)})"
    return search(combine, emitter.operand(source), lanes, layout.index(name))


def dot(emitter: Emitter, op: Op) -> Text:
    if is_matmul(emitter.kernel, op):
        return matmul(emitter, op)
    axis, dtype = op.attributes["axis"], op.result.dtype
    layout = max((emitter.layouts[value.name] for value in op.operands), key=len)
    factors = [emitter.aligned(value, layout) for value in op.operands]
    if op.operands[0].dtype != dtype:
        factors = [Text(f"{text.within(ATOM)}.to({TYPES[dtype.name]})") for text in factors]
    product = " * ".join(text.within(MULTIPLY + 1) for text in factors)
    return Text(f"tl.sum({product}, axis={layout.index(axis)})")


def matmul(emitter: Emitter, op: Op, accumulator: Value | None = None) -> Text:
    axis, (left, right) = op.attributes["axis"], op.operands
    rows, columns = (
        next(name for name in emitter.layouts[value.name] if name not in (axis, None)) for value in (left, right)
    )
    arguments = [emitter.aligned(left, (rows, axis)).code, emitter.aligned(right, (axis, columns)).code]
    if accumulator is not None:
        arguments.append(emitter.operand(accumulator).code)
    if left.dtype.name == "f32":
        arguments.append('input_precision="ieee"')  # the default is tf32, which keeps 10 bits of 23
    if op.result.dtype.name != "f32":
        arguments.append(f"out_dtype={TYPES[op.result.dtype.name]}")
    return Text(f"tl.dot({', '.join(arguments)})")


def reshape(emitter: Emitter, op: Op) -> Text:
    (value,), source, target = op.operands, op.attributes["source"], op.attributes["target"]
    kept = [name for name in emitter.layouts[value.name] if name not in (*source, None)]
    text = emitter.aligned(value, (*kept, *source))
    return Text(f"tl.reshape({text.code}, {emitter.scope.shape((*kept, *target))})")


EXPRESSIONS: dict[str, Callable[[Emitter, Op], Text]] = {
    "constant": constant,
    "argument": argument,
    "index": index,
    "in_bounds": in_bounds,
    "broadcast": broadcast,
    "reduce": reduce,
    "dot": dot,
    "reshape": reshape,
}
