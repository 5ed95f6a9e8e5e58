"""Which accesses are boxes that one slice reads or writes, and how far tensors must reach so that no slice is moved.

XLA moves a slice that would leave its array back inside, silently. So every tensor is padded once, before the loop, to
hold all slices that any program takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdsl.analysis.affine import Range, separable
from kdsl.ir.expr import Atom, Expr, Symbol, function, wrap
from kdsl.ir.kernel import Bound, Buffer, Kernel, Op, walk
from kdsl.ir.ops import OPS


@dataclass(frozen=True)
class Extent:
    """The indices that the padded tensor has in one dimension: at least low <= index < high. `low` is at most 0."""

    low: Expr
    high: Expr

    def needs_padding(self, size: Expr) -> bool:
        return (self.low, self.high) != (wrap(0), size)


def box(kernel: Kernel, op: Op) -> tuple[Range, ...] | None:
    """The access of a load or store as a box, or None where it is none: it is not separable, a stride is negative or
    symbolic, or the range of a start is not known."""
    ranges = separable(kernel, op)
    strides = [each.stride.constant for each in ranges or ()]
    if ranges is None or any(stride is None or stride < 1 for stride in strides):
        return None
    if op.name == "store" and any(stride != 1 for stride in strides):
        return None  # a slice would overwrite what lies between the lanes
    return ranges if all(_reach(kernel, each) for each in ranges) else None


def length(kernel: Kernel, dimension: Range) -> Expr:
    """How many elements the slice takes in this dimension."""
    return wrap(1) if dimension.axis is None else (kernel.axis(dimension.axis).extent - 1) * dimension.stride + 1


def _reach(kernel: Kernel, dimension: Range) -> tuple[Expr, Expr] | None:
    """The first index and one past the last that any program's slice takes, as forms of sizes and tile sizes."""
    low, high = _end(kernel, dimension.start, top=False), _end(kernel, dimension.start, top=True)
    return None if low is None or high is None else (low, high + length(kernel, dimension))


def extents(kernel: Kernel) -> dict[str, tuple[Extent, ...]]:
    """How far each tensor must reach, by name."""
    found: dict[str, list[list[tuple[Expr, Expr]]]] = {b.name: [[] for _ in b.shape] for b in kernel.buffers}
    for op in walk(kernel.body):
        if "buffer" not in op.attributes:
            continue
        dimensions = box(kernel, op) if op.name in ("load", "store") else None
        for place, reaches in enumerate(found[op.attributes["buffer"]]):
            # A gather needs an element to read for lanes that are out of bounds.
            reach = _reach(kernel, dimensions[place]) if dimensions is not None else (wrap(0), wrap(1))
            assert reach is not None, op
            reaches.append(reach)
    return {buffer.name: tuple(map(_extent, found[buffer.name], buffer.shape)) for buffer in kernel.buffers}


def _extent(reaches: Sequence[tuple[Expr, Expr]], size: Expr) -> Extent:
    """What holds all of the reaches. A tensor is never made smaller, so its own size need not be among them."""
    low = function("min", 0, *(low for low, _ in reaches))
    high = reaches[0][1] if reaches else size
    for _, other in reaches[1:]:
        high = _larger(high, other)
    return Extent(low, high)


def at_edge(buffer: Buffer, index: Sequence[Expr], bound: Bound) -> bool:
    """Whether the lanes that a bound keeps out are those that lie outside the tensor: in its padding."""
    sides = [(form, size) for form, size in zip(index, buffer.shape, strict=True)]
    lower, upper = bound.lower, bound.upper
    return (lower is None or any(bound.form - lower == form for form, _ in sides)) and (
        upper is None or any(bound.form - upper == form - size for form, size in sides)
    )


# -- ranges of forms -----------------------------------------------------------------------------------------------


def _end(kernel: Kernel, form: Expr, top: bool) -> Expr | None:
    """The largest (or smallest) value of a form over all programs and iterations, or None if that is not clear.

    Loops count as running at least once: their slices must fit even if they are never taken.
    """
    total = wrap(0)
    for monomial, coefficient in form.terms:
        product = wrap(coefficient)
        for atom in monomial:
            end = _atom_end(kernel, atom, top == (coefficient > 0))
            if end is None or (len(monomial) > 1 and not isinstance(atom, Symbol) and _varies(kernel, atom)):
                return None  # a product is largest where its factors are only if none of them is negative
            product = product * end
        total = total + product
    return total


def _varies(kernel: Kernel, atom: Atom) -> bool:
    symbols = Expr((((atom,), 1),)).symbols
    return bool(kernel.order(symbols)) or any(integer.name in symbols for integer in kernel.integers)


def _atom_end(kernel: Kernel, atom: Atom, top: bool) -> Expr | None:
    if not _varies(kernel, atom):
        return Expr((((atom,), 1),))
    if isinstance(atom, Symbol):
        if not top:
            return wrap(0)
        if any(integer.name == atom.name for integer in kernel.integers):
            return None
        axis = kernel.axis(atom.name)
        extent = _end(kernel, axis.extent, top=True)
        if extent is None:
            return None
        return (extent if axis.kind == "program" else _larger(extent, wrap(1))) - 1
    if atom.name == "mod":
        divisor = atom.arguments[1]
        return None if kernel.order(divisor.symbols) else divisor - 1 if top else wrap(0)
    if atom.name in ("cdiv", "floordiv") and kernel.order(atom.arguments[1].symbols):
        return None
    ends = [_end(kernel, argument, top) for argument in atom.arguments]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return None
    if atom.name == "min":
        known = [end for end in known if not any(_rounds_up(end, other) for other in known)]
    return function(atom.name, *known)


def _rounds_up(larger: Expr, smaller: Expr) -> bool:
    """Whether the first is b * cdiv(a, b) for the second, a: whole tiles over it."""
    for monomial, coefficient in larger.terms:
        for atom in monomial:
            if not isinstance(atom, Symbol) and atom.name == "cdiv" and atom.arguments[0] == smaller:
                return coefficient == 1 and larger == atom.arguments[1] * Expr((((atom,), 1),))
    return False


def _larger(left: Expr, right: Expr) -> Expr:
    """max, where whole tiles over a size are known to be no less than it."""
    if _rounds_up(left, right):
        return left
    return right if _rounds_up(right, left) else function("max", left, right)


def written_in(kernel: Kernel, ops: Sequence[Op]) -> tuple[str, ...]:
    """The tensors that ops, and those inside them, store to: in argument order."""
    stored = {
        inner.attributes["buffer"]
        for op in ops
        for inner in (op, *(deep for region in op.regions for deep in walk(region)))
        if OPS[inner.name].effect in ("write", "atomic")
    }
    return tuple(buffer.name for buffer in kernel.buffers if buffer.name in stored)
