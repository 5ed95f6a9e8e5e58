"""The body of the loop over programs: ops as jnp statements, one small method an op, in the order of the op table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from kdsl.codegen import jnp
from kdsl.codegen.expressions import PYTHON, print_expr
from kdsl.codegen.jnp import JNP, Code
from kdsl.codegen.layout import Layout, assign_layouts, axes_of
from kdsl.codegen.wrap import wrap
from kdsl.ir.dtypes import BF16, F16, F32
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Bound, Kernel, Op, Region, Value
from kdsl.ir.ops import is_pointwise

from . import control, indexed, memory, reductions, tiles
from .arrays import align, as_tuple
from .boxes import Extent, extents
from .names import Names

# XLA composes these from others, each rounded to 16 bits: up to 100 units in the last place for exp2.
WIDENED = (
    *("exp2", "log2", "sigmoid", "pow", "atan2", "log10", "log1p", "expm1", "cbrt", "tan"),
    *("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
)
LONGEST = 88  # characters of an expression before parts of it get lines of their own


class Body:
    """Prints regions. `counts` names the trip counts that the host has computed; `lanes` collects the axes whose lane
    numbers the text uses."""

    def __init__(self, kernel: Kernel, names: Names, axes: Mapping[str, str], counts: Mapping[Expr, str]) -> None:
        self.kernel, self.names, self.axes, self.counts = kernel, names, axes, counts
        self.layouts = assign_layouts(kernel)
        self.extents: Mapping[str, tuple[Extent, ...]] = extents(kernel)
        self.tile_axes = {axis.name for axis in kernel.axes if axis.kind == "tile"}
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
        if not op.results or op.results[0].name not in self.names.inlined:
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

    def give_all(self, op: Op, text: str) -> None:
        """Name the results of an op that gives a tuple of them."""
        names = [self.names.of[value.name] for value in op.results]
        for value, name in zip(op.results, names, strict=True):
            self.held[value.name] = Code(name)
        self.line(f"{as_tuple(names) if len(names) == 1 else ', '.join(names)} = {text}")

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
            if name not in self.tile_axes:
                return self.axes[name]
            self.lanes.add(name)
            return align(Code(self.axes[name]), (name,), layout).text

        functions = {**PYTHON, "cdiv": self.count}
        if form.symbols & self.axes.keys():
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
            if op.name == "fma":
                return self.fused(op, operands)
            if op.name in WIDENED and op.result.dtype in (F16, BF16):
                wide = replace(op, operands=tuple(replace(value, dtype=F32) for value in op.operands))
                cast = [jnp.cast(x, op.result.dtype, F32) for x in operands]
                return jnp.cast(jnp.pointwise(wide, cast), F32, op.result.dtype)
            if op.name == "cast":
                return jnp.cast(operands[0], op.operands[0].dtype, op.result.dtype)
            if op.name == "div" and self.axes_lacking(op.operands[1], layout) and not operands[0].number:
                return Code(f"divide({operands[0].text}, {operands[1].text})")
            return jnp.pointwise(op, operands)

        return self.shorten(op.operands, write)

    def fused(self, op: Op, operands: Sequence[Code]) -> Code:
        """In the next wider type, in which the product is exact."""
        typed = [jnp.typed(code, op.result.dtype).text for code in operands]
        wide = "jnp.float64, jnp.int64" if op.result.dtype == F32 else "jnp.float32, jnp.int32"
        return Code(f"fused({', '.join(typed)}, {wide})")

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

    def load(self, op: Op) -> None:
        tile = memory.load(self, op)
        if tile.text == op.attributes["buffer"]:
            self.held[op.result.name] = tile  # the tensor as a whole needs no other name
        else:
            self.give(op, tile)

    def carried(self, value: Value, layout: Layout) -> str:
        """A value as one that a loop or branch gives: of the full shape and of its own dtype."""
        return jnp.typed(self.tile(value, layout, whole=True), value.dtype).text

    @contextmanager
    def function(self, name: str, parameters: Sequence[str], carried: Sequence[str] | None = None) -> Iterator[None]:
        """A function whose body is written inside. Of what a loop carries, one is an argument, several are a tuple."""
        place = len(self.lines) - (1 if self.lines and self.lines[-1].lstrip().startswith("#") else 0)
        if place and self.lines[place - 1] and not self.lines[place - 1].endswith(":"):
            self.lines.insert(place, "")
        last = [] if carried is None else [carried[0] if len(carried) == 1 else "carried"]
        self.line(f"def {name}({', '.join([*parameters, *last])}):")
        outside, self.indent = self.indent, self.indent + "    "
        if carried is not None and len(carried) > 1:
            self.line(f"{', '.join(carried)} = carried")
        yield
        self.indent = outside
        self.lines.append("")


PRINTERS: dict[str, Callable[[Body, Op], None]] = {
    "constant": Body.constant,
    "argument": Body.argument,
    "index": Body.index,
    "in_bounds": Body.in_bounds,
    "broadcast": Body.broadcast,
    "reduce": reductions.reduce,
    "dot": reductions.dot,
    "reshape": tiles.reshape,
    "load": Body.load,
    "store": memory.store,
    "for": control.loop,
    "bitcast": tiles.bitcast,
    "scan": tiles.scan,
    "sort": tiles.sort,
    "topk": tiles.topk,
    "gather": tiles.gather,
    "flip": tiles.flip,
    "concat": tiles.concat,
    "join": tiles.join,
    "split": tiles.split,
    "relabel": tiles.relabel,
    "histogram": tiles.histogram,
    "philox": tiles.philox,
    "dot_scaled": reductions.dot_scaled,
    "load_at": indexed.load_at,
    "store_at": indexed.store_at,
    "atomic": indexed.atomic,
    "atomic_cas": indexed.atomic_cas,
    "if": control.branch,
    "while": control.repeat,
    "reduce_by": reductions.reduce_by,
    "scan_by": reductions.scan_by,
    "let": control.let,
    "poison": tiles.poison,
}
"""Every op that is not pointwise, in the order of the op table."""
