"""Mutants and faults on a target: it emits something else than what it was given, and verify has to notice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kdsl.equivalence.compare import identical
from kdsl.equivalence.inputs import KINDS
from kdsl.equivalence.mutation.effort import THOROUGH, Effort, Example
from kdsl.equivalence.mutation.engine import Mutant
from kdsl.equivalence.trials import draw_trials
from kdsl.equivalence.verdict import Outcome
from kdsl.equivalence.verify import TARGET_EXAMPLES, verify_target
from kdsl.ir.kernel import Kernel
from kdsl.lang.kernel import Kernel as KernelFunction
from kdsl.runtime.target import AccuracyTable, Array, Report, Source, Target, Toolchain


def _same_kernel(kernel: Kernel) -> Kernel:
    return kernel


def _same_source(source: Source) -> Source:
    return source


@dataclass
class Altered:
    """A target that emits another kernel than it is asked for, or changes what it emitted; all else is the target's."""

    target: Target
    kernel: Callable[[Kernel], Kernel] = _same_kernel
    source: Callable[[Source], Source] = _same_source

    name: str = field(init=False)
    archs: tuple[str, ...] = field(init=False)
    accuracy: AccuracyTable = field(init=False)

    def __post_init__(self) -> None:
        self.name, self.archs, self.accuracy = self.target.name, self.target.archs, self.target.accuracy

    def toolchain(self) -> Toolchain:
        return self.target.toolchain()

    def legalize(self, kernel: Kernel) -> Kernel:
        return self.target.legalize(self.kernel(kernel))

    def emit(self, kernel: Kernel, tiles: Mapping[str, int], sizes: Mapping[str, int]) -> Source:
        return self.source(self.target.emit(self.kernel(kernel), tiles, sizes))

    def check(self, source: Source, sizes: Mapping[str, int], arch: str) -> Report:
        return self.target.check(source, sizes, arch)

    def run(self, source: Source, sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> dict[str, Array]:
        return self.target.run(source, sizes, arguments)


# -- mutants -------------------------------------------------------------------------------------------------------

TargetFate = Literal["found", "refused", "undecided", "equivalent", "verified"]


@dataclass(frozen=True)
class JudgedOnTarget:
    """What became of a mutant on a target. "verified" is the judge's failure: `shown` tells it from the original there.

    refused     the target has no form for it, so that nothing wrong is given to anyone
    equivalent  verified, and rightly so: what is emitted gives the original's bits at ten times the effort
    """

    mutant: str
    description: str
    target: str
    fate: TargetFate
    shown: str = ""


_FATES: Mapping[Outcome, TargetFate] = {
    Outcome.MISMATCH: "found",
    Outcome.ERROR: "found",
    Outcome.REFUSED: "refused",
    Outcome.UNDECIDED: "undecided",
}


def judge_on_target(
    kernel: KernelFunction, label: str, effort: Effort, mutant: Mutant, target: Target, seed: int
) -> JudgedOnTarget:
    """Judge a mutant in place of what the target makes of the kernel, by the verdict of verify's default effort."""
    altered = Altered(target, kernel=instead(effort, mutant))
    verdict = verify_target(kernel, altered, source=label, seed=seed)
    fate, shown = _FATES.get(verdict.verdict), verdict.message or ""
    if fate is None:
        difference = _difference(kernel, altered, seed)
        fate, shown = ("equivalent", "") if difference is None else ("verified", difference)
    return JudgedOnTarget(mutant.id, mutant.description, target.name, fate, shown)


def instead(effort: Effort, mutant: Mutant) -> Callable[[Kernel], Kernel]:
    """What gives the mutant for each variant of the kernel; a variant that has no place for the fault is as it was."""
    pairs = [(original, mutant.kernels.get(key, original)) for key, original in effort.variants.items()]
    return lambda kernel: next((mutated for original, mutated in pairs if original == kernel), kernel)


def _difference(kernel: KernelFunction, altered: Altered, seed: int) -> str | None:
    """Where what is emitted for the mutant gives other bits than what is emitted for the kernel, or None."""
    trials = draw_trials(kernel, THOROUGH * TARGET_EXAMPLES, seed)
    examples = [Example(place, trial, kind, seed) for place, trial in enumerate(trials) for kind in KINDS]
    emitted: dict[Hashable, tuple[Source, Source]] = {}
    for example in sorted(examples, key=lambda each: each.elements):
        trial = example.trial
        variant = example.variant, tuple(trial.tiles.items())
        if variant not in emitted:
            original, mutated = (
                target.emit(trial.kernel, trial.tiles, trial.sizes) for target in (altered.target, altered)
            )
            emitted[variant] = original, mutated
        original, mutated = emitted[variant]
        if original.text == mutated.text:
            continue
        worst = identical(
            altered.run(mutated, trial.sizes, example.arguments()),
            altered.run(original, trial.sizes, example.arguments()),
        ).worst
        if worst is not None:
            return f"{example}: {worst}"
    return None
