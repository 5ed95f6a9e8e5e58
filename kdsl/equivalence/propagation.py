"""How error bounds pass through each op: its error rule from the table, and what the op rounds itself.

`propagate` gives an error array for each result. The functions below are named for the ops they treat; every other op
is pointwise. All arithmetic here is in f64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kdsl.equivalence import accesses, lanes, rounding
from kdsl.ir.dtypes import BOOL, F32, F64, DType
from kdsl.ir.kernel import Op
from kdsl.ir.meaning import Array, convert
from kdsl.ir.ops import OPS
from kdsl.runtime.target import addition_of

if TYPE_CHECKING:
    from kdsl.equivalence.bounds import BoundedProgram

# Rounded results are numbers of their type already.
_UNROUNDED = frozenset({"maximum", "minimum", "abs", "neg", "floor", "ceil", "trunc", "round"})
_UNROUNDED |= frozenset({"maxnum", "minnum", "clamp", "copysign", "fmod"})
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
# The integer ops whose error rule holds for integers too; any other is undecided where an operand is.
_INTEGER_RULES = frozenset({"add", "sub", "mul", "maximum", "minimum", "abs", "neg"})
# Arms of a select that lie within this many errors of each other meet where the condition flips, as those of a relu do.
_MEETING = 64.0


def propagate(program: BoundedProgram, op: Op, results: Sequence[Array]) -> list[Array]:
    """The errors of an op's results, each of its value's rank."""
    for rules in (lanes.RULES, accesses.RULES):
        if op.name in rules:
            return rules[op.name](program, op, results)
    if not op.results:
        return []
    if op.name in _EXACT and not any(error.any() for error in program.errors(op)):
        return [_none(op)]
    rule = _RULES.get(op.name)
    if rule is None:
        rule = _logic if op.operands and op.operands[0].dtype == BOOL else _pointwise
    return [rule(program, op, results[0])]


def _none(op: Op) -> Array:
    return np.zeros([1] * len(op.result.axes))


# -- pointwise -----------------------------------------------------------------------------------------------------


def _pointwise(program: BoundedProgram, op: Op, result: Array) -> Array:
    if not op.operands:  # constants, arguments, indices
        return _none(op)
    values, errors, dtype = program.wide(op), program.errors(op), op.result.dtype
    wide = result.astype(np.float64)
    if not dtype.is_float:
        if op.name in _INTEGER_RULES:
            return OPS[op.name].error(values, errors, wide)
        return np.where(_sum(errors) > 0, np.inf, 0.0)
    certain = _sum(errors) == 0
    propagated = np.where(certain, 0.0, OPS[op.name].error(values, errors, wide))
    if op.name == "sqrt":  # NaN on one side of zero
        propagated = np.where((np.abs(values[0]) < errors[0]), np.inf, propagated)
    bound = propagated
    if op.name not in _UNROUNDED:
        bound = bound + program.own(op, _rounding(program, op, values, certain, wide, propagated))
    given = np.logical_or.reduce(np.broadcast_arrays(*(~np.isfinite(value) for value in values)))
    return _settled(bound, wide, np.isfinite(propagated) & (given | certain), dtype)


def _rounding(
    program: BoundedProgram, op: Op, values: list[Array], certain: Array, wide: Array, propagated: Array
) -> Array:
    """What the op rounds on the target and in the oracle; nothing where both compute an exact result."""
    dtype = op.result.dtype
    target, oracle = program.model.of(op.name, dtype)
    # A few units more, because the spacing is that of the exact result, which may lie across a power of two.
    size = np.abs(wide)
    if program.orders is not None and op.name in ("add", "sub"):
        size = np.abs(values[0]) + np.abs(values[1])
    magnitude = (size + propagated) * (1 + 2.0 ** (3 - dtype.mantissa))
    amount = (target.ulp + oracle.ulp) * rounding.ulp(magnitude, dtype) + target.absolute + oracle.absolute
    if target.ulp > 0.5 and op.name not in ("exp", "exp2"):
        return amount
    flushed = (wide != 0) & (np.abs(wide) < rounding.smallest_normal(dtype))
    is_exact = rounding.is_exact if program.orders is None else rounding.is_exact_in_any_order
    exact = certain & is_exact(op.name, values, wide, dtype)
    return np.where(exact, np.where(flushed, target.absolute, 0.0), amount)


def _settled(bound: Array, wide: Array, definite: Array, dtype: DType) -> Array:
    """Bounds of results that may overflow: a NaN or infinity is `definite` where it came from another, or exactly."""
    bound = np.where(np.isnan(bound) | (np.abs(wide) + bound > rounding.largest(dtype)), np.inf, bound)
    return np.where(np.isfinite(wide), bound, np.where(definite, 0.0, np.inf))


def _sum(errors: Sequence[Array]) -> Array:
    total = errors[0]
    for error in errors[1:]:
        total = total + error
    return total


def _compare(program: BoundedProgram, op: Op, result: Array) -> Array:
    if op.operands[0].dtype == BOOL:
        return _sum(program.errors(op))
    (left, right), reach = program.wide(op), _sum(program.errors(op))
    return np.where((np.abs(left - right) <= reach) | np.isinf(reach), reach, 0.0)


def _logic(program: BoundedProgram, op: Op, result: Array) -> Array:
    """Ops on conditions: undecided with an operand, unless another one decides alone."""
    values, errors = program.wide(op), program.errors(op)
    deciding = {"and": 0, "minimum": 0, "or": 1, "maximum": 1}.get(op.name)
    bound = _sum(errors)
    for value, error in zip(values, errors, strict=True):
        bound = np.where((value == deciding) & (error == 0), 0.0, bound)
    return bound


def _select(program: BoundedProgram, op: Op, result: Array) -> Array:
    (condition, yes, no), (flip, yes_error, no_error) = program.wide(op), program.errors(op)
    taken, other = np.where(condition != 0, yes_error, no_error), np.where(condition != 0, no_error, yes_error)
    if not flip.any():
        return taken
    gap = np.where(yes == no, 0.0, np.abs(yes - no))
    hull = np.maximum(taken, gap + other)
    meeting = (gap <= _MEETING * (flip + yes_error + no_error)) & op.result.dtype.is_float | (gap == 0)
    return np.where(flip == 0, taken, np.where(meeting, hull, np.inf))


def _cast(program: BoundedProgram, op: Op, result: Array) -> Array:
    """Rounding keeps order: the result lies between those of the ends of the interval."""
    (value,), (error,), dtype = program.wide(op), program.errors(op), op.result.dtype
    wide = result.astype(np.float64)
    extra = _none(op)
    if dtype.is_float:
        tiny = (wide != 0) & (np.abs(wide) < rounding.smallest_normal(dtype))
        extra = np.where(tiny, program.model.of("cast", dtype)[0].absolute, 0.0)
        if not program.model.same_casts:
            extra = extra + np.where(wide == value, 0.0, rounding.ulp(np.abs(value) + error, dtype))
    extra = program.own(op, extra)
    if not error.any():
        return extra
    if op.operands[0].dtype == BOOL:
        return np.where(error > 0, np.inf, 0.0)
    if dtype == BOOL:
        return np.where((np.abs(value) <= error) & (error > 0), error, 0.0)
    if not dtype.is_float and not op.operands[0].dtype.is_float:
        return error
    reach = error * (1 + rounding.SLACK)
    low, high = (convert(end, dtype).astype(np.float64) for end in (value - reach, value + reach))
    bound = np.where(error == 0, 0.0, np.where(np.isinf(error), np.inf, np.maximum(high - wide, wide - low)))
    if not dtype.is_float:
        return np.where(np.isnan(bound), np.inf, bound)
    return extra + _settled(bound, wide, np.isfinite(error) & (~np.isfinite(value) | (error == 0)), dtype)


# -- axes ----------------------------------------------------------------------------------------------------------


def _rearranged(program: BoundedProgram, op: Op, result: Array) -> Array:
    return program.in_f64(op, program.error(op.operands[0]))


def _reduce(program: BoundedProgram, op: Op, result: Array) -> Array:
    combine, dtype = op.attributes["combine"], op.operands[0].dtype
    axes = op.operands[0].axes
    (value,), (error,) = program.wide(op, axes), program.errors(op, axes)
    if combine in ("argmax", "argmin"):
        return _arg_extreme(program, op, value if combine == "argmax" else -value, error)
    if dtype == BOOL or combine in ("and", "or"):
        return _reduced_logic(program, op, value, error)
    wide, total_error = result.astype(np.float64), program.in_f64(op, error, combine="add")
    if combine in ("maximum", "minimum"):
        low, high = (program.in_f64(op, end) for end in (value - error, value + error))
        bound = np.where(total_error == 0, 0.0, np.maximum(high - wide, wide - low))
        definite = np.isfinite(total_error)
        return _settled(bound, wide, definite, dtype) if dtype.is_float else bound
    size = np.abs(value)
    lanes = np.maximum(program.in_f64(op, np.ones_like(value), combine="add") - 1, 0)
    magnitude = program.in_f64(op, size)
    propagated = program.in_f64(op, size + error) - magnitude if combine == "mul" else total_error
    if not dtype.is_float:
        return np.where(total_error > 0, np.inf, 0.0) if combine == "mul" else total_error
    exact = rounding.sums_exactly(magnitude, rounding.grid(value), _accumulator(dtype))
    exact = exact & (program.in_f64(op, value) == wide) & (combine == "add")
    return _accumulated(program, op, wide, magnitude, propagated, lanes, exact)


def _dot(program: BoundedProgram, op: Op, result: Array) -> Array:
    left, right = (program.values[value.name].astype(np.float64) for value in op.operands)
    left_error, right_error = map(program.error, op.operands)
    left_size, right_size = np.abs(left), np.abs(right)
    wide, magnitude = result.astype(np.float64), program.in_f64(op, left_size, right_size)
    propagated = np.zeros_like(magnitude)
    if right_error.any():
        propagated = propagated + program.in_f64(op, left_size, right_error)
    if left_error.any():
        propagated = propagated + program.in_f64(op, left_error, right_size + right_error)
    dtype = op.result.dtype
    if not dtype.is_float:
        return propagated
    steps = rounding.grid(left), rounding.grid(right)
    step = None if steps[0] is None or steps[1] is None else steps[0] * steps[1]
    terms = program.terms(op, op.result.axes)
    return _accumulated(program, op, wide, magnitude, propagated, terms, rounding.sums_exactly(magnitude, step, dtype))


def _accumulated(
    program: BoundedProgram,
    op: Op,
    wide: Array,
    magnitude: Array,
    propagated: Array,
    roundings: Array,
    exact: Array,
) -> Array:
    """A sum or product of many terms, in any order, on both sides: gamma_n of the magnitudes' sum or product."""
    dtype = op.result.dtype
    accumulator = _accumulator(dtype)
    amount = program.model.summed(
        addition_of(program.model.accuracy, op), magnitude, magnitude + propagated, roundings, accumulator
    )
    if dtype != accumulator:
        # Rounded once more, to the result's type, on both sides.
        amount = amount + rounding.ulp((np.abs(wide) + propagated + amount) * (1 + 2.0 ** (3 - dtype.mantissa)), dtype)
    bound = propagated + program.own(op, np.where(exact & (propagated == 0), 0.0, amount))
    return _settled(bound, wide, np.isfinite(propagated) & (~np.isfinite(magnitude) | (propagated == 0)), dtype)


