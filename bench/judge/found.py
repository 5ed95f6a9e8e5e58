"""The parts that ask whether planted faults are found, and how long verify takes."""

from __future__ import annotations

from dataclasses import dataclass

from bench.judge.parts import Outcome, Tell, Watch
from bench.judge.planted import FAULTS
from bench.judge.work import in_processes, labels, plant, time_verify

SECONDS = 60.0  # that verify may take for one kernel on all targets


@dataclass
class Planted:
    """Every fault planted in what a target emits is found by verify's default effort."""

    name: str = "planted faults"

    def run(self, seed: int, watch: Watch, tell: Tell) -> Outcome:
        tasks = [(target, place, seed) for target, faults in FAULTS.items() for place in range(len(faults))]
        results = list(watch(self.name, in_processes(plant, tasks), len(tasks)))
        missed = [f"not found: {fault}: {why}" for fault, why in results if why is not None]
        for line in missed:
            tell(line)
        return Outcome(f"planted faults found {len(tasks) - len(missed)}/{len(tasks)}", not missed)


@dataclass
class Time:
    """verify of one kernel on three targets, from a cold start, with the machine to itself."""

    targets: tuple[str, ...] = ("gpu", "tpu", "cpu")
    name: str = "time"

    def run(self, seed: int, watch: Watch, tell: Tell) -> Outcome:
        tasks = [(label, seed, self.targets) for label in labels()]
        results = list(watch(self.name, in_processes(time_verify, tasks, processes=1), len(tasks)))
        label, slowest, _ = max(results, key=lambda result: result[1])
        for each, seconds, wrong in results:
            tell(f"{each}: {seconds:.1f} s {wrong}".rstrip())
        good = slowest < SECONDS and not any(wrong for _, _, wrong in results)
        return Outcome(f"time: verify takes {slowest:.0f} s at most ({label}; aim: {SECONDS:.0f} s)", good)
