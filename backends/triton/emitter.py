"""A kernel's body as Triton source: one statement a step, in the author's names.

Ops that the author gave no name and that are used once are written into the expression that uses them. What a loop
carries keeps one variable (see lifetimes.py).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence

from kdsl.codegen.layout import Layout, assign_layouts
from kdsl.ir.dtypes import I64
from kdsl.ir.expr import Expr, symbol
from kdsl.ir.kernel import Kernel, Op, Region, Value

from . import combines, control, products, tiles
from .access import KINDS, atomic, atomic_cas, load, load_at, store, store_at
from .dtypes import TYPES
from .expressions import ATOM, Text, literal, pointwise, typed, without_parentheses
from .expressions import EXPRESSIONS as POINTWISE
from .lifetimes import Lifetimes
from .limits import is_matmul
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
        self.functions: list[str] = []  # combines that the module has beside the kernel
        self.loops: list[str] = []
        self.named: set[str] = set()  # integers that a `let` has named so far
        self.depth = 1
        self.line: int | None = None
        self.pending: set[tuple[str, str]] = set()  # (access, buffer) since the last barrier

    def run(self) -> list[str]:
        for line in [*self.scope.program_ids(), *self.scope.definitions([])]:
            self.write(line)
        self.region(self.kernel.body)
        return self.lines

    # -- statements ------------------------------------------------------------------------------------------------

    def write(self, statement: str) -> None:
        self.lines.append(INDENT * self.depth + statement)

    def assign(self, name: str, text: Text) -> None:
        """Give a variable its value: in two steps where the line would be long and its last step is a cast."""
        cast = re.fullmatch(r"(.*)(\.to\(tl\.\w+\))", text.code)
        if cast is None or self.fits(f"{name} = {text.code}"):
            self.write(f"{name} = {text.code}")
            return
        self.write(f"{name} = {without_parentheses(cast[1])}")
        self.write(f"{name} = {name}{cast[2]}")

    def fits(self, statement: str) -> bool:
        return len(INDENT) * self.depth + len(statement) <= WIDTH

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
            text = self.expression(op)
            if self.lifetimes.immediate(op) or self.lifetimes.inlined(op):
                self.texts[op.result.name] = text
            else:
                self.comment(op)
                self.assign(self.variable(op.result), text)

    def expression(self, op: Op) -> Text:
        return pointwise_expression(self, op) if op.name in POINTWISE else EXPRESSIONS[op.name](self, op)

    @contextlib.contextmanager
    def block(self, header: str, repeated: Sequence[Region] = (), optional: bool = False) -> Iterator[None]:
        """A statement with a body: `pass` where it has no statement, or nothing at all if it is optional. `repeated`
        are the regions that run again and again in it."""
        # An iteration meets what the one before it did to memory; a body that does not run has no barrier.
        before = set(self.pending)
        self.pending |= control.accesses(repeated)
        place = len(self.lines)
        self.write(header)
        self.depth += 1
        yield
        if len(self.lines) == place + 1 and not optional:
            self.write("pass")
        self.depth -= 1
        if len(self.lines) == place + 1:
            del self.lines[place:]
        self.pending |= before
        self.line = None

    def variable(self, value: Value) -> str:
        leader = self.lifetimes.leader(value)
        return self.scope.names.give(("value", leader.name), self.lifetimes.wanted_name(leader))

    def barrier(self, op: Op) -> None:
        """Wait for the program's other threads where an access may meet an earlier one to the same elements."""
        access, buffer = KINDS[op.name], op.attributes["buffer"]
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

    def placed(self, text: Text, given: Layout, wanted: Layout) -> Text:
        """An array of one layout in another order of its axes."""
        if given == wanted:
            return text
        steps = ", ".join(str(given.index(name)) for name in wanted)
        return Text(f"tl.permute({text.code}, ({steps}))")

    def scalar(self, value: Value) -> str:
        """A condition: one number of the program."""
        return typed(self.operand(value), value.dtype).code

    def full(self, value: Value, layout: Layout) -> str:
        """A value as an array that has the layout's whole shape, its type pinned."""
        return self.full_text(value, layout).code

    def full_text(self, value: Value, layout: Layout) -> Text:
        text, own = self.aligned(value, layout), self.layouts[value.name]
        if not layout:
            return typed(text, value.dtype)
        if own:
            same = len(own) == len(layout)
            return text if same else Text(f"tl.broadcast_to({text.code}, {self.scope.shape(layout)})")
        if text.code in ("0", "0.0"):
            return Text(f"tl.zeros({self.scope.shape(layout)}, {TYPES[value.dtype.name]})")
        return Text(f"tl.full({self.scope.shape(layout)}, {text.code}, {TYPES[value.dtype.name]})")


STATEMENTS: dict[str, Callable[[Emitter, Op], None]] = {
    "load": load,
    "store": store,
    "for": control.loop,
    "yield": lambda emitter, op: None,
    "sort": tiles.sort,
    "topk": tiles.topk,
    "split": tiles.split,
    "philox": tiles.philox,
    "load_at": load_at,
    "store_at": store_at,
    "atomic": atomic,
    "atomic_cas": atomic_cas,
    "if": control.branch,
    "while": control.repeat,
    "let": control.let,
    "reduce_by": combines.reduce_by,
    "scan_by": combines.scan_by,
    "assert": control.check,
    "print": control.show,
}

# -- expressions -------------------------------------------------------------------------------------------------------


def pointwise_expression(emitter: Emitter, op: Op) -> Text:
    layout = emitter.layouts[op.result.name]
    if op.name == "add":
        for product_value, rest in (op.operands, op.operands[::-1]):
            product = emitter.lifetimes.inlined_op(product_value, "dot")
            same = emitter.layouts[product_value.name] == emitter.layouts[rest.name] == layout
            if product is not None and is_matmul(emitter.kernel, product) and same:
                return products.matmul(emitter, product, rest)
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
        text = emitter.scope.integer(form, emitter.layouts[op.result.name])
        # What a `let` names has the width that it was loaded with.
        named = any(integer.name in form.symbols for integer in emitter.kernel.integers)
        return Text(f"tl.cast({text.code}, tl.int32)") if named else text
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
    "dot": products.dot,
    "reshape": reshape,
    "scan": tiles.scan,
    "gather": tiles.gather,
    "flip": tiles.flip,
    "concat": tiles.concat,
    "join": tiles.join,
    "relabel": tiles.relabel,
    "histogram": tiles.histogram,
    "dot_scaled": products.dot_scaled,
    "poison": tiles.poison,
}
