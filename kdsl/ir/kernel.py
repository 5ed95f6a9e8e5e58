"""What a kernel is made of.

    Kernel    its arguments, sizes, tile parameters and constraints; its axes; a body
    Axis      a named dimension that values vary over: program, loop or tile
    Value     an SSA value: a dtype and the axes it varies over; no shape, no order, no layout
    Op        one row of the op table applied to values, with attributes and regions

Everything here is immutable and compares by content (locations aside).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kdsl.diagnostics import Location, fail
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr, IntLike, wrap
from kdsl.ir.statement import Statement

AxisKind = Literal["program", "loop", "tile"]
Role = Literal["in", "out", "inout"]


@dataclass(frozen=True)
class Bound:
    """`lower <= form < upper`; either end may be absent. Bounds come in lists that all hold: a conjunction."""

    form: Expr
    lower: Expr | None = None
    upper: Expr | None = None

    @property
    def symbols(self) -> frozenset[str]:
        return self.form.symbols.union(*(end.symbols for end in (self.lower, self.upper) if end is not None))

    def substitute(self, values: Mapping[str, IntLike]) -> Bound:
        lower = None if self.lower is None else self.lower.substitute(values)
        upper = None if self.upper is None else self.upper.substitute(values)
        return Bound(self.form.substitute(values), lower, upper)

    def __str__(self) -> str:
        lower = "" if self.lower is None else f"{self.lower} <= "
        upper = "" if self.upper is None else f" < {self.upper}"
        return f"{lower}{self.form}{upper}"


@dataclass(frozen=True)
class Axis:
    """A dimension that values vary over.

    `program` axes are points of the grid, `loop` axes count iterations in order, `tile` axes are lanes. `extent` may
    depend on program axes (a causal loop). `bounds` say which lanes of a tile axis are valid: a value that varies over
    the axis means something only there.
    """

    name: str
    kind: AxisKind
    extent: Expr
    bounds: tuple[Bound, ...] = ()


@dataclass(frozen=True)
class Integer:
    """An integer that a `let` names while a program runs, so that extents, bounds and forms may mention it.

    `axes` are the program and loop axes that it varies over. It is never negative.
    """

    name: str
    axes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Buffer:
    """A tensor argument: row-major, `shape` in elements."""

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    role: Role = "in"


@dataclass(frozen=True)
class Scalar:
    """A number passed by value."""

    name: str
    dtype: DType


@dataclass(frozen=True)
class Size:
    """A dimension's size: read off the tensors' shapes, passed as an integer, or computed from other sizes."""

    name: str
    value: Expr | None = None


@dataclass(frozen=True)
class TileParameter:
    """A tile size that a schedule may choose; the result does not depend on it beyond rounding."""

    name: str
    default: int


Comparison = Literal["==", "!=", "<", "<=", ">", ">="]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


@dataclass(frozen=True)
class Constraint:
    """What the kernel requires of its sizes."""

    left: Expr
    comparison: Comparison
    right: Expr
    location: Location | None = field(default=None, compare=False)

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return COMPARE[self.comparison](self.left.evaluate(sizes), self.right.evaluate(sizes))

    def __str__(self) -> str:
        return f"{self.left} {self.comparison} {self.right}"


@dataclass(frozen=True)
class Value:
    """An SSA value. `axes` are the names of the axes it varies over, in the kernel's order; none means uniform."""

    name: str
    dtype: DType
    axes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"%{self.name}"


class Text(str):
    """An attribute that is free text, printed in quotes; other strings are names."""


@dataclass(frozen=True)
class Op:
    """One operation: `name` is a row of `kdsl.ir.ops.OPS`, which says what the rest must be.

    `statement` is the author's, kept only where a debugger asks the front end for it.
    """

    name: str
    operands: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    regions: tuple[Region, ...] = ()
    location: Location | None = field(default=None, compare=False)
    statement: Statement | None = field(default=None, compare=False, repr=False)

    @property
    def result(self) -> Value:
        (value,) = self.results
        return value


