"""The body of the loop over programs: ops as jnp statements, one small method an op, in the order of the op table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kdsl.codegen import jnp
from kdsl.codegen.expressions import PYTHON, print_expr
from kdsl.codegen.jnp import ATOM, JNP, Code
from kdsl.codegen.layout import Layout, assign_layouts, axes_of
from kdsl.codegen.wrap import wrap
from kdsl.ir.dtypes import BF16, F16, F32
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Bound, Kernel, Op, Region, Value
from kdsl.ir.ops import is_pointwise

from . import memory
from .arrays import align, as_tuple, as_value
from .boxes import Extent, extents, written_in
from .names import Names

# XLA composes these from others, each rounded to 16 bits: up to 100 units in the last place for exp2.
WIDENED = ("exp2", "log2", "sigmoid")
LONGEST = 88  # characters of an expression before parts of it get lines of their own


class Body:
    """Prints regions. `counts` names the trip counts that the host has computed; `lanes` collects the axes whose lane
    numbers the text uses."""

    def __init__(self, kernel: Kernel, names: Names, axes: Mapping[str, str], counts: Mapping[Expr, str]) -> None:
        self.kernel, self.names, self.axes, self.counts = kernel, names, axes, counts
        self.layouts = assign_layouts(kernel)
        self.extents: Mapping[str, tuple[Extent, ...]] = extents(kernel)
        self.lanes: set[str] = set()
        self.lines: list[str] = []
        self.indent = "    "
        self.held: dict[str, Code] = {}
        self.place: tuple[str, int] | None = None

    # -- statements ------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines += wrap(self.indent + text)

    def region(self, region: Region) -> None:
        for op in region.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        if op.name == "yield":
            return
        inlined = bool(op.results) and op.results[0].name in self.names.inlined
        if not inlined:
            self.comment(op)
        if is_pointwise(op):
            self.give(op, self.pointwise(op))
        else:
            PRINTERS[op.name](self, op)

    def comment(self, op: Op) -> None:
        """The author's line, once for each run of statements from it."""
        if op.location is None or (place := (op.location.file, op.location.line)) == self.place:
            return
        self.place = place
        home = self.kernel.location is None or self.kernel.location.file == op.location.file
        file = "" if home else op.location.file.rpartition("/")[2] + ", "
        self.line(f"# {file}line {op.location.line}")

    def give(self, op: Op, code: Code) -> None:
        """Name the result of an op, or hold its text until it is used."""
        if op.result.name in self.names.inlined:
            self.held[op.result.name] = code
        else:
            name = self.names.of[op.result.name]
            self.held[op.result.name] = Code(name)
            self.line(f"{name} = {code.text}")

    def value(self, value: Value) -> Code:
        return self.held[value.name]

    def shorten(self, values: Sequence[Value], write: Callable[[], Code]) -> Code:
        """What `write` gives, after long operands were given lines of their own."""
        code = write()
        while len(code.text) > LONGEST:
            longest = max(values, key=lambda value: len(self.held[value.name].text))
            held = self.held[longest.name]
            if held.text.isidentifier() or held.number:
                break
            name = self.names.fresh(longest.name.split(".")[0])
            self.line(f"{name} = {held.text}")
            self.held[longest.name] = Code(name)
            code = write()
        return code

    # -- arrays ----------------------------------------------------------------------------------------------------

    def tile(self, value: Value, layout: Layout, whole: bool = False) -> Code:
        """A value as an array that broadcasts against the layout; with `whole`, as one of exactly its shape."""
        code, have = self.value(value), axes_of(self.layouts[value.name])
        shape = self.shape(layout)
        if whole and not have and layout:
            if code.text in ("0", "0.0", "False"):
                return Code(f"jnp.zeros({shape}, {JNP[value.dtype.name]})")
            return Code(f"jnp.full({shape}, {code.text}, {JNP[value.dtype.name]})")
        if whole and not layout:
            return jnp.typed(code, value.dtype)
        code = align(code, have, layout, full_rank=whole)
        lacking = [axis for axis in axes_of(layout) if axis not in have]
        return Code(f"jnp.broadcast_to({code.text}, {shape})") if whole and lacking else code

    def shape(self, layout: Layout) -> str:
        return as_tuple(self.sizes(layout))

    def sizes(self, layout: Layout) -> list[str]:
        return ["1" if axis is None else self.size(self.kernel.axis(axis).extent) for axis in layout]

    def size(self, form: Expr) -> str:
        """A form of sizes and tile sizes alone."""
        return print_expr(form, functions={**PYTHON, "cdiv": self.count})

    def count(self, numerator: str, denominator: str) -> str:
        text = f"cdiv({numerator}, {denominator})"
        return next((name for form, name in self.counts.items() if print_expr(form) == text), text)

    def form(self, form: Expr, layout: Layout = ()) -> Code:
        """An integer form, with lane numbers as arrays that broadcast against the layout."""

        def spell(name: str) -> str:
            if name not in self.axes:
                return name
            if self.kernel.axis(name).kind != "tile":
                return self.axes[name]
            self.lanes.add(name)
            return align(Code(self.axes[name]), (name,), layout).text

        functions = {**PYTHON, "cdiv": self.count}
        if self.kernel.order(form.symbols):
            functions |= {"min": partial(self.extreme, "min"), "max": partial(self.extreme, "max")}
        return jnp.integer(form, print_expr(form, functions=functions, symbol=spell))

    def extreme(self, name: str, *arguments: str) -> str:
        """min or max of integers of which some are traced: Python's own takes only those that are not."""
        traced = [text for text in arguments if set(re.findall(r"\w+", text)) & set(self.axes.values())]
        known = [text for text in arguments if text not in traced]
        parts = traced + ([f"{name}({', '.join(known)})"] if len(known) > 1 else known)
        result = parts.pop()
        while parts:
            result = f"jnp.{name}imum({parts.pop()}, {result})"
        return result

    def mask(self, bounds: Sequence[Bound], layout: Layout) -> Code:
        """Where all bounds hold; what is too long for one expression is built up in statements."""
        tests = []
        for bound in bounds:
            form = self.form(bound.form, layout).text
            if bound.lower is not None:
                tests.append(f"{form} >= {self.form(bound.lower, layout).text}")
            if bound.upper is not None:
                tests.append(f"{form} < {self.form(bound.upper, layout).text}")
        if len(tests) == 1:
            return Code(tests[0], jnp.COMPARE)
        text = " & ".join(f"({test})" for test in tests)
        if len(text) <= LONGEST:
            return Code(text, jnp.AND)
        name = self.names.fresh("inside")
        self.line(f"{name} = {tests[0]}")
        for test in tests[1:]:
            self.line(f"{name} &= {test}")
        return Code(name)

    # -- the op table ----------------------------------------------------------------------------------------------

    def pointwise(self, op: Op) -> Code:
        layout = self.layouts[op.result.name]

        def write() -> Code:
            operands = [self.tile(value, layout) for value in op.operands]
            if op.name in WIDENED and op.result.dtype in (F16, BF16):
                (x,) = operands
                wide = replace(op, operands=(replace(op.operands[0], dtype=F32),))
                return jnp.cast(jnp.pointwise(wide, [jnp.cast(x, op.result.dtype, F32)]), F32, op.result.dtype)
            if op.name == "cast":
                return jnp.cast(operands[0], op.operands[0].dtype, op.result.dtype)
            if op.name == "div" and self.axes_lacking(op.operands[1], layout) and not operands[0].number:
                return Code(f"divide({operands[0].text}, {operands[1].text})")
            return jnp.pointwise(op, operands)

        return self.shorten(op.operands, write)

    def axes_lacking(self, value: Value, layout: Layout) -> bool:
        """Whether the value is broadcast where it is used with this layout, or is a known number."""
        return self.value(value).number or len(axes_of(self.layouts[value.name])) < len(axes_of(layout))

    def constant(self, op: Op) -> None:
        self.give(op, jnp.constant(op.attributes["value"], op.result.dtype))

    def argument(self, op: Op) -> None:
        self.give(op, Code(op.attributes["scalar"]))

    def index(self, op: Op) -> None:
        form = self.form(op.attributes["form"], self.layouts[op.result.name])
        self.give(op, Code(f"{JNP[op.result.dtype.name]}({form.text})"))

    def in_bounds(self, op: Op) -> None:
        mask = self.mask(op.attributes["bounds"], self.layouts[op.result.name])
        self.give(op, mask if op.result.axes else Code(f"jnp.bool_({mask.text})"))

    def broadcast(self, op: Op) -> None:
        (value,), layout = op.operands, self.layouts[op.result.name]
        self.give(op, self.shorten([value], lambda: self.tile(value, layout, whole=True)))

    def reduce(self, op: Op) -> None:
        (source,), axis, combine = op.operands, op.attributes["axis"], op.attributes["combine"]
        layout = self.layouts[source.name]
        maybe_empty = self.kernel.axis(axis).extent.symbols & {size.name for size in self.kernel.sizes}

        def write() -> Code:
            tile = self.tile(source, layout, whole=True)
            return jnp.reduce(tile, combine, source.dtype, layout.index(axis), maybe_empty=bool(maybe_empty))

        code = self.shorten([source], write)
        kept, wanted = tuple(name for name in layout if name != axis), self.layouts[op.result.name]
        # Which lanes were valid may vary over axes that the source does not vary over.
        self.give(op, code if kept == wanted else self._spread(code, kept, wanted))

    def _spread(self, code: Code, have: Layout, layout: Layout) -> Code:
        return Code(f"jnp.broadcast_to({align(code, axes_of(have), layout).text}, {self.shape(layout)})")

    def dot(self, op: Op) -> None:
        left, right = op.operands
        first, second, axis = self.layouts[left.name], self.layouts[right.name], op.attributes["axis"]

        def write() -> Code:
            tiles = self.tile(left, first, whole=True), self.tile(right, second, whole=True)
            return jnp.dot(*tiles, (first.index(axis), second.index(axis)), left.dtype, op.result.dtype)

        self.give(op, write())

    def reshape(self, op: Op) -> None:
        (value,), layout = op.operands, self.layouts[op.result.name]
        source, target = op.attributes["source"], op.attributes["target"]
        rows = tuple(name for name in axes_of(self.layouts[value.name]) if name not in source)
        tile = self.tile(value, (*rows, *source), whole=True)
        code = Code(f"{tile.at(ATOM)}.reshape({', '.join(self.sizes((*rows, *target)))})")
        self.give(op, align(code, (*rows, *target), layout))

    def load(self, op: Op) -> None:
        tile = memory.load(self, op)
        if tile.text == op.attributes["buffer"]:
            self.held[op.result.name] = tile  # the tensor as a whole needs no other name
        else:
            self.give(op, tile)

    def store(self, op: Op) -> None:
        memory.store(self, op)

    def loop(self, op: Op) -> None:
        """A fori_loop that carries the op's values and the tensors that its body writes."""
        (body,), axis = op.regions, self.kernel.axis(op.attributes["axis"])
        written = written_in(self.kernel, body.ops)
        arguments = [*(self.names.of[value.name] for value in body.arguments), *written]
        layouts = [self.layouts[value.name] for value in body.arguments]
        initial = [self.carried(value, layout) for value, layout in zip(op.operands, layouts, strict=True)]
        name = self.names.fresh("step")
        self.function(name, self.axes[axis.name], arguments)
        for value in body.arguments:
            self.held[value.name] = Code(self.names.of[value.name])
        outside, self.indent = self.indent, self.indent + "    "
        self.region(body)
        final = [self.carried(value, layout) for value, layout in zip(body.ops[-1].operands, layouts, strict=True)]
        self.line(f"return {', '.join([*final, *written])}")
        self.indent = outside
        self.lines.append("")
        results = [*(self.names.of[value.name] for value in op.results), *written]
        for value in op.results:
            self.held[value.name] = Code(self.names.of[value.name])
        trips = self.counts.get(axis.extent) or self.form(axis.extent).text
        start = as_value([*initial, *written])
        self.line(f"{', '.join(results)} = jax.lax.fori_loop(0, {trips}, {name}, {start})")

    def carried(self, value: Value, layout: Layout) -> str:
        """A value as one that a loop carries: of the full shape and of its own dtype."""
        return jnp.typed(self.tile(value, layout, whole=True), value.dtype).text

    def function(self, name: str, index: str, carried: Sequence[str]) -> None:
        """The head of a loop body: one carried value is an argument, several come as a tuple."""
        place = len(self.lines) - (1 if self.lines and self.lines[-1].lstrip().startswith("#") else 0)
        if place and self.lines[place - 1] and not self.lines[place - 1].endswith(":"):
            self.lines.insert(place, "")
        self.line(f"def {name}({index}, {carried[0] if len(carried) == 1 else 'carried'}):")
        if len(carried) > 1:
            self.line(f"    {', '.join(carried)} = carried")


PRINTERS: dict[str, Callable[[Body, Op], None]] = {
    "constant": Body.constant,
    "argument": Body.argument,
    "index": Body.index,
    "in_bounds": Body.in_bounds,
    "broadcast": Body.broadcast,
    "reduce": Body.reduce,
    "dot": Body.dot,
    "reshape": Body.reshape,
    "load": Body.load,
    "store": Body.store,
    "for": Body.loop,
}
"""Every op that is not pointwise, in the order of the op table."""
