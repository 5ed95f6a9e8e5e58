"""How error bounds pass through ops that move lanes, ops with regions, and memory access at computed places.

Where no rule is known, a result is undecided (infinite) as soon as an operand is not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kdsl.equivalence import rounding
from kdsl.ir.dtypes import F64
from kdsl.ir.kernel import Op, Region, Value, walk
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS

if TYPE_CHECKING:
    from kdsl.equivalence.bounds import BoundedProgram


def _blank(op: Op, error: float) -> list[Array]:
    return [np.full([1] * len(value.axes), error) for value in op.results]


def _inexact(program: BoundedProgram, operands: Sequence[Value]) -> bool:
    return any(program.error(value).any() for value in operands)


def _unknown(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """Exact of exact operands; anything at all of others."""
    return _blank(op, np.inf if _inexact(program, op.operands) else 0.0)


def _moved(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """The errors go where their lanes go."""
    return program.on_all(op, [program.error(value) for value in op.operands])


def _gather(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    source, index = op.operands
    if program.error(index).any():
        return _blank(op, np.inf)
    return program.on_all(op, [program.error(source), program.values[index.name]])


def _sort(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """Of sorted numbers none moves further than the one that moves most; what is carried along may go anywhere."""
    keys, *others = op.operands
    worst = float(np.max(program.error(keys), initial=0.0))
    if worst == 0:
        return program.on_all(op, [program.values[keys.name], *map(program.error, others)], keep=1)
    carried = [np.full([1] * len(value.axes), np.inf) for value in op.results[1:]]
    return [np.full([1] * len(op.results[0].axes), worst), *carried]


def _topk(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    worst = float(np.max(program.error(op.operands[0]), initial=0.0))
    shape = [1] * len(op.results[0].axes)
    return [np.full(shape, worst), np.full(shape, np.inf if worst else 0.0)]


def _dot_scaled(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """As a dot of the scaled operands: gamma_n of the sum of the products' sizes, on both sides."""
    left, left_scale, right, right_scale = op.operands
    if _inexact(program, (left_scale, right_scale)):
        return _blank(op, np.inf)
    sizes = [np.abs(program.values[value.name].astype(np.float64)) for value in (left, right)]
    reach = [size + program.error(value) for size, value in zip(sizes, (left, right), strict=True)]
    scales = [program.values[value.name] for value in (left_scale, right_scale)]
    (size,) = program.on_all(op, [sizes[0], scales[0], sizes[1], scales[1]])
    (most,) = program.on_all(op, [reach[0], scales[0], reach[1], scales[1]])
    # Operands wider than 8 bits may be rounded to bf16 where they are multiplied.
    unit = 2.0**-8 if max(left.dtype.bits, right.dtype.bits) > 8 else 2.0**-23
    terms = np.asarray(float(program.size(op.attributes["axis"]) + 2))
    most, size = most.astype(np.float64), size.astype(np.float64)
    bound = most - size + 2 * rounding.gamma(terms, 2.0**-23) * most + 4 * unit * most
    return [np.where(np.isfinite(bound), bound, np.inf)]


# -- combines by a region ------------------------------------------------------------------------------------------

_PICKS = frozenset({"maximum", "minimum", "yield"})
_GROWS = frozenset({"add", "mul", "yield"})


