"""The verifier: a kernel is well formed, or an IRError says which op is not. Runs between passes.

What it checks: every op is a row of the table with that row's operands, attributes and regions; every value is defined
once, before its use, in scope, with the type its op gives; what depends on a loop axis stays inside that loop; names
do not clash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kdsl.diagnostics import Location
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Bound, Buffer, Kernel, Op, Region, Text, Value
from kdsl.ir.ops import OPS
from kdsl.ir.spec import AttributeKind
from kdsl.ir.type_rules import OpTypeError


class IRError(Exception):
    """A malformed kernel: a bug in whoever made it, or a mistake in IR text."""

    def __init__(self, message: str, op: Op | None = None) -> None:
        self.op = op
        self.location: Location | None = op.location if op is not None else None
        super().__init__(message)


def verify(kernel: Kernel) -> Kernel:
    """The kernel itself, if it is well formed. Raises IRError."""
    _check_names(kernel)
    _Verifier(kernel).region(kernel.body, {})
    return kernel


def _check_names(kernel: Kernel) -> None:
    """Axes, sizes and tile parameters share one name space, as they meet in expressions; arguments have their own."""
    names = [axis.name for axis in kernel.axes] + [size.name for size in kernel.sizes]
    names += [tile.name for tile in kernel.tiles] + [integer.name for integer in kernel.integers]
    for group in (names, [parameter.name for parameter in kernel.parameters]):
        for name in group:
            if group.count(name) > 1:
                raise IRError(f"{name} is declared twice")
    known = set(names)
    integers = {integer.name for integer in kernel.integers}
    fixed = known - {axis.name for axis in kernel.axes} - integers
    sizes: set[str] = set()
    for size in kernel.sizes:
        if size.value is not None:
            _check_symbols(size.value.symbols, sizes, f"the size {size.name}")
        sizes.add(size.name)
    for constraint in kernel.constraints:
        _check_symbols(constraint.left.symbols | constraint.right.symbols, sizes, f"the constraint {constraint}")
    for parameter in kernel.parameters:
        if isinstance(parameter, Buffer):
            for extent in parameter.shape:
                _check_symbols(extent.symbols, fixed, f"the shape of {parameter.name}")
    for axis in kernel.axes:
        points = {other.name for other in kernel.axes if other.kind != "tile"} - {axis.name}
        allowed = fixed | points | integers if axis.kind == "loop" else fixed
        _check_symbols(axis.extent.symbols, allowed, f"the extent of {axis.name}")
        if axis.bounds and axis.kind != "tile":
            raise IRError(f"{axis.name} has bounds, but is no tile axis")
        if not _is_bounds(axis.bounds):
            raise IRError(f"a bound of {axis.name} has neither end")
        for bound in axis.bounds:
            _check_symbols(bound.symbols, known, f"a bound of {axis.name}")
    # Lanes go in row-major order of their axes: those of one program before those of the next.
    if [axis.kind for axis in kernel.axes[: len(kernel.program_axes)]] != ["program"] * len(kernel.program_axes):
        raise IRError("the program axes do not come first")
    for integer in kernel.integers:
        _check_symbols(integer.axes, known - fixed - integers, f"the integer {integer.name}")


def _check_symbols(symbols: Iterable[str], known: Iterable[str], where: str) -> None:
    for name in sorted(set(symbols) - set(known)):
        raise IRError(f"{where} mentions {name}, which is not declared")


def _is_bounds(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(bound, Bound) and (bound.lower, bound.upper) != (None, None) for bound in value
    )


def _is_tuple_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(isinstance(item, kind) for item in value)


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


_KINDS: dict[AttributeKind, Callable[[Any], bool]] = {
    "value": lambda value: isinstance(value, bool | int | float),
    "axis": _is_name,
    "axes": _is_tuple_of(str),
    "form": lambda value: isinstance(value, Expr),
    "forms": _is_tuple_of(Expr),
    "bounds": _is_bounds,
    "buffer": _is_name,
    "scalar": _is_name,
    "word": _is_name,
    "flag": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, Text),
}


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.defined: set[str] = set()
        self.kinds = {axis.name: axis.kind for axis in kernel.axes}
        self.fixed = {size.name for size in kernel.sizes} | {tile.name for tile in kernel.tiles}
        self.loops: list[str] = []
        self.integers = {integer.name for integer in kernel.integers}
        self.named: frozenset[str] = frozenset()  # the integers that are named here
        self.lets: set[str] = set()

    def region(self, region: Region, scope: dict[str, Value], owner: Op | None = None) -> None:
        scope, around = dict(scope), self.named
        for argument in region.arguments:
            self.define(argument, scope, owner)
        for place, op in enumerate(region.ops):
            if op.name == "yield" and (owner is None or place != len(region.ops) - 1):
                raise IRError("yield is not the last op of a region that yields", op)
            self.op(op, scope)
            for value in op.results:
                self.define(value, scope, op)
            if op.name == "let":
                self.let(op)
        self.named = around

    def let(self, op: Op) -> None:
        name = op.attributes["integer"]
        if name in self.lets:
            raise IRError(f"let: the integer {name} is named twice", op)
        self.lets.add(name)
        self.named |= {name}

    def define(self, value: Value, scope: dict[str, Value], op: Op | None) -> None:
        if value.name in self.defined:
            raise IRError(f"{_where(op)}{value} is defined twice", op)
        if value.axes != self.kernel.order(value.axes):
            raise IRError(f"{_where(op)}{value} names axes that are not declared, or not in the kernel's order", op)
        for name in self.kernel.with_validity(value.axes):
            if self.kinds[name] == "loop" and name not in self.loops:
                raise IRError(f"{_where(op)}{value} depends on the loop axis {name} outside its loop", op)
            for bound in self.kernel.axis(name).bounds:
                if missing := bound.symbols & self.integers - self.named:
                    raise IRError(f"{_where(op)}{value} depends on {', '.join(sorted(missing))} outside its scope", op)
        self.defined.add(value.name)
        scope[value.name] = value

    def op(self, op: Op, scope: dict[str, Value]) -> None:
        if op.name not in OPS:
            raise IRError(f"{op.name} is no op", op)
        spec = OPS[op.name]
        for value in op.operands:
            if scope.get(value.name) != value:
                raise IRError(f"{op.name} uses {value}, which is not in scope with that type", op)
        if spec.operands != ("*",) and len(op.operands) != len(spec.operands):
            raise IRError(f"{op.name} takes {len(spec.operands)} operands, not {len(op.operands)}", op)
        self.attributes(op)
        if len(op.regions) != spec.regions:
            raise IRError(f"{op.name} takes {spec.regions} regions, not {len(op.regions)}", op)
        if op.name == "for":
            self.loop(op, scope)
        else:
            for region in op.regions:
                self.region(region, scope, op)
        try:
            expected = spec.infer(self.kernel, op)
        except KeyError as error:
            raise IRError(f"{op.name} mentions {error.args[0]}, which is not declared", op) from None
        except (OpTypeError, ValueError) as error:
            raise IRError(f"{op.name}: {error}", op) from None
        got = tuple((value.dtype, value.axes) for value in op.results)
        if got != tuple((dtype, axes) for dtype, axes in expected):
            shown = [f"{dtype}[{', '.join(axes)}]" for dtype, axes in expected]
            raise IRError(f"{op.name} gives {', '.join(shown) or 'nothing'}, but its results say otherwise", op)

    def attributes(self, op: Op) -> None:
        spec = OPS[op.name]
        kinds = dict(spec.attributes)
        for name in op.attributes.keys() - kinds.keys():
            raise IRError(f"{op.name} has no attribute {name}", op)
        for name in kinds.keys() - op.attributes.keys() - set(spec.optional):
            raise IRError(f"{op.name} lacks its attribute {name}", op)
        for name, value in op.attributes.items():
            if not _KINDS[kinds[name]](value):
                raise IRError(f"{op.name}: {value} is no {kinds[name]}, as its attribute {name} has to be", op)
            if kinds[name] in ("form", "forms", "bounds"):
                for form in value if isinstance(value, tuple) else (value,):
                    self.scope_of_form(form.symbols, op)

    def scope_of_form(self, symbols: Iterable[str], op: Op) -> None:
        for name in symbols:
            if name in self.fixed or name in self.named:
                continue
            if name in self.integers:
                raise IRError(f"{op.name} mentions the integer {name} outside its scope", op)
            if name not in self.kinds:
                raise IRError(f"{op.name} mentions {name}, which is not declared", op)
            if self.kinds[name] == "loop" and name not in self.loops:
                raise IRError(f"{op.name} mentions the loop axis {name} outside its loop", op)

    def loop(self, op: Op, scope: dict[str, Value]) -> None:
        axis = op.attributes["axis"]
        if axis in self.loops:
            raise IRError(f"for: a loop over {axis} inside a loop over {axis}", op)
        if self.kinds.get(axis) == "loop":
            self.scope_of_form(self.kernel.axis(axis).extent.symbols, op)
        self.loops.append(axis)
        self.region(op.regions[0], scope, op)
        self.loops.pop()


def _where(op: Op | None) -> str:
    return f"{op.name}: " if op is not None else ""
