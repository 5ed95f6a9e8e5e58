"""How roundings add up: the one thing in which the hard and the expected bound differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kdsl.equivalence import rounding
from kdsl.interpreter.accuracy import ACCURACY as ORACLE
from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Op
from kdsl.ir.meaning import Array
from kdsl.runtime.target import Accuracy, AccuracyTable, accuracy_of


@dataclass(frozen=True)
class Model:
    """What rounds how. `heard` says which ops round at all; the errors of others come from their operands alone."""

    accuracy: AccuracyTable
    same_casts: bool = True
    gamma: Callable[[Array, float], Array] = rounding.gamma
    heard: Callable[[Op], bool] = lambda op: True

    def of(self, op: str, dtype: DType) -> tuple[Accuracy, Accuracy]:
        """How far the target and the oracle may be from the exact result of an op."""
        return accuracy_of(self.accuracy, op, dtype), accuracy_of(ORACLE, op, dtype)

    def summed(self, target: Accuracy, ours: Array, theirs: Array, roundings: Array, accumulator: DType) -> Array:
        """What the oracle and the target round when they add terms up whose sizes have these sums, in any order, and
        the target's error of each term."""
        unit = 2.0**-accumulator.mantissa  # one ulp, relative; correct rounding is half of it
        # Additions that cut off all err to the same side.
        gamma = self.gamma if target.addition <= 0.5 else rounding.gamma
        amount = self.gamma(roundings, unit / 2) * ours + gamma(roundings, unit * target.addition) * theirs
        return np.asarray(amount + max(target.ulp - 0.5, 0) * unit * theirs + roundings * target.absolute)