@dataclass(frozen=True)
class Region:
    """A list of ops with arguments; a region that yields ends with a `yield` op."""

    arguments: tuple[Value, ...] = ()
    ops: tuple[Op, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A kernel. Unbound, its extents are symbolic; `bind` gives one with integers throughout."""

    name: str
    parameters: tuple[Buffer | Scalar, ...]
    sizes: tuple[Size, ...]
    tiles: tuple[TileParameter, ...]
    constraints: tuple[Constraint, ...]
    axes: tuple[Axis, ...]
    body: Region
    location: Location | None = field(default=None, compare=False)
    doc: str = field(default="", compare=False)
    integers: tuple[Integer, ...] = ()

    def axis(self, name: str) -> Axis:
        """The axis of that name. Raises KeyError."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise KeyError(name)

    def buffer(self, name: str) -> Buffer:
        """The tensor argument of that name. Raises KeyError."""
        for parameter in self.parameters:
            if isinstance(parameter, Buffer) and parameter.name == name:
                return parameter
        raise KeyError(name)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return tuple(parameter for parameter in self.parameters if isinstance(parameter, Buffer))

    @property
    def written(self) -> tuple[Buffer, ...]:
        """The buffers that calls return, in argument order."""
        return tuple(buffer for buffer in self.buffers if buffer.role != "in")

    @property
    def program_axes(self) -> tuple[Axis, ...]:
        """The grid, outermost first."""
        return tuple(axis for axis in self.axes if axis.kind == "program")

    def order(self, names: Iterable[str]) -> tuple[str, ...]:
        """Axis names without repeats, in the kernel's order; an integer's name stands for the axes it varies over."""
        wanted = set(names)
        for integer in self.integers:
            if integer.name in wanted:
                wanted.update(integer.axes)
        return tuple(axis.name for axis in self.axes if axis.name in wanted)

    def with_validity(self, names: Iterable[str]) -> tuple[str, ...]:
        """The axes, and those on which the validity of their lanes depends."""
        found: set[str] = set()
        left = list(names)
        while left:
            name = left.pop()
            if name in found:
                continue
            found.add(name)
            left += [other for bound in self.axis(name).bounds for other in self.order(bound.symbols)]
        return self.order(found)

    def decided_along(self, axis: str, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the axes whose lanes may be valid at one point of `axis` and not at another: itself, too."""
        return tuple(name for name in names if axis in self.with_validity([name]))

    def tile_axes(self, value: Value) -> tuple[str, ...]:
        """The tile axes of a value: its shape within one program and iteration."""
        return tuple(name for name in value.axes if self.axis(name).kind == "tile")


def walk(region: Region) -> Iterator[Op]:
    """Every op of a region in order, an op before those in its regions."""
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from walk(inner)


def map_expressions(kernel: Kernel, change: Callable[[Expr], Expr]) -> Kernel:
    """The kernel with every integer expression replaced: extents, bounds, index forms, shapes, constraints."""

    def bound(old: Bound) -> Bound:
        return Bound(
            change(old.form),
            None if old.lower is None else change(old.lower),
            None if old.upper is None else change(old.upper),
        )

    def attribute(old: Any) -> Any:
        if isinstance(old, Expr):
            return change(old)
        if isinstance(old, Bound):
            return bound(old)
        return tuple(attribute(item) for item in old) if isinstance(old, tuple) else old

    def region(old: Region) -> Region:
        return replace(old, ops=tuple(op(item) for item in old.ops))

    def op(old: Op) -> Op:
        attributes = {key: attribute(item) for key, item in old.attributes.items()}
        return replace(old, attributes=attributes, regions=tuple(region(inner) for inner in old.regions))

    def parameter(old: Buffer | Scalar) -> Buffer | Scalar:
        return replace(old, shape=tuple(change(size) for size in old.shape)) if isinstance(old, Buffer) else old

    def axis(old: Axis) -> Axis:
        return replace(old, extent=change(old.extent), bounds=tuple(bound(item) for item in old.bounds))

    return replace(
        kernel,
        parameters=tuple(parameter(old) for old in kernel.parameters),
        sizes=tuple(Size(size.name, None if size.value is None else change(size.value)) for size in kernel.sizes),
        constraints=tuple(replace(old, left=change(old.left), right=change(old.right)) for old in kernel.constraints),
        axes=tuple(axis(old) for old in kernel.axes),
        body=region(kernel.body),
    )


def size_values(kernel: Kernel, given: Mapping[str, int]) -> dict[str, int]:
    """All sizes, the computed ones from the given ones. Raises KdslError K0501 for one that is missing."""
    values: dict[str, int] = {}
    for size in kernel.sizes:
        if size.value is not None:
            try:
                values[size.name] = int(size.value.evaluate({**given, **values}))
            except ZeroDivisionError:
                raise fail(
                    "K0504", kernel.location, name=size.name, value=f"{size.value} (a division by zero)"
                ) from None
        elif size.name in given:
            values[size.name] = int(given[size.name])
        else:
            raise fail("K0501", kernel.location, kernel=kernel.name, size=size.name)
    return values


def bind(kernel: Kernel, sizes: Mapping[str, int], tiles: Mapping[str, int] | None = None) -> Kernel:
    """The kernel for given sizes and tile sizes (default ones where not given): integers throughout.

    Raises KdslError: K0501 a size is missing, K0502 a constraint does not hold, K0503 a name is no size or tile
    parameter, K0504 a size is negative or a tile size is not positive.
    """
    known = {size.name for size in kernel.sizes if size.value is None}, {tile.name for tile in kernel.tiles}
    for name in [*(sizes.keys() - known[0]), *((tiles or {}).keys() - known[1])]:
        raise fail("K0503", kernel.location, kernel=kernel.name, name=name)
    values = size_values(kernel, sizes)
    tile_sizes = {tile.name: int((tiles or {}).get(tile.name, tile.default)) for tile in kernel.tiles}
    for name, value in [*values.items(), *tile_sizes.items()]:
        if value < (1 if name in tile_sizes else 0):
            raise fail("K0504", kernel.location, name=name, value=value)
    for constraint in kernel.constraints:
        if not constraint.holds(values):
            shown = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise fail("K0502", constraint.location, constraint=constraint, sizes=shown)
    environment = {**values, **tile_sizes}
    gone = False

    def substitute(expr: Expr) -> Expr:
        nonlocal gone
        result = expr.substitute(environment)
        gone = gone or result.symbols != expr.symbols - environment.keys()
        return result

    try:
        bound = replace(map_expressions(kernel, substitute), sizes=(), tiles=(), constraints=())
    except ZeroDivisionError as error:
        empty = ", ".join(name for name, value in values.items() if value == 0)
        raise fail("K0504", kernel.location, name=empty, value=f"0 ({error})") from None
    if not gone:
        return bound
    from kdsl.ir.rewrite import with_fewer_axes  # it knows the ops, which are made of what this file declares

    # N*m + n does not vary over m where N is 0.
    return with_fewer_axes(bound)


def whole(name: str, extent: IntLike) -> Axis:
    """A tile axis that covers a dimension exactly: every lane valid."""
    return Axis(name, "tile", wrap(extent))
