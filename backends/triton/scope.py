"""What a kernel is written with besides its values: parameters, program ids, lane offsets, masks, and their names."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kdsl.codegen.expressions import PYTHON, as_operand, print_expr, print_factor
from kdsl.codegen.layout import Layout
from kdsl.diagnostics import fail
from kdsl.ir.dtypes import I64
from kdsl.ir.expr import Expr, Function, symbol
from kdsl.ir.kernel import Axis, Bound, Buffer, Kernel, Op, walk

from .expressions import ADD, AND, ATOM, COMPARE, MULTIPLY, OR, Text
from .helpers import HELPERS
from .legalize import is_tile_product
from .limits import NAME
from .names import Names
from .tiles import counts_apart


@dataclass(frozen=True)
class Block:
    """A constexpr parameter: the number of lanes of an axis, which the host function computes from sizes."""

    name: str
    extent: Expr


def offset_forms(kernel: Kernel, op: Op) -> list[Expr]:
    """The integer forms of an op that a kernel holds as lanes, in the order of the text."""
    bounds: Sequence[Bound] = op.attributes.get("bounds", ())
    forms = list(op.attributes.get("index", ()))
    if op.name == "index":
        forms.append(op.attributes["form"])
    forms += [form for bound in bounds for form in (bound.form, bound.lower, bound.upper) if form is not None]
    if op.name in ("sort", "topk") or op.attributes.get("combine") in ("argmax", "argmin"):
        forms.append(symbol(op.attributes["axis"]))
    if (op.name == "histogram" and counts_apart(kernel, op)) or (op.name == "topk" and op.operands[0].dtype.bits == 64):
        forms.append(symbol(op.attributes["target"]))
    lanes: list[Expr] = []
    for form in forms:
        axes = tile_symbols(kernel, form)
        # A form over several axes, or of 64 bits, is put together from the lanes of each where it is used.
        together = len(axes) == 1 and not (op.name == "index" and op.result.dtype == I64)
        lanes += [form] if together else [symbol(name) for name in axes]
    return lanes


def tile_symbols(kernel: Kernel, form: Expr | Bound) -> tuple[str, ...]:
    """The tile axes that a form or bound varies over, in the kernel's order."""
    return tuple(name for name in kernel.order(form.symbols) if kernel.axis(name).kind == "tile")


