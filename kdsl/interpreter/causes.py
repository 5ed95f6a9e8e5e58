"""Where lanes begin to mean nothing, to be another number than the author thinks, or to be no number at all.

Each function gives a bool array over the axes of a result of an op that has just been evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kdsl.interpreter.program import Program
from kdsl.interpreter.touching import touched
from kdsl.ir.kernel import Op, Value
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS

# Ops that give poison where no lane is valid, or an index leads nowhere.
UNDEFINED = frozenset({"poison", "gather", "topk", "reduce_by", "scan_by", "histogram", "sort"})


def counting(program: Program, where: Array, value: Value) -> Array:
    """Those lanes that are valid, in programs that run."""
    if not where.any():
        return where
    return where & program.valid(value.axes, value.axes) & program.active(value.axes)


def skipped(program: Program, op: Op) -> Array:
    """Lanes of a load that is masked off and has no fill."""
    masked = op.attributes.get("bounds") or op.attributes.get("masked")
    if not masked or "fill" in op.attributes:
        return _nowhere(op.result)
    return ~touched(program, op).lanes


def undefined(program: Program, op: Op, results: Sequence[Array]) -> list[Array]:
    """Lanes that come out otherwise where what means nothing is another number."""
    evaluate, poison = OPS[op.name].evaluate, program.poison
    assert evaluate is not None, op.name
    program.poison = lambda dtype, shape: np.ones(shape, dtype.numpy)
    others = evaluate(program, op, [program.values[value.name] for value in op.operands])
    program.poison = poison
    return [
        np.asarray((result != other) & ((result == result) | (other == other)))
        for result, other in zip(results, others, strict=True)
    ]


_EXACT: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "shl": lambda x, y: x * 2.0 ** np.clip(y, 0, 64),
    "cast": lambda x: x,
}


def wrapped(program: Program, op: Op, result: Array) -> Array:
    """Lanes of a signed integer whose exact value it does not hold."""
    if op.name == "index":
        return np.asarray(program.form(op.attributes["form"], op.result.axes) != result)
    if op.name not in _EXACT or not all(value.dtype.kind in ("int", "uint", "bool") for value in op.operands):
        return _nowhere(op.result)
    operands = [program.align(program.values[value.name], value.axes, op.result.axes) for value in op.operands]
    exact = _EXACT[op.name](*(array.astype(np.float64) for array in operands))
    # A wrapped result is off by a multiple of 2**bits: far more than f64 rounds.
    return np.asarray(np.abs(exact - result.astype(np.float64)) > 1 + np.abs(exact) * 2.0**-50)


def born(program: Program, op: Op, value: Value, result: Array) -> Array:
    """Lanes that hold a NaN where no operand has one, or an infinity where all operands are finite."""
    if not op.operands or "buffer" in op.attributes or not no_number(value, result).any():
        return _nowhere(value)
    nans, others = (_any_operand(program, op, value, test) for test in (np.isnan, _not_finite))
    return (np.isnan(result) & ~nans) | (np.isinf(result) & ~others)


def no_number(value: Value, result: Array) -> Array:
    """Lanes that hold a NaN or an infinity."""
    return _not_finite(result) if value.dtype.is_float else _nowhere(value)


def _not_finite(array: Array) -> Array:
    return ~np.isfinite(array)


def _any_operand(program: Program, op: Op, result: Value, test: Callable[[Array], Array]) -> Array:
    """Whether an operand passes the test in a valid lane that is alike on the result's axes."""
    found = _nowhere(result)
    for value in op.operands:
        if not value.dtype.is_float:
            continue
        array = test(program.values[value.name])
        if array.any():
            array = array & program.valid(value.axes, value.axes)
            found = found | along(np.logical_or, array, value, result, op.attributes.get("axis"), program)
    return found


def along(join: np.ufunc, array: Array, value: Value, result: Value, axis: str | None, program: Program) -> Array:
    """The array of a value joined over the axis, and over those that the result has not; over the result's axes."""
    gone = tuple(place for place, name in enumerate(value.axes) if name not in result.axes or name == axis)
    array = join.reduce(array, axis=gone, keepdims=True) if gone else array
    dropped = tuple(place for place, name in enumerate(value.axes) if name not in result.axes)
    kept = [name for name in value.axes if name in result.axes]
    return program.align(array.squeeze(dropped), kept, result.axes)


def _nowhere(value: Value) -> Array:
    return np.zeros([1] * len(value.axes), np.bool_)
