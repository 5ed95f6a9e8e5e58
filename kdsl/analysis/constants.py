"""Numbers as the op table computes them: 0-d arrays of a value's dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kdsl.ir import meaning
from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Op
from kdsl.ir.meaning import Array
from kdsl.ir.ops import OPS


def number(value: Any, dtype: DType) -> Array:
    """A Python number as an element of that type."""
    with np.errstate(over="ignore"):
        return meaning.number(value, dtype)


def evaluate(op: Op, operands: Sequence[Array]) -> Array | None:
    """The result of a constant, cast or pointwise op on numbers, by the table; None for any other op."""
    pointwise = OPS[op.name].pointwise
    with np.errstate(all="ignore"):
        if op.name == "constant":
            return number(op.attributes["value"], op.result.dtype)
        if op.name == "cast":
            return np.asarray(meaning.convert(operands[0], op.result.dtype, **op.attributes))
        return None if pointwise is None else number(pointwise(*operands), op.result.dtype)


def same_bits(left: Array, right: Array) -> bool:
    """Whether two numbers are one: 0 and -0 are not, a NaN and itself are."""
    return left.dtype == right.dtype and left.tobytes() == right.tobytes()