class Scope:
    """Names and integer expressions of one emitted kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = Names([kernel.name, f"{kernel.name}_kernel", *HELPERS])
        self.tile_names = {tile.name for tile in kernel.tiles}
        for name in [*(size.name for size in kernel.sizes), *self.tile_names]:
            self.names.give(("symbol", name), name)
        self.blocks = self._blocks()
        for axis in kernel.axes:
            if axis.kind != "tile":
                self.names.give(("symbol", axis.name), axis.name)
        for integer in kernel.integers:
            self.names.give(("symbol", integer.name), integer.name)
        for parameter in kernel.parameters:
            is_buffer = isinstance(parameter, Buffer)
            self.names.give(("argument", parameter.name), f"{parameter.name}_ptr" if is_buffer else parameter.name)
        for buffer in kernel.buffers:
            for dimension in range(len(buffer.shape)):
                self.names.give(("stride", buffer.name, dimension), _stride_name(buffer, dimension))

    def _blocks(self) -> dict[Expr, Block]:
        """Constexpr parameters for extents that a kernel cannot compute, by extent."""
        blocks: dict[Expr, Block] = {}
        for axis in self.kernel.axes:
            if axis.kind == "tile" and not is_tile_product(self.kernel, axis.extent) and axis.extent not in blocks:
                symbols = sorted(axis.extent.symbols - self.tile_names)
                wanted = f"BLOCK_{(symbols[0] if len(symbols) == 1 else axis.name).upper()}"
                blocks[axis.extent] = Block(self.names.give(("block", axis.extent), wanted), axis.extent)
        return blocks

    # -- integer expressions ---------------------------------------------------------------------------------------

    def integer(self, form: Expr, layout: Layout = ()) -> Text:
        """An integer form as an expression; what varies over tile axes is brought to the layout."""
        if form in self.blocks:
            return Text(self.blocks[form].name, untyped=True)
        axes = tile_symbols(self.kernel, form)
        if len(axes) == 1:
            return self.lanes(form, axes[0], layout)
        code = print_expr(form, functions=_functions(form), symbol=lambda name: self._symbol(name, layout))
        level = ADD if len(form.terms) > 1 else MULTIPLY if " * " in code or code.startswith("-") else ATOM
        return Text(code, level, untyped=not axes)

    def wide_integer(self, form: Expr, layout: Layout) -> Text:
        """A form computed in 64 bits."""

        def wide(name: str) -> str:
            return f"tl.cast({self._symbol(name, layout)}, tl.int64)"

        return Text(f"tl.cast({print_expr(form, functions=_functions(form), symbol=wide)}, tl.int64)")

    def factor(self, form: Expr) -> str:
        """A form without tile axes, as a factor of a product."""
        return print_factor(form, functions=_functions(form), symbol=lambda name: self._symbol(name, ()))

    def lanes(self, form: Expr, axis: str, layout: Layout) -> Text:
        """The variable that holds a form over one tile axis."""
        return Text(self.names["lanes", form] + self.expand((axis,), layout))

    def _symbol(self, name: str, layout: Layout) -> str:
        if name in self._tile_axes:
            return self.lanes(symbol(name), name, layout).code
        return self.names["symbol", name]

    @property
    def _tile_axes(self) -> set[str]:
        return {axis.name for axis in self.kernel.axes if axis.kind == "tile"}

    def define_lanes(self, form: Expr, axis: str) -> str:
        """The statement that makes a variable of a form over one tile axis."""
        arange = f"tl.arange(0, {self.extent(axis)})"
        spelled = print_expr(
            form, functions=_functions(form), symbol=lambda name: arange if name == axis else self.names["symbol", name]
        )
        return f"{self.names.give(('lanes', form), f'offs_{axis}')} = {spelled}"

    def define_mask(self, bound: Bound) -> str:
        axes = tile_symbols(self.kernel, bound)
        name = self.names.give(("mask", bound), f"mask_{'_'.join(axes)}")
        return f"{name} = {self.compare(bound, axes).code}"

    def compare(self, bound: Bound, layout: Layout) -> Text:
        """Whether a bound holds."""
        form = self.integer(bound.form, layout)
        parts = []
        if bound.lower is not None:
            parts.append(f"{form.within(OR)} >= {self.integer(bound.lower, layout).within(OR)}")
        if bound.upper is not None:
            parts.append(f"{form.within(OR)} < {self.integer(bound.upper, layout).within(OR)}")
        return Text(parts[0], COMPARE) if len(parts) == 1 else Text(f"({parts[0]}) & ({parts[1]})", AND)

    def mask(self, bounds: Iterable[Bound], layout: Layout) -> Text | None:
        """The conjunction of bounds, or None where there are none."""
        texts = []
        for bound in bounds:
            axes = tile_symbols(self.kernel, bound)
            held = Text(self.names["mask", bound] + self.expand(axes, layout)) if axes else self.compare(bound, ())
            texts.append(held)
        if len(texts) < 2:
            return texts[0] if texts else None
        return Text(" & ".join(text.within(AND) for text in texts), AND)

    # -- shapes ----------------------------------------------------------------------------------------------------

    def extent(self, axis: str) -> str:
        extent = self.kernel.axis(axis).extent
        return self.blocks[extent].name if extent in self.blocks else self.integer(extent).code

    def shape(self, layout: Layout) -> str:
        """The shape of a layout, as a tuple."""
        extents = ["1" if name is None else self.extent(name) for name in layout]
        return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"

    def expand(self, axes: Sequence[str], layout: Layout) -> str:
        """The subscript that brings an array over axes, in the layout's order, to the layout."""
        if not axes or len(axes) == len(layout):
            return ""
        return f"[{', '.join(':' if name in axes else 'None' for name in layout)}]"

    # -- regions ---------------------------------------------------------------------------------------------------

    def definitions(self, loops: Sequence[str], named: Container[str] = (), let: str | None = None) -> list[str]:
        """The offsets and masks that are made at the head of the innermost of `loops`, or of the kernel: as far out as
        what they depend on allows. Those that mention integers are made after the last `let` of one: pass its name,
        with all that are named so far."""
        forms: dict[Expr, None] = {}
        bounds: dict[Bound, None] = {}
        for op in walk(self.kernel.body):
            forms |= dict.fromkeys(offset_forms(self.kernel, op))
            bounds |= dict.fromkeys(op.attributes.get("bounds", ()))

        def here(form: Expr | Bound) -> bool:
            needed = {name for name in form.symbols if name in loop_axes}
            mentioned = form.symbols & integers
            if not needed <= set(loops) or any(name not in named for name in mentioned):
                return False
            if let is not None:
                return let in mentioned
            return loops[-1] in needed if loops else not needed

        loop_axes = {axis.name for axis in self.kernel.axes if axis.kind == "loop"}
        integers = {integer.name for integer in self.kernel.integers}
        lines = [self.define_lanes(form, tile_symbols(self.kernel, form)[0]) for form in forms if here(form)]
        return lines + [self.define_mask(bound) for bound in bounds if tile_symbols(self.kernel, bound) and here(bound)]

    def program_ids(self) -> list[str]:
        """The statements that take a program's number apart: the last axis of the grid is the fastest.

        The grid that is launched has one dimension, since y and z end at 65535 (CUDA) and a kernel may have more axes
        than three.
        """
        axes = [axis for axis in self.kernel.program_axes if axis.extent.constant != 1]
        ones = [f"{self.names['symbol', axis.name]} = 0" for axis in self.kernel.program_axes if axis not in axes]
        if len(axes) == 1:
            return [*ones, f"{self.names['symbol', axes[0].name]} = tl.program_id(0)"]
        if not axes:
            return ones
        pid = self.names.give("pid", "pid")
        lines = [*ones, f"{pid} = tl.program_id(0)"]
        for place in reversed(range(len(axes))):
            faster = [self._count(axis) for axis in reversed(axes[place + 1 :])]
            divided = " // ".join([pid, *faster])
            own = self.names["symbol", axes[place].name]
            lines.append(f"{own} = {divided}" + (f" % {self._count(axes[place])}" if place else ""))
        return lines

    def _count(self, axis: Axis) -> str:
        return self.factor(axis.extent)