def _accumulator(dtype: DType) -> DType:
    return F64 if dtype == F64 else F32


def _arg_extreme(program: BoundedProgram, op: Op, value: Array, error: Array) -> Array:
    """Undecided where a lane that is not exact comes within reach of the best one."""
    if not error.any():
        return _none(op)
    axes = program.kernel.order({*op.operands[0].axes, *op.result.axes})
    floor = program.align(program.in_f64(op, value - error, combine="maximum"), op.result.axes, axes)
    near = program.align(value + error, op.operands[0].axes, axes) >= floor
    inexact = near & (program.align(error, op.operands[0].axes, axes) > 0)
    spread = replace(op, operands=(replace(op.operands[0], axes=axes),))
    contenders = program.in_f64(spread, near.astype(np.float64), combine="add")
    doubtful = program.in_f64(spread, inexact.astype(np.float64), combine="add")
    return np.where((contenders > 1) & (doubtful > 0), np.inf, 0.0)


def _reduced_logic(program: BoundedProgram, op: Op, value: Array, error: Array) -> Array:
    total = program.in_f64(op, error, combine="add")
    if op.operands[0].dtype != BOOL:
        return np.where(total > 0, np.inf, 0.0)
    deciding = 0 if op.attributes["combine"] in ("and", "minimum") else 1
    decided = program.in_f64(op, ((value == deciding) & (error == 0)).astype(np.float64), combine="add")
    return np.where(decided > 0, 0.0, total)


Rule = Callable[["BoundedProgram", Op, Array], Array]

_RULES: dict[str, Rule] = {
    **dict.fromkeys(_COMPARISONS, _compare),
    "select": _select,
    "cast": _cast,
    "broadcast": _rearranged,
    "reshape": _rearranged,
    **dict.fromkeys(("reduce", "scan"), _reduce),
    "dot": _dot,
}

# No error in, none out.
_EXACT = frozenset({*_UNROUNDED, *_COMPARISONS, "select", "and", "or", "xor", "not"})
