"""Values of the kernel function as Python expressions: names, layouts, and what is written where it is used.

A value becomes a named statement if the author named it or it is used twice; else it stands inside the expression that
uses it. What is known from indices alone is written where it is used, in the layout wanted there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kdsl.codegen import jnp
from kdsl.codegen.expressions import print_expr
from kdsl.codegen.jnp import ATOM, COMPARE, Code
from kdsl.codegen.layout import Layout, axes_of
from kdsl.codegen.wrap import wrap
from kdsl.ir.dtypes import BOOL, DTYPES, DType
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Bound, Op, Value, walk

from . import functions
from .layout import LAZY, natural
from .plan import Plan, shape_of
from .text import INDENT, STATIC, TRACED, WIDTH, Names, row

# What an expression may hold before its parts get names.
LONGEST = 84
# What the scalar unit does with floats; all else needs a vector.
SCALAR_OPS = {"add", "sub", "mul", "maximum", "minimum", "neg", "select", "cast"}
# Names of values that the author gave none: those of the functions that make them.
UNNAMED = {"sum", "max", "min", "all", "any", "argmax", "argmin", "where"}


def base(value: Value) -> str:
    """The name that the author gave a value: SSA adds numbers to it."""
    return value.name.split(".")[0]


class Shared:
    """What the sections of one kernel function have in common: names, and which sizes and coordinates are used."""

    def __init__(self, plan: Plan, taken: Iterable[str]) -> None:
        self.plan = plan
        self.names = Names(taken)
        self.parameters: set[str] = set()
        self.coordinates: set[str] = set()
        self.definitions = {value.name: op for op in walk(plan.kernel.body) for value in op.results}
        self.refs = {f"in {site.name}": self.names.fresh(f"{site.name}_ref") for site in plan.inputs}
        for site in plan.outputs:
            suffix = "_out_ref" if site.name in plan.aliases else "_ref"
            self.refs[f"out {site.name}"] = self.names.fresh(site.name + suffix)
        self.refs |= {f"scratch {item.name}": self.names.fresh(f"{item.name}_ref") for item in plan.scratch}

    def integer(self, expr: Expr, lanes: dict[str, str] | None = None) -> str:
        """An integer expression in the kernel; `lanes` gives the text of tile axes."""
        coordinates = {coordinate.name for coordinate in self.plan.grid}
        self.parameters |= expr.symbols - coordinates - set(lanes or ())
        self.coordinates |= expr.symbols & coordinates
        functions = TRACED if expr.symbols & (coordinates | set(lanes or ())) else STATIC
        return print_expr(expr, lanes, functions)

    def shape(self, layout: Iterable[str | None]) -> str:
        return row([self.integer(extent) for extent in shape_of(self.plan.kernel, layout)])


class Section:
    """The statements of one `pl.when`, or of the whole function."""

    def __init__(self, shared: Shared, indent: int) -> None:
        self.shared, self.plan, self.kernel = shared, shared.plan, shared.plan.kernel
        self.indent = indent
        self.lines: list[str] = []
        self.codes: dict[str, Code] = {}
        self.physical: dict[str, Layout] = {}  # a value's layout, None also where it is still to be broadcast
        self.pending: set[str] = set()  # values that stand inside the expression that uses them
        self.uses: Counter[str] = Counter()
        self.masks: dict[tuple[str, Layout], Code] = {}
        self.line: int | None = None
        self.op: Op | None = None  # that the statements are for
        self.yielded: set[str] = set()  # values that are written to scratch
        self.names = shared.names.copy()  # sections are functions, with names of their own
        self.statements: dict[str, str] = {}  # the Python name of each value that has one

    # -- statements ------------------------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """A statement, under the author's line where that is another than that of the statement before."""
        place = self.op.location if self.op is not None else None
        if place is not None and place.line != self.line:
            self.line = place.line
            self.lines.append(f"{INDENT * self.indent}# line {self.line}")
        self.lines.append(INDENT * self.indent + text)

    def assign(self, name: str, code: Code) -> Code:
        # Only what could not be given names in parts is longer than a line.
        for line in wrap(f"{name} = {code.text}", WIDTH - len(INDENT) * self.indent):
            self.write(line)
        return Code(name)

    def nested(self) -> Section:
        """A section for a function that is defined here: it sees all there is here, and adds nothing to it."""
        inner = Section(self.shared, self.indent + 1)
        inner.codes, inner.physical, inner.pending = dict(self.codes), dict(self.physical), set(self.pending)
        inner.masks, inner.statements = dict(self.masks), dict(self.statements)
        inner.uses, inner.line, inner.names = self.uses, self.line, self.names
        return inner

    def name_of(self, value: Value) -> str:
        if value.name not in self.statements:
            self.statements[value.name] = self.names.fresh(base(value))
        return self.statements[value.name]

    def define(self, op: Op, code: Code, physical: Layout) -> None:
        """Make the op's result available, as a statement of its own or inside its one use."""
        value = op.result
        self.codes[value.name], self.physical[value.name] = code, physical
        unnamed = base(value) in (op.name, *UNNAMED) or base(value).isdigit()
        inside = unnamed or op.name == "load" or value.name in self.yielded
        if self.uses[value.name] == 1 and inside:
            self.pending.add(value.name)
        else:
            self.codes[value.name] = self.assign(self.name_of(value), code)

    def settle(self, value: Value) -> None:
        """Give a pending value a statement after all."""
        self.pending.discard(value.name)
        current, self.op = self.op, self.shared.definitions.get(value.name)
        self.codes[value.name] = self.assign(self.name_of(value), self.codes[value.name])
        self.op = current

    def carried(self, value: Value, ref: str) -> None:
        """Make a value that is in scratch available: read once at the start, unless it is used only once."""
        layout = self.layout(value)
        self.codes[value.name], self.physical[value.name] = Code(ref), layout
        if self.uses[value.name] == 1:
            self.pending.add(value.name)
        elif self.uses[value.name]:
            self.codes[value.name] = self.assign(self.name_of(value), Code(ref))

    def operands(self, values: Sequence[Value], layout: Layout) -> list[Code]:
        """The operands of one expression, brought to a layout; the longest get names where all are too long."""
        while True:
            codes = [self.at(value, layout) for value in values]
            waiting = [value for value in values if value.name in self.pending]
            if sum(len(code.text) for code in codes) <= LONGEST or not waiting:
                return codes
            self.settle(max(waiting, key=lambda value: len(self.codes[value.name].text)))

    # -- layouts ---------------------------------------------------------------------------------------------------

    def layout(self, value: Value) -> Layout:
        return natural(self.kernel, value, self.plan.layouts[value.name], self.plan.rank)

    def at(self, value: Value, layout: Layout) -> Code:
        """The value as an expression that broadcasts against arrays of a layout."""
        if self.plan.layouts[value.name] is LAZY:
            return self.lazy(value, layout)
        return self.brought(self.codes[value.name], value.dtype, self.physical[value.name], layout)

    def brought(self, code: Code, dtype: DType, source: Layout, target: Layout) -> Code:
        """An array of layout `source` with dimensions in the order of `target`, and no more of them than it has."""
        rank, surplus = max(len(source), len(target)), len(source) - len(target)
        source, target = ((None,) * (rank - len(each)) + tuple(each) for each in (source, target))
        moves = any(name not in (None, other) for name, other in zip(source, target, strict=True))
        if not moves and surplus <= 0:
            return code
        if dtype == BOOL:  # Mosaic moves no booleans
            code = jnp.cast(code, BOOL, DTYPES["i32"])
        if moves:
            order: list[int] = [source.index(name) if name in axes_of(source) else -1 for name in target]
            free = [place for place in range(rank) if place not in order]
            code = self.transposed(code, [free.pop(0) if place < 0 else place for place in order])
        if surplus > 0:  # of size 1, left by reductions
            code = Code(f"{code.at(ATOM)}[{', '.join(['0'] * surplus)}]")
        return Code(f"{code.text} != 0", COMPARE) if dtype == BOOL else code

    def transposed(self, code: Code, order: list[int]) -> Code:
        return Code(
            f"{code.at(ATOM)}.T" if order == [1, 0] else f"jnp.transpose({code.text}, {row(list(map(str, order)))})"
        )

    def full(self, value: Value, layout: Layout, room: int = LONGEST // 2) -> Code:
        """The value as an array of exactly the layout's shape, by name where its text has no room."""
        if self.plan.layouts[value.name] is LAZY:
            code = self.lazy(value, layout)
            if code.number or not self.kernel.tile_axes(value) or self.is_constant(value):
                filler = f"{code.text}, {jnp.JNP[value.dtype.name]}"
                shape = self.shared.shape(layout)
                if code.number and code.text in ("0", "0.0"):
                    return Code(f"jnp.zeros({shape}, {jnp.JNP[value.dtype.name]})")
                return Code(f"jnp.full({shape}, {filler})")
            return code
        if value.name in self.pending and len(self.codes[value.name].text) > room:
            self.settle(value)
        code = self.at(value, layout)
        if len(axes_of(self.physical[value.name])) < len(axes_of(layout)):
            return Code(f"jnp.broadcast_to({code.text}, {self.shared.shape(layout)})")
        return code

    def is_constant(self, value: Value) -> bool:
        """Whether a lazy value's text has no lanes: constants, scalars and coordinates, broadcast or not."""
        op = self.shared.definitions[value.name]
        if op.name in ("index", "in_bounds"):
            return not self.kernel.tile_axes(op.result)
        return all(self.is_constant(operand) for operand in op.operands)

    # -- what is written where it is used --------------------------------------------------------------------------

    def lazy(self, value: Value, layout: Layout) -> Code:
        op = self.shared.definitions[value.name]
        if op.name == "constant":
            return jnp.constant(op.attributes["value"], value.dtype)
        if op.name == "poison":
            return jnp.constant(0, value.dtype)  # any value will do
        if op.name == "argument":
            return Code(f"{op.attributes['scalar']}_ref[0, 0]")
        if op.name == "broadcast":
            return self.lazy(op.operands[0], layout)
        if op.name == "index":
            return self.index(op.attributes["form"], layout)
        if op.name == "in_bounds":
            return self.mask(op.attributes["bounds"], layout)
        codes = [self.lazy(operand, layout) for operand in op.operands]
        if value.dtype.is_float and op.name not in SCALAR_OPS and self.is_constant(value):
            shape = row(["1"] * self.plan.rank)
            codes = [
                Code(f"jnp.full({shape}, {code.text}, {jnp.JNP[v.dtype.name]})")
                for code, v in zip(codes, op.operands, strict=True)
            ]
        if op.name == "cast":
            if codes[0].number and value.dtype.is_float:
                return codes[0]  # a Python number takes the dtype of what it meets
            return jnp.cast(codes[0], op.operands[0].dtype, value.dtype)
        code = functions.pointwise(op, codes)
        return self.named((value.name, layout), value.name, code) if len(code.text) > LONGEST // 2 else code

    def named(self, key: tuple[str, Layout], hint: str, code: Code) -> Code:
        """A statement for what is written where it is used, once a section."""
        if key not in self.masks:
            self.masks[key] = self.assign(self.names.fresh(hint), code)
        return self.masks[key]

    def index(self, form: Expr, layout: Layout) -> Code:
        """An integer form, of the layout's shape if it varies along a tile."""
        tiles = [name for name in axes_of(layout) if name in form.symbols]
        if not tiles:
            number = not form.symbols & {coordinate.name for coordinate in self.plan.grid}
            return jnp.integer(form, self.shared.integer(form), number)
        key = (str(form), layout)
        if key not in self.masks:
            shape = self.shared.shape(layout)
            lanes = {name: f"jax.lax.broadcasted_iota(jnp.int32, {shape}, {layout.index(name)})" for name in tiles}
            self.named(key, f"{tiles[0]}_index", Code(self.shared.integer(form, lanes)))
        return self.masks[key]

    def mask(self, bounds: Sequence[Bound], layout: Layout) -> Code:
        """Whether all bounds hold."""
        parts = []
        for bound in bounds:
            form = self.index(bound.form, layout)
            if bound.lower is not None:
                parts.append(f"({self.index(bound.lower, layout).text} <= {form.text})")
            if bound.upper is not None:
                parts.append(f"({form.text} < {self.index(bound.upper, layout).text})")
        code = Code(" & ".join(parts), jnp.AND) if len(parts) > 1 else Code(parts[0][1:-1], COMPARE)
        key = (" and ".join(map(str, bounds)), layout)
        return self.named(key, "inside", code) if len(code.text) > LONGEST // 3 else code

    def filled(self, value: Value, layout: Layout) -> Layout:
        """Which of a layout's dimensions the value fills, as `at` writes it; the others are still to be broadcast."""
        if self.plan.layouts[value.name] is LAZY:
            return (None,) * len(layout) if self.is_constant(value) else layout
        held = axes_of(self.physical[value.name])
        return tuple(name if name in held else None for name in layout)