def _stride_name(buffer: Buffer, dimension: int) -> str:
    extent = buffer.shape[dimension]
    names = [next(iter(size.symbols)) if size == symbol("".join(size.symbols)) else "" for size in buffer.shape]
    own = names[dimension]
    return f"{buffer.name}_stride_{own.lower() if own and names.count(own) == 1 and extent.symbols else dimension}"


def _next_pow2(argument: str) -> str:
    raise fail(
        "K0301", None, target=NAME, problem="it has no next_pow2 inside an index", instead="compute it as a size"
    )


def _nested(function: str, *arguments: str) -> str:
    first, *rest = arguments
    for argument in rest:
        first = f"{function}({first}, {argument})"
    return first


_UNSIGNED: Mapping[str, Callable[..., str]] = {
    **PYTHON,
    "cdiv": lambda a, b: f"tl.cdiv({a}, {b})",
    "min": lambda *arguments: _nested("tl.minimum", *arguments),
    "max": lambda *arguments: _nested("tl.maximum", *arguments),
    "next_pow2": _next_pow2,
}
# Triton's // and % round toward zero, which is not the form's meaning where a difference is divided.
_SIGNED: Mapping[str, Callable[..., str]] = {
    **_UNSIGNED,
    "cdiv": lambda a, b: f"(-floor_div(-{as_operand(a)}, {b}))",
    "floordiv": lambda a, b: f"floor_div({a}, {b})",
    "mod": lambda a, b: f"floor_mod({a}, {b})",
}


def _functions(form: Expr) -> Mapping[str, Callable[..., str]]:
    return _SIGNED if _divides_signed(form) else _UNSIGNED


def _divides_signed(form: Expr) -> bool:
    """Whether a form divides something with a negative term; sizes, programs and lanes are never negative."""
    functions = list(_all_functions(form))
    arguments = [argument for function in functions for argument in function.arguments]
    return any(function.name in ("floordiv", "mod", "cdiv") for function in functions) and any(
        coefficient < 0 for argument in arguments for _, coefficient in argument.terms
    )


def _all_functions(form: Expr) -> Iterator[Function]:
    for monomial, _ in form.terms:
        for atom in monomial:
            if isinstance(atom, Function):
                yield atom
                for argument in atom.arguments:
                    yield from _all_functions(argument)