def _by(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """Integers wrap, whatever the grouping. A float combine of max and min alone moves by no more than the lane that
    moves most; one of sums and products alone is a polynomial of the lanes without a minus sign, each of whose terms
    is rounded at most once for each op of each combine. Others are undecided unless they compute no number at all.
    """
    (region,) = op.regions
    names = {inner.name for inner in region.ops}
    computed = [value for inner in region.ops for value in inner.results if value.dtype.is_float]
    picks = all(value.dtype.is_float for value in op.operands) and names <= _PICKS
    if picks:
        worst = max(float(np.max(program.error(value), initial=0.0)) for value in op.operands)
        return _blank(op, worst)
    if all(value.dtype.is_float for value in op.operands) and names <= _GROWS and _once(region):
        return _polynomial(program, op, region)
    chosen = names <= _PICKS | {"select", "constant", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not"}
    exact = not _inexact(program, op.operands) and (chosen or not computed)
    return _blank(op, 0.0 if exact else np.inf)


def _once(region: Region) -> bool:
    """Whether no product multiplies two values of one lane, and nothing comes from outside."""
    of = {argument.name: frozenset([argument.name]) for argument in region.arguments}
    for op in region.ops:
        if any(value.name not in of for value in op.operands):
            return False
        sources = [of[value.name] for value in op.operands]
        if op.name == "mul" and sources[0] & sources[1]:
            return False
        of |= {value.name: frozenset().union(*sources) for value in op.results}
    return True


def _polynomial(program: BoundedProgram, op: Op, region: Region) -> list[Array]:
    sizes = [np.abs(program.values[value.name].astype(np.float64)) for value in op.operands]
    reach = [size + program.error(value) for size, value in zip(sizes, op.operands, strict=True)]
    size, most = program.on_all(op, sizes), program.on_all(op, reach)
    roundings = np.asarray(float(program.size(op.attributes["axis"]) * (len(region.ops) - 1)))
    bounds = []
    for value, small, large in zip(op.results, size, most, strict=True):
        unit = 2.0 ** -(value.dtype.mantissa + 1)
        bound = large - small + 4 * rounding.gamma(roundings, unit) * large
        bounds.append(np.where(np.isfinite(bound), bound, np.inf))
    return bounds


# -- memory --------------------------------------------------------------------------------------------------------


def _load_at(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    if _inexact(program, op.operands):
        return _blank(op, np.inf)
    if op.attributes["buffer"] not in program.error_memory:
        return _blank(op, 0.0)
    if "fill" in op.attributes:
        op = replace(op, attributes={**op.attributes, "fill": 0.0})
    with program.on_errors():
        return program.on_all(op, [program.values[value.name] for value in op.operands])


def _store_at(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    value, *places = op.operands
    if _inexact(program, places):
        spoil(program, [op])
        return []
    with program.on_errors():
        program.on_all(op, [program.error(value), *(program.values[place.name] for place in places)])
    return []


def _atomic(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """What an element held before depends on who came first; what it ends as does not, where nothing is rounded."""
    buffer = op.attributes["buffer"]
    memory, dtype = program.memory[buffer], program.kernel.buffer(buffer).dtype
    exact = not _inexact(program, op.operands) and op.attributes.get("combine") not in (None, "exchange")
    if exact and dtype.is_float and op.attributes["combine"] == "add":
        exact = _adds_exactly(program, op, memory)
    if not exact:
        spoil(program, [op])
    return _blank(op, np.inf)


def _adds_exactly(program: BoundedProgram, op: Op, memory: Array) -> bool:
    """Whether all numbers lie on one grid and are small enough that no order of adding them rounds."""
    given = [array.astype(np.float64) for array in (program.values[op.operands[0].name], memory)]
    finite = [np.where(np.isfinite(array), np.abs(array), 0.0) for array in given]
    axes = {name for value in op.operands for name in program.kernel.tile_axes(value)}
    repeats = np.prod([program.size(name) for name in axes], dtype=np.float64) / max(1, finite[0].size)
    total = float(np.sum(finite[0])) * repeats + float(np.max(finite[1], initial=0.0))
    steps = [step for step in map(rounding.grid, given) if step is not None]
    # A margin for what other programs add.
    return len(steps) == 2 and bool(rounding.sums_exactly(np.asarray(64 * total), min(steps), op.operands[0].dtype))


def spoil(program: BoundedProgram, ops: Sequence[Op]) -> None:
    """What these ops, or those in their regions, may write is undecided from here on."""
    for op in walk(Region((), tuple(ops))):
        if OPS[op.name].effect in ("write", "atomic") and op.attributes["buffer"] in program.error_memory:
            program.error_memory[op.attributes["buffer"]][...] = np.inf


# -- control -------------------------------------------------------------------------------------------------------


def doubled(op: Op) -> Op:
    """An `if`, `for` or `while` whose regions carry the errors beside the values; a test yields its condition alone."""
    regions = []
    for place, region in enumerate(op.regions):
        *ops, final = region.ops
        if not (op.name == "while" and place == 0):
            final = replace(final, operands=_with_errors(final.operands))
        regions.append(Region(_with_errors(region.arguments), (*ops, final)))
    operands = op.operands if op.name == "if" else _with_errors(op.operands)
    return replace(op, operands=operands, results=_with_errors(op.results), regions=tuple(regions))


def error_of(value: Value) -> Value:
    """The value that holds a value's errors."""
    return replace(value, name=f"error of {value.name}", dtype=F64)


def _with_errors(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return (*values, *map(error_of, values))


Rule = Callable[["BoundedProgram", Op, Sequence[Array]], list[Array]]

RULES: dict[str, Rule] = {
    **dict.fromkeys(("flip", "concat", "join", "split", "relabel"), _moved),
    **dict.fromkeys(("histogram", "philox", "bitcast", "poison", "let", "assert", "print"), _unknown),
    **dict.fromkeys(("reduce_by", "scan_by"), _by),
    **dict.fromkeys(("atomic", "atomic_cas"), _atomic),
    "gather": _gather,
    "sort": _sort,
    "topk": _topk,
    "dot_scaled": _dot_scaled,
    "load_at": _load_at,
    "store_at": _store_at,
}
