"""Mutators of places: which element an access touches, which tensor, which axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from kdsl.equivalence.mutation.changes import Change, InPlace, attribute, on_ops, put
from kdsl.ir.expr import Expr, symbol
from kdsl.ir.kernel import Kernel, Op, Value, walk


def _forms(kernel: Kernel) -> Iterator[tuple[Op, int, Expr]]:
    """Every index form, with its op and its place there."""
    for op in walk(kernel.body):
        for place, form in enumerate(_forms_of(op)):
            yield op, place, form


def _forms_of(op: Op) -> tuple[Expr, ...]:
    if op.name == "index":
        return (op.attributes["form"],)
    return tuple(op.attributes["index"]) if op.name in ("load", "store") else ()


def _with_form(kernel: Kernel, op: Op, place: int, form: Expr) -> Change:
    forms = _forms_of(op)
    what = f"index {form} in place of {forms[place]}"
    if op.name == "index":
        return Change(op, what, put(kernel, op, attribute(op, form=form)))
    changed = (*forms[:place], form, *forms[place + 1 :])
    return Change(op, f"{what} in dimension {place}", put(kernel, op, attribute(op, index=changed)))


def index_off_by_one(kernel: Kernel) -> Iterator[Change]:
    """An index is one too low or too high."""
    for op, place, form in _forms(kernel):
        for step in (-1, 1):
            yield _with_form(kernel, op, place, form + step)


def stride_wrong(kernel: Kernel) -> Iterator[Change]:
    """An index moves twice as far along an axis, or not at all."""
    for op, place, form in _forms(kernel):
        for name in kernel.order(form.symbols):
            yield _with_form(kernel, op, place, form.substitute({name: 2 * symbol(name)}))
            yield _with_form(kernel, op, place, form.substitute({name: 0}))


@on_ops("load", "store")
def index_transposed(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """Two dimensions of an access are swapped."""
    for one, other in combinations(range(len(op.attributes["index"])), 2):
        index = list(op.attributes["index"])
        index[one], index[other] = index[other], index[one]
        yield f"dimensions {one} and {other} swapped", attribute(op, index=tuple(index))


def race_planted(kernel: Kernel) -> Iterator[Change]:
    """Two lanes or two programs store to one element."""
    for op, place, form in _forms(kernel):
        if op.name == "store":
            for name in kernel.order(form.symbols):
                yield _with_form(kernel, op, place, form.substitute({name: symbol(name) // 2}))


@on_ops("atomic")
def atomic_torn(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """An atomic is a load, an op and a store."""
    name = {"add": "add", "maximum": "maximum", "minimum": "minimum"}.get(op.attributes["combine"])
    if name is None or op.results:
        return
    value, *places = op.operands
    access = {key: kept for key, kept in op.attributes.items() if key != "combine"}
    old, new = (Value(f"mutant_{each}", value.dtype, value.axes) for each in ("old", "new"))
    yield (
        f"load, {name}, store",
        [
            Op("load_at", tuple(places), (old,), access, location=op.location),
            Op(name, (old, value), (new,), location=op.location),
            replace(op, name="store_at", operands=(new, *places), attributes=access),
        ],
    )


@on_ops("load")
def wrong_tensor(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """Another tensor of the same dtype and rank is read."""
    own = kernel.buffer(op.attributes["buffer"])
    for other in kernel.buffers:
        alike = (other.role, other.dtype, len(other.shape)) == ("in", own.dtype, len(own.shape))
        if alike and other.name != own.name:
            yield f"reads {other.name}", attribute(op, buffer=other.name)


@on_ops("reduce", "dot", "scan", "sort", "topk", "gather", "histogram", "flip", "reduce_by", "scan_by")
def wrong_axis(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """Lanes are combined along another axis."""
    for name in kernel.tile_axes(op.operands[0]):
        if name != op.attributes["axis"]:
            yield f"along {name} in place of {op.attributes['axis']}", attribute(op, axis=name)
