"""A bound kernel as one over words: float types become words, and numbers of the text their residues.

What is computed from constants alone is computed as the op table says, rounding and all, for so does the pass `fold`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kdsl.analysis.constants import evaluate, number, same_bits
from kdsl.equivalence.algebra.field import Field
from kdsl.equivalence.algebra.words import Word, word
from kdsl.ir.kernel import Kernel, Op, Region, Value
from kdsl.ir.meaning import Array


def translate(kernel: Kernel, field: Field) -> Kernel:
    """The kernel over words. It is for evaluation only: its constants may vary over axes."""
    translation = _Translation(field)
    parameters = tuple(replace(parameter, dtype=word(parameter.dtype)) for parameter in kernel.parameters)
    return replace(kernel, parameters=parameters, body=translation.region(kernel.body))


class _Translation:
    def __init__(self, field: Field) -> None:
        self.field = field
        self.known: dict[str, Array] = {}

    def region(self, region: Region) -> Region:
        return Region(_over_words(region.arguments), tuple(self.op(op) for op in region.ops))

    def op(self, op: Op) -> Op:
        constant = self.constant(op) if len(op.results) == 1 and not op.regions else None
        regions = tuple(self.region(region) for region in op.regions)
        new = replace(op, operands=_over_words(op.operands), results=_over_words(op.results), regions=regions)
        if constant is not None:
            self.known[op.result.name] = constant
            if op.result.dtype.is_float:
                return replace(new, name="constant", operands=(), attributes={"value": self.word(constant)})
        fill = op.attributes.get("fill")
        if fill is not None and op.result.dtype.is_float:
            return replace(new, attributes={**op.attributes, "fill": self.word(number(fill, op.result.dtype))})
        return new

    def word(self, constant: Array) -> Any:
        return self.field.name(constant.astype(np.float64))[()]

    def constant(self, op: Op) -> Array | None:
        """The number that the result is in all lanes, if that is seen from constants alone."""
        operands = [self.known.get(value.name) for value in op.operands]
        if op.name == "broadcast":
            return operands[0]
        if op.name == "select":
            condition, yes, no = operands
            if condition is not None:
                return yes if condition else no
            return yes if yes is not None and no is not None and same_bits(yes, no) else None
        given = [operand for operand in operands if operand is not None]
        return evaluate(op, given) if len(given) == len(operands) else None


def _over_words(values: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(replace(value, dtype=word(value.dtype)) for value in values)


def touches_words(op: Op) -> bool:
    """Whether an op of a kernel over words takes or gives any."""
    return any(isinstance(value.dtype, Word) for value in (*op.operands, *op.results))
