"""How error bounds pass through ops that move lanes along axes.

Where no rule is known, a result is undecided (infinite) as soon as an operand is not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kdsl.ir.dtypes import F32, F64
from kdsl.ir.kernel import Op, Value
from kdsl.ir.meaning import Array
from kdsl.ir.meaning_tiles import back, lanes_of
from kdsl.runtime.target import addition_of

if TYPE_CHECKING:
    from kdsl.equivalence.bounds import BoundedProgram

Rule = Callable[["BoundedProgram", Op, Sequence[Array]], list[Array]]


def blank(op: Op, error: float) -> list[Array]:
    """One error for all lanes of all results."""
    return [np.full([1] * len(value.axes), error) for value in op.results]


def exact_or_lost(program: BoundedProgram, op: Op, values: Sequence[Value]) -> list[Array]:
    """For each result 0 where the values are exact, and infinity where one is not."""
    return [np.where(program.inexact(values, result.axes), np.inf, 0.0) for result in op.results]


def _unknown(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """Exact of exact operands; anything at all of others."""
    return exact_or_lost(program, op, op.operands)


def _moved(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """The errors go where their lanes go."""
    return program.on_all(op, [program.error(value) for value in op.operands])


def _gather(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    source, index = op.operands
    (error,) = program.on_all(op, [program.error(source), program.values[index.name]])
    return [error + exact_or_lost(program, op, [index])[0]]


# -- orders --------------------------------------------------------------------------------------------------------


def _sort(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """What is carried along is undecided where its key may change places with another."""
    keys, *others = op.operands
    axis, axes = op.attributes["axis"], op.results[0].axes
    own = replace(keys, dtype=F64)
    carrying = replace(op, operands=(*op.operands, own), results=(*op.results, replace(op.results[0], dtype=F64)))
    errors = [program.error(value) for value in (*others, keys)]
    _, *carried, own_error = program.on_all(carrying, [program.values[keys.name], *errors], keep=1)
    place = axes.index(axis)
    valid = np.moveaxis(program.valid(program.kernel.decided_along(axis, axes), axes), place, -1)
    values, error = (np.moveaxis(array.astype(np.float64), place, -1) for array in (results[0], own_error))
    valid = np.broadcast_to(valid, values.shape)
    swapped = _may_swap(values, error, valid, bool(op.attributes.get("descending")))
    lost = np.where(back(swapped, axis, axes), np.inf, 0.0)
    alone = replace(op, operands=(keys,), results=op.results[:1])
    return [_ranked(program, alone, results[0]), *(each + lost for each in carried)]


def _topk(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """A lane number is undecided where another lane may take its place."""
    (source,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
    if not program.error(source).any():
        return blank(op, 0.0)
    axes = program.kernel.order({axis, *(name for name in op.results[1].axes if name != target)})
    both = [program.values[source.name], program.error(source)]
    (lanes, error), valid = lanes_of(program, replace(op, operands=(source, source)), both, axis, axes)
    lanes, place = lanes.astype(np.float64), op.results[1].axes.index(target)
    chosen = np.clip(np.moveaxis(results[1], place, -1), 0, max(lanes.shape[-1] - 1, 0))
    left_out = np.where(valid, lanes + error, -np.inf)
    np.put_along_axis(left_out, chosen, -np.inf, axis=-1)
    taken = [np.take_along_axis(array, chosen, axis=-1) for array in (lanes, error, valid)]
    following = left_out.max(axis=-1, keepdims=True, initial=-np.inf)
    swapped = _may_swap(taken[0], taken[1], taken[2], True, -following)
    return [_ranked(program, op, results[0]), np.where(np.moveaxis(swapped, -1, place), np.inf, 0.0)]


def _ranked(program: BoundedProgram, op: Op, result: Array) -> Array:
    """The k-th of some numbers grows with each of them, so it lies between those of the ends of their intervals."""
    source, wide = op.operands[0], result.astype(np.float64)
    value, error = program.values[source.name].astype(np.float64), program.error(source)
    low, high = (program.on_all(op, [end])[0] for end in (value - error, value + error))
    bound = np.where(low == wide, 0.0, wide - low)
    bound = np.maximum(bound, np.where(high == wide, 0.0, high - wide))
    return np.where(np.isnan(bound), np.inf if error.any() else 0.0, bound)


def _may_swap(values: Array, error: Array, valid: Array, descending: bool, following: Array | None = None) -> Array:
    """Which of the sorted numbers along the last dimension may change places: their intervals meet. Exact ones do not,
    for ties are broken by lane. `following` is the low end of what comes after them."""
    values = -values if descending else values
    reach = np.where(error > 0, error + np.spacing(np.abs(values)), 0.0)
    low, high = np.where(valid, values - reach, np.inf), np.where(valid, values + reach, -np.inf)
    last = np.full_like(low[..., :1], np.inf) if following is None else np.broadcast_to(following, low[..., :1].shape)
    before = np.concatenate([np.full_like(high[..., :1], -np.inf), high[..., :-1]], axis=-1)
    after = np.concatenate([low[..., 1:], last], axis=-1)
    before = np.maximum.accumulate(before, axis=-1)
    after = np.minimum.accumulate(after[..., ::-1], axis=-1)[..., ::-1]
    return valid & ((before > low) | (high > after))


# -- products ------------------------------------------------------------------------------------------------------


def _dot_scaled(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """As a dot of the scaled operands."""
    left, left_scale, right, right_scale = op.operands
    sizes = [np.abs(program.values[value.name].astype(np.float64)) for value in (left, right)]
    reach = [size + program.error(value) for size, value in zip(sizes, (left, right), strict=True)]
    scales = [program.values[value.name] for value in (left_scale, right_scale)]
    (size,) = program.on_all(op, [sizes[0], scales[0], sizes[1], scales[1]])
    (most,) = program.on_all(op, [reach[0], scales[0], reach[1], scales[1]])
    # Operands wider than 8 bits may be rounded to bf16 where they are multiplied.
    unit = 2.0**-8 if max(left.dtype.bits, right.dtype.bits) > 8 else 2.0**-23
    terms = program.terms(op, op.result.axes) + 2
    # The oracle's own sum is in f64, of f32 products.
    rounded = program.model.summed(addition_of(program.model.accuracy, op), size, most, terms, F32) + 4 * unit * most
    bound = most - size + program.own(op, rounded)
    lost = exact_or_lost(program, op, (left_scale, right_scale))[0]
    return [np.where(np.isfinite(bound), bound, np.inf) + lost]


RULES: dict[str, Rule] = {
    **dict.fromkeys(("flip", "concat", "join", "split", "relabel"), _moved),
    **dict.fromkeys(("histogram", "philox", "bitcast", "poison", "let", "assert", "print", "breakpoint"), _unknown),
    "gather": _gather,
    "sort": _sort,
    "topk": _topk,
    "dot_scaled": _dot_scaled,
}
