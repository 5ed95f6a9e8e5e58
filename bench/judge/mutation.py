"""Mutants of the ready-made kernels: every one on the oracle, some of the killable ones on each target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.judge.parts import Outcome, Tell, Watch
from bench.judge.work import (
    OnOracle,
    OnTarget,
    count_mutants,
    in_processes,
    judge_mutant_on_target,
    judge_mutants,
    labels,
)
from kdsl.equivalence.mutation.judge import Judged
from kdsl.equivalence.mutation.targets import JudgedOnTarget

AIM = 0.99  # of the killable mutants have to be found
TARGETS = ("gpu", "tpu", "cpu")
ON_TARGETS = 60  # mutants are drawn, as many for each target
CHUNK = 6  # mutants that a process takes at a time
Results = Sequence[tuple[str, Judged]]  # each with the label of its kernel


@dataclass
class Mutation:
    """At least AIM of the killable mutants are found on the oracle, and none of those drawn is verified on a target."""

    name: str = "mutation"

    def run(self, seed: int, watch: Watch, tell: Tell) -> Outcome:
        results = on_the_oracle(seed, watch, tell)
        on_targets = on_the_targets(results, seed, watch, tell)
        tell(on_targets.summary)
        fates = Counter(judged.fate for _, judged in results)
        found, killable = fates["found"], fates["found"] + fates["survived"]
        good = killable > 0 and found >= AIM * killable and on_targets.ok
        return Outcome(score(found, killable), good)


def score(found: int, killable: int) -> str:
    """The line that says how many are found, rounded down: only all are 100%."""
    tenths = 1000 * found // killable if killable else 0
    return f"mutation score: {tenths / 10:.1f}% ({found} of {killable} killable)"


def on_the_oracle(seed: int, watch: Watch, tell: Tell) -> Results:
    """What becomes of every mutant; tells counts, equivalent ones and survivors."""
    known = labels()
    counting = in_processes(count_mutants, [(label, seed) for label in known])
    counts = {label: rest for label, *rest in watch("making mutants", counting, len(known))}
    # One kernel after the other: a process keeps what it knows of one.
    tasks = [
        OnOracle(label, seed, start, start + CHUNK) for label in known for start in range(0, counts[label][0], CHUNK)
    ]
    judging = watch("mutants on the oracle", in_processes(judge_mutants, tasks), len(tasks))
    results = sorted((each for chunk in judging for each in chunk), key=lambda each: (each[0], each[1].description))
    for label, (total, discarded, repeated) in counts.items():
        fates = Counter(judged.fate for where, judged in results if where == label)
        told = ", ".join(f"{fates[fate]} {fate}" for fate in ("found", "survived", "equivalent"))
        tell(f"{label}: {total} mutants ({discarded} not well formed and {repeated} repeated left out): {told}")
    for fate in ("equivalent", "survived"):
        for label, judged in results:
            if judged.fate == fate:
                tell(f"{fate}: {label}: {_told(judged)}")
    return results


def on_the_targets(results: Results, seed: int, watch: Watch, tell: Tell) -> Outcome:
    """Killable mutants in place of what each target emits: none may be verified."""
    tasks = draw(results, seed)
    judged = list(watch("mutants on targets", in_processes(judge_mutant_on_target, tasks), len(tasks)))
    fates = Counter(each.fate for each in judged)
    told = ", ".join(f"{fates[fate]} {fate}" for fate in ("found", "refused", "equivalent", "undecided", "verified"))
    for each in judged:
        if each.fate != "found":
            tell(_told_on_target(each))
    good = bool(fates["found"]) and not fates["verified"] and not fates["undecided"]
    return Outcome(f"mutants on targets: {len(judged)} drawn: {told}", good)


def draw(results: Results, seed: int) -> list[OnTarget]:
    """As many killable mutants for each target, those of one kernel together."""
    killable = [(label, judged.mutant) for label, judged in results if judged.killable]
    generator = np.random.default_rng([seed, 0x7A26])
    tasks = []
    for target in TARGETS:
        for place in generator.permutation(len(killable))[: ON_TARGETS // len(TARGETS)]:
            label, mutant = killable[int(place)]
            tasks.append(OnTarget(label, seed, mutant, target))
    return sorted(tasks, key=lambda task: (task.label, task.target))


def _told(judged: Judged) -> str:
    return f"{judged.description} [{judged.mutant}]" + (f": {judged.shown}" if judged.shown else "")


def _told_on_target(judged: JudgedOnTarget) -> str:
    return f"{judged.fate} on {judged.target}: {judged.description} [{judged.mutant}]: {judged.shown}"
