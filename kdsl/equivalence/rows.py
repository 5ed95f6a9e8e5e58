"""Which dimensions of a kernel's tensors are rows: each row of the outputs comes from the same row of the inputs alone.

Then a permutation of the rows of the inputs permutes those of the outputs. It is derived from the index forms, for
kernels that are written so: one form over a program axis and perhaps its tile axis, such as `BM*m_block + m`, is the
index in all accesses that mention these axes, and nothing else looks at where a row is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kdsl.ir.expr import Expr, wrap
from kdsl.ir.kernel import Bound, Kernel, Op, walk
from kdsl.ir.type_rules import form_axes

_NAMES_LANES = frozenset({"broadcast", "poison"})  # ops whose attribute `axes` only says over what the result varies
_ORDERED = frozenset({"store_at", "atomic", "atomic_cas", "let"})


@dataclass(frozen=True)
class Rows:
    """The dimension of each tensor that has these rows, and how many there are."""

    dimensions: Mapping[str, int]
    count: int


def find_rows(kernel: Kernel) -> list[Rows]:
    """All rows that are seen in a bound kernel: sound, but not complete."""
    grid = {axis.name for axis in kernel.program_axes}
    forms = {
        form for op in walk(kernel.body) if op.name == "store" for form in op.attributes["index"] if form.symbols & grid
    }
    found = (_rows(kernel, form) for form in sorted(forms, key=str))
    return [rows for rows in found if rows is not None]


def _rows(kernel: Kernel, form: Expr) -> Rows | None:
    axes = frozenset(form_axes(kernel, [form]))
    dimensions: dict[str, int] = {}
    without: set[str] = set()
    twice = False  # whether a tensor has them in two dimensions
    for op in walk(kernel.body):
        if not _looks_away(kernel, op, axes):
            return None
        if op.name not in ("load", "store"):
            without |= {op.attributes["buffer"]} if "buffer" in op.attributes else set()
            continue
        buffer = op.attributes["buffer"]
        mentions = [place for place, index in enumerate(op.attributes["index"]) if index.symbols & axes]
        if not mentions:
            without.add(buffer)
        elif [op.attributes["index"][place] for place in mentions] != [form]:
            return None
        else:
            twice |= dimensions.setdefault(buffer, mentions[0]) != mentions[0]
    if twice or without & dimensions.keys() or any(buffer.name not in dimensions for buffer in kernel.written):
        return None
    counts = {int(kernel.buffer(name).shape[place].evaluate({})) for name, place in dimensions.items()}
    if len(counts) != 1 or not _covers(kernel, form, axes, *counts):
        return None
    return Rows(dimensions, *counts)


def _looks_away(kernel: Kernel, op: Op, axes: frozenset[str]) -> bool:
    """Whether an op does the same for each row: what it does to one hangs neither on its place nor on other rows."""
    if op.name in _ORDERED and any(axes.intersection(value.axes) for value in op.operands):
        return False
    for name, attribute in op.attributes.items():
        if name == "index" or (name == "axes" and op.name in _NAMES_LANES):
            continue
        if axes.intersection(_mentioned(attribute)):
            return False
    return True


def _mentioned(attribute: object) -> Iterator[str]:
    """The axes that an attribute may speak of."""
    if isinstance(attribute, Expr | Bound):
        yield from attribute.symbols
    elif isinstance(attribute, tuple):
        for part in attribute:
            yield from _mentioned(part)
    elif isinstance(attribute, str):
        yield attribute


def _covers(kernel: Kernel, form: Expr, axes: frozenset[str], count: int) -> bool:
    """Whether the axes are limited by the number of rows and by nothing else, and limit no others."""
    for axis in kernel.axes:
        if axis.name not in axes:
            if axes & axis.extent.symbols or any(axes & bound.symbols for bound in axis.bounds):
                return False
        elif any(bound.form != form or bound.lower is not None or bound.upper != wrap(count) for bound in axis.bounds):
            return False
    return True
