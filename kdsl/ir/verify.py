"""The verifier: a kernel is well formed, or an IRError says which op is not. Runs between passes.

What it checks: every op is a row of the table with that row's operands, attributes and regions; every value is defined
once, before its use, in scope, with the type its op gives; tile axes whose bounds depend on a loop stay inside it;
names do not clash.
"""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.diagnostics import Location
from kdsl.ir.kernel import Buffer, Kernel, Op, Region, Value
from kdsl.ir.ops import OPS, RESERVED, OpTypeError


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
    names += [tile.name for tile in kernel.tiles]
    for group in (names, [parameter.name for parameter in kernel.parameters]):
        for name in group:
            if group.count(name) > 1:
                raise IRError(f"{name} is declared twice")
    known = set(names)
    fixed = known - {axis.name for axis in kernel.axes}
    for parameter in kernel.parameters:
        if isinstance(parameter, Buffer):
            for extent in parameter.shape:
                _check_symbols(extent.symbols, fixed, f"the shape of {parameter.name}")
    for axis in kernel.axes:
        allowed = fixed | {other.name for other in kernel.axes if other.kind != "tile"} if axis.kind != "tile" else fixed
        _check_symbols(axis.extent.symbols, allowed - {axis.name}, f"the extent of {axis.name}")
        for bound in axis.bounds:
            _check_symbols(bound.symbols, known, f"a bound of {axis.name}")


def _check_symbols(symbols: Iterable[str], known: Iterable[str], where: str) -> None:
    for name in sorted(set(symbols) - set(known)):
        raise IRError(f"{where} mentions {name}, which is not declared")


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.defined: set[str] = set()
        self.kinds = {axis.name: axis.kind for axis in kernel.axes}
        self.fixed = {size.name for size in kernel.sizes} | {tile.name for tile in kernel.tiles}
        self.loops: list[str] = []

    def region(self, region: Region, scope: dict[str, Value]) -> None:
        scope = dict(scope)
        for argument in region.arguments:
            self.define(argument, scope, None)
        for op in region.ops:
            self.op(op, scope)
            for value in op.results:
                self.define(value, scope, op)

    def define(self, value: Value, scope: dict[str, Value], op: Op | None) -> None:
        if value.name in self.defined:
            raise IRError(f"{value} is defined twice", op)
        if value.axes != self.kernel.order(value.axes):
            raise IRError(f"{value} names axes that are not declared, or not in the kernel's order", op)
        self.defined.add(value.name)
        scope[value.name] = value

    def op(self, op: Op, scope: dict[str, Value]) -> None:
        if op.name not in OPS:
            raise IRError(f"{op.name} is {'reserved, not built yet' if op.name in RESERVED else 'no op'}", op)
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
        try:
            expected = spec.infer(self.kernel, op)
        except (OpTypeError, KeyError, ValueError) as error:
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
        for name, kind in kinds.items():
            value = op.attributes.get(name, ())
            if kind in ("form", "forms", "bounds"):
                for form in value if isinstance(value, tuple) else (value,):
                    self.scope_of_form(form.symbols, op)

    def scope_of_form(self, symbols: Iterable[str], op: Op) -> None:
        for name in symbols:
            if name in self.fixed:
                continue
            if name not in self.kinds:
                raise IRError(f"{op.name} mentions {name}, which is not declared", op)
            if self.kinds[name] == "loop" and name not in self.loops:
                raise IRError(f"{op.name} mentions the loop axis {name} outside its loop", op)

    def loop(self, op: Op, scope: dict[str, Value]) -> None:
        axis = op.attributes["axis"]
        if axis in self.loops:
            raise IRError(f"a loop over {axis} inside a loop over {axis}", op)
        self.loops.append(axis)
        self.region(op.regions[0], scope)
        self.loops.pop()
        bound_inside = {
            other.name for other in self.kernel.axes if any(axis in bound.symbols for bound in other.bounds)
        }
        for value in op.results:
            if bound_inside & set(value.axes):
                raise IRError(f"{value} leaves the loop over {axis} with an axis whose lanes depend on it", op)

