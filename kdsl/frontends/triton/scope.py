"""What the names of a TTIR function mean in the kernel: values along axes, and pointers as buffer and offset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kdsl.frontends.triton.axes import DimensionClasses, Node, shape
from kdsl.frontends.triton.module import Block, Function, Operation
from kdsl.frontends.triton.module import Value as Name
from kdsl.frontends.triton.signature import empty_kernel, parameter_name, plain, pointee, refusal
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import I32, I64, DType
from kdsl.ir.expr import Expr, wrap
from kdsl.ir.kernel import Axis, Value


@dataclass(frozen=True)
class Pointer:
    """An address: an element of a buffer. No offset is element 0."""

    buffer: str
    offset: Value | None = None


Meaning = Value | Pointer


class Scope:
    """The meanings of names so far, and the builder. `read` reads the ops of a block, those of regions too."""

    def __init__(self, function: Function, read: Callable[[Scope, Block], None]) -> None:
        self.builder = Builder(empty_kernel(function))
        self.read = read
        self.classes = DimensionClasses(function)
        self.meanings: dict[Name, Meaning] = {}
        self.numbers: dict[Name, object] = {}  # constants
        self.axis_names: dict[Node, str] = {}
        kernel = self.builder.kernel
        self.used = {size.name for size in kernel.sizes} | {axis.name for axis in kernel.axes}
        for argument in function.arguments:
            name = parameter_name(argument)
            if pointee(argument.type) is not None:
                self.meanings[argument] = Pointer(name)
            else:
                self.meanings[argument] = self.builder.emit("argument", attributes={"scalar": name}, hint=name)

    def fresh(self, hint: str) -> str:
        name, count = hint, 0
        while name in self.used:
            count += 1
            name = f"{hint}_{count}"
        self.used.add(name)
        return name

    def axis(self, value: Name, dimension: int) -> str | None:
        """The axis of a tile's dimension; None for one of a single lane."""
        extent = shape(value)[dimension]
        if extent == 1:
            return None
        node = self.classes.find(value, dimension)
        if node not in self.axis_names:
            self.axis_names[node] = self.new_axis(plain(value.title or "lane"), extent)
        return self.axis_names[node]

    def new_axis(self, hint: str, extent: int) -> str:
        return self.builder.add_axis(Axis(self.fresh(hint), "tile", wrap(extent))).name

    def axes(self, value: Name) -> list[str | None]:
        return [self.axis(value, dimension) for dimension in range(len(shape(value)))]

    def align(self, value: Value, sources: Sequence[str | None], targets: Sequence[str | None]) -> Value:
        """The value with the axes `sources` as `targets`, where it varies over them."""
        moves = {a: b for a, b in zip(sources, targets, strict=True) if a in value.axes and b is not None and a != b}
        while moves:
            free = [a for a, b in moves.items() if b not in value.axes]
            source = free[0] if free else next(iter(moves))
            target = moves.pop(source)
            assert source is not None
            if not free:  # a cycle, as in a tile plus its own transpose: one axis steps aside
                extent = self.builder.kernel.axis(source).extent.constant
                assert extent is not None
                aside = self.new_axis("lane", extent)
                moves[aside], target = target, aside
            value = self.builder.emit("relabel", [value], {"source": source, "target": target})
        return value

    def operand(self, name: Name, target: Name | None = None) -> Value:
        """What a name means, a number or a tile of them, along the axes of the target where that is a tile."""
        meaning = self.meanings[name]
        assert isinstance(meaning, Value)
        if target is None or not shape(name) or len(shape(name)) != len(shape(target)):
            return meaning
        return self.align(meaning, self.axes(name), self.axes(target))

    def spread(self, value: Value, axis: str) -> Value:
        """The value, varying over an axis."""
        return value if axis in value.axes else self.builder.emit("broadcast", [value], {"axes": (axis,)})

    def define(self, name: Name, value: Value) -> None:
        self.meanings[name] = self.builder.rename_last(value, plain(name.title)) if name.title else value

    def index(self, form: Expr, dtype: DType = I32) -> Value:
        return self.builder.emit("index", attributes={"form": form}, dtype=dtype)

    def pointer(self, name: Name, target: Name, operation: Operation) -> Pointer:
        """What a pointer means, along the axes of the target."""
        meaning = self.meanings[name]
        if not isinstance(meaning, Pointer):
            raise refusal(f"{operation.name} of {name.type}", operation)
        if meaning.offset is None or len(shape(name)) != len(shape(target)):
            return meaning
        return replace(meaning, offset=self.align(meaning.offset, self.axes(name), self.axes(target)))

    def wide(self, value: Value) -> Value:
        """Addresses have 64 bits."""
        return value if value.dtype == I64 else self.builder.emit("cast", [value], dtype=I64)

    def offset(self, pointer: Pointer) -> Value:
        if pointer.offset is not None:
            return pointer.offset
        return self.builder.emit("constant", attributes={"value": 0}, dtype=I64)
