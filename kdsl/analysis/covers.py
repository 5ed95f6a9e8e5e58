"""covers: every element of an output is written by some program.

Proven for one store at a time, from its index forms. The axes of a dimension, by growing coefficient, fill a run from
the start without a gap: the first has coefficient 1, and each next one steps no further than the run so far reaches.
The run must reach the end of the dimension, each axis may serve one dimension only, and the store's bounds may keep
out nothing but what lies past the end. `BM*m_block + m < M` with m < BM does, where there are cdiv(M, BM) programs.
What is not proven is counted, if the kernel is bound and small enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdsl.analysis.accesses import Access, Answer, accesses, touched
from kdsl.analysis.ranges import never_negative, never_negative_if
from kdsl.analysis.validity import slacks
from kdsl.ir.expr import Expr, function, symbol, wrap
from kdsl.ir.kernel import Bound, Kernel
from kdsl.ir.type_rules import form_axes


def covers(kernel: Kernel, buffer: str) -> Answer:
    """Whether every element of the buffer is written. `yes` holds for all sizes; `no` names an element that is not."""
    stores = [access for access in accesses(kernel) if access.buffer == buffer and access.writes]
    if any(access.certain and access.index is not None and _fills(kernel, access) for access in stores):
        return Answer("yes", f"a store fills {buffer}")
    return _count(kernel, buffer, stores)


def _fills(kernel: Kernel, access: Access) -> bool:
    """Whether the store provably writes the whole buffer."""
    shape, index = kernel.buffer(access.buffer).shape, access.index or ()
    served: set[str] = set()
    for form, size in zip(index, shape, strict=True):
        axes = form_axes(kernel, [form])
        if served & set(axes) or not _reaches(kernel, access, form, axes, size):
            return False
        served |= set(axes)
    # An axis that no form mentions must have a point for the store to happen at all.
    extents = [_extent(kernel, access, name) for name in access.axes if name not in served]
    if not all(extent is not None and never_negative(kernel, extent - 1) for extent in extents):
        return False
    inside = [end for form, size in zip(index, shape, strict=True) for end in (form, size - 1 - form)]
    bounds = [bound for bound in access.bounds if _own_limit(kernel, bound) is None]
    scales = {wrap(1), *(factor for form in index for name in served if (factor := form.coefficient(name)) is not None)}
    # For a factor c >= 0, an integer w is at least zero where c*w + c - 1 is.
    return all(
        any(
            never_negative_if(kernel, scale * wanted + scale - 1, inside)
            for scale in scales
            if never_negative(kernel, scale)
        )
        for bound in bounds
        for wanted in slacks(bound)
    )


def _reaches(kernel: Kernel, access: Access, form: Expr, axes: Sequence[str], size: Expr) -> bool:
    """Whether the form takes every value from 0 to size - 1 (and maybe others past it)."""
    left = {name: form.coefficient(name) for name in axes}
    if form.without(axes) != wrap(0) or any(factor is None or form_axes(kernel, [factor]) for factor in left.values()):
        return False
    run = wrap(1)  # the form so far takes every value from 0 to run - 1
    while left:
        for name, factor in left.items():
            assert factor is not None
            extent = _extent(kernel, access, name)
            if extent is not None and never_negative(kernel, run - factor) and never_negative(kernel, factor):
                run = factor * extent
                del left[name]
                break
        else:
            return False
    return never_negative(kernel, run - size)


def _extent(kernel: Kernel, access: Access, name: str) -> Expr | None:
    """How many points of the axis the store happens at, counted from 0; None if that varies."""
    extent = kernel.axis(name).extent
    own = [_own_limit(kernel, bound) for bound in access.bounds]
    limits = [limit for axis, limit in filter(None, own) if axis == name]
    return None if form_axes(kernel, [extent]) else function("min", extent, *limits)


def _own_limit(kernel: Kernel, bound: Bound) -> tuple[str, Expr] | None:
    """The axis and the limit of a bound `axis < limit`."""
    (name, *others) = bound.form.symbols or {""}
    if bound.upper is None or bound.lower not in (None, wrap(0)) or form_axes(kernel, [bound.upper]):
        return None
    known = not others and bound.form == symbol(name) and form_axes(kernel, [bound.form])
    return (name, bound.upper) if known else None


def _count(kernel: Kernel, buffer: str, stores: Sequence[Access]) -> Answer:
    """Ask every lane of a bound kernel."""
    shape = [size.constant for size in kernel.buffer(buffer).shape]
    if None in shape:
        return Answer("unknown", f"not proven from the index forms of the stores to {buffer}")
    written = np.zeros([size or 0 for size in shape], bool).reshape(-1)
    certain = written.copy()
    for access in stores:
        lanes = touched(kernel, access)
        if lanes is None:
            return Answer("unknown", f"{access.op.name} to {buffer}: places are computed, or too many", access.op)
        written[lanes[1]] = True
        if access.certain:
            certain[lanes[1]] = True
    if certain.all():
        return Answer("yes", f"counted the elements of {buffer}")
    if written.all():
        return Answer("unknown", f"whether all of {buffer} is written depends on a condition")
    place = np.unravel_index(int(np.argmin(written)), [size or 0 for size in shape])
    return Answer("no", f"{buffer}[{', '.join(str(int(index)) for index in place)}] is never written")
