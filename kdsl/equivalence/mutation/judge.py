"""Whether a mutant is found: on the oracle, where it plays what a target makes of the kernel.

found       within verify's default effort its values leave the bounds of the original, it fails, or a property that
            every kernel has does not hold of it
survived    it is not found, though ten times the effort shows other bits than the original's, or a fault
equivalent  nothing tells it from the original

The killable mutants are those found and those that survived. Cheap examples come first: most mutants fall in
milliseconds.
"""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Literal

import numpy as np

from kdsl.equivalence.bounds import Bounded, hard_bounds
from kdsl.equivalence.compare import compare
from kdsl.equivalence.judging import judge_on_oracle
from kdsl.equivalence.mutation.effort import Effort, Example
from kdsl.equivalence.mutation.engine import Mutant
from kdsl.interpreter import run
from kdsl.interpreter.accuracy import ACCURACY
from kdsl.ir.meaning import Array
from kdsl.runtime.unexpected import summary

Fate = Literal["found", "survived", "equivalent"]
LIMIT = 30.0  # seconds for one run, which takes the original a second at most


@dataclass(frozen=True)
class Judged:
    """What became of a mutant. `shown` says what found it, or for one that survived what tells it from the original."""

    mutant: str
    description: str
    fate: Fate
    shown: str = ""

    @property
    def killable(self) -> bool:
        return self.fate != "equivalent"


class Judge:
    """The judge of one kernel's mutants. What the original gives is computed once and kept."""

    def __init__(self, effort: Effort) -> None:
        self.effort = effort
        self.references: dict[int, Bounded] = {}
        self.digests: dict[int, bytes] = {}

    def judge(self, mutant: Mutant) -> Judged:
        """Judge one mutant. Raises what the original raises."""
        shown = self.differing(mutant)
        if shown is not None:
            return Judged(mutant.id, mutant.description, "found", shown)
        difference = self.distinguishing(mutant)
        if difference is None:
            return Judged(mutant.id, mutant.description, "equivalent")
        shown = self.violating(mutant)
        if shown is not None:
            return Judged(mutant.id, mutant.description, "found", shown)
        return Judged(mutant.id, mutant.description, "survived", difference)

    def differing(self, mutant: Mutant) -> str | None:
        """Where the mutant leaves the original's bounds within the default effort, or None."""
        for example in self.effort.default:
            if example.variant in mutant.kernels:
                reference, arguments = self.reference(example), example.arguments()
                with failures() as failure:
                    comparison = compare(_run(mutant, example, arguments), reference.values, reference.bounds)
                    failure.shown = None if comparison.worst is None else str(comparison.worst)
                if failure.shown:
                    return f"{example}: {failure.shown}"
        return None

    def distinguishing(self, mutant: Mutant) -> str | None:
        """An example of the thorough effort on which the mutant has other bits than the original, or None."""
        for example in self.effort.thorough:
            if example.variant in mutant.kernels:
                expected, arguments = self.digest(example), example.arguments()
                with failures() as failure:
                    if _digest(_run(mutant, example, arguments, thorough=True)) != expected:
                        failure.shown = "other bits"
                if failure.shown:
                    return f"{example}: {failure.shown}"
        return None

    def violating(self, mutant: Mutant) -> str | None:
        """A property of kernels that the mutant does not have, within the default effort, or None."""
        for example in self.effort.default:
            if example.variant in mutant.kernels:
                kernel, arguments = mutant.kernels[example.variant], example.arguments()
                with failures() as failure:
                    trial = replace(example.trial, kernel=kernel)
                    judge_on_oracle(trial, example.kind, arguments, example.seed + example.place)
                if failure.shown:
                    return f"{example}: {failure.shown}"
        return None

    def reference(self, example: Example) -> Bounded:
        """What a target may give of the original, of the default effort."""
        if example.place not in self.references:
            self.references[example.place] = hard_bounds(example.original, example.arguments(), ACCURACY)
        return self.references[example.place]

    def digest(self, example: Example) -> bytes:
        """The bits of what the original gives, of the thorough effort."""
        if example.place not in self.digests:
            self.digests[example.place] = _digest(run(example.original, example.arguments()))
        return self.digests[example.place]


def _run(mutant: Mutant, example: Example, arguments: Mapping[str, Any], thorough: bool = False) -> dict[str, Array]:
    bound = example.bind(mutant.kernels[example.variant])
    return run(bound, arguments, example.poison, example.order) if thorough else run(bound, arguments)


def _digest(values: Mapping[str, Array]) -> bytes:
    """The bits of all arrays, of which all NaNs are one."""
    digest = hashlib.sha256()
    for array in values.values():
        unequal = array != array
        if unequal.any():
            array = array.copy()
            array[unequal] = np.nan
        digest.update(array.tobytes())
    return digest.digest()


@dataclass
class Failure:
    """What a mutant did that the original does not do."""

    shown: str | None = None


class _TooLong(Exception):
    pass


@contextmanager
def failures() -> Iterator[Failure]:
    """A mutant may fail in any way, or not come to an end: each tells it from the original."""
    failure = Failure()

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooLong(f"not through after {LIMIT:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        with np.errstate(all="ignore"):
            yield failure
    except Exception as error:
        failure.shown = summary(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
