"""One example judged: on the oracle by its properties, on a target by comparison with the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kdsl.diagnostics import KdslError
from kdsl.equivalence.bounds import error_bounds
from kdsl.equivalence.compare import Comparison, compare, identical
from kdsl.equivalence.inputs import Kind
from kdsl.equivalence.poisons import POISONS
from kdsl.equivalence.properties import Violation, check_bits, check_properties, check_text
from kdsl.interpreter import checked, run
from kdsl.ir.kernel import bind
from kdsl.runtime.examples import Binding
from kdsl.runtime.target import Source, Target

Warn = Callable[[KdslError], None]
OTHER_POISON = "-3e38"  # than the NaN that the oracle starts from


def judge_on_oracle(
    trial: Binding, kind: Kind, arguments: Mapping[str, Any], seed: int, warn: Warn = lambda warning: None
) -> Comparison:
    """Check what holds of every kernel. Of special inputs, which bounds say nothing of, what is the same bit for bit.

    `warn` is told what checked mode warns of. Raises Violation, and KdslError for the faults that checked mode finds.
    """
    check_text(trial.kernel)
    for warning in checked.run(bind(trial.kernel, trial.sizes, trial.tiles), arguments).warnings:
        warn(warning)
    if kind == "special":
        check_bits(trial, arguments, seed)
        return Comparison()
    return check_properties(trial, arguments, seed)


def judge_on_target(target: Target, source: Source, trial: Binding, arguments: Mapping[str, Any]) -> Comparison:
    """Run emitted code on one example, and compare with the oracle at the tile sizes that the code has; the caller
    looks at the `worst` element.

    Raises Violation for what the kernel never writes, OutputError, and KdslError where either does not run.
    """
    bound = bind(trial.kernel, trial.sizes, source.tiles)
    reference = error_bounds(bound, arguments, target.accuracy)
    # What nothing was written to holds poison here and there alike, so that only other poison shows it.
    unwritten = identical(run(bound, arguments, POISONS[OTHER_POISON]), reference.values).worst
    if unwritten is not None:
        raise Violation("an output element is never written, or depends on what lies beyond an edge", str(unwritten))
    # Copies: a target that writes to its inputs must not change what comes after.
    given = {name: np.array(value) if np.ndim(value) else value for name, value in arguments.items()}
    written = target.run(source, trial.sizes, given)
    return compare(written, reference.values, reference.bounds, reference.expected)


def check_on_target(comparison: Comparison) -> None:
    """Raises Violation if an element is outside its bound."""
    if comparison.worst is not None:
        raise Violation("differs from the oracle", str(comparison.worst))
