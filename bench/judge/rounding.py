"""The parts that ask whether the error bounds hold, and whether they are tight enough to be of use."""

from __future__ import annotations

from dataclasses import dataclass

from bench.judge.parts import Outcome, Tell, Watch
from bench.judge.work import in_processes
from bench.soundness import Summary, soundness
from bench.usefulness import LARGEST_RATIO, Row, median_ratio, table, usefulness

RUNS, CHUNK = 10_000, 500
SEEDS = 1 << 32


@dataclass
class Soundness:
    """Implementations that are as wrong as a target's table allows never leave the hard bounds."""

    name: str = "soundness"

    def run(self, seed: int, watch: Watch, tell: Tell) -> Outcome:
        tasks = [(CHUNK, (seed + place) % SEEDS) for place in range(RUNS // CHUNK)]
        summaries = list(watch(self.name, in_processes(_perturbed, tasks), len(tasks)))
        failures = [failure for summary in summaries for failure in summary.failures]
        for failure in failures:
            tell(failure)
        runs = sum(summary.runs for summary in summaries)
        used = max(summary.used for summary in summaries)
        told = f"{runs - len(failures)} of {runs} runs within the hard bounds, {used:.2f} of them used at most"
        return Outcome(f"soundness: {told}", not failures)


def _perturbed(task: tuple[int, int]) -> Summary:
    return soundness(*task)


@dataclass
class Usefulness:
    """In the median the expected bound is not far above what is observed."""

    name: str = "usefulness"

    def run(self, seed: int, watch: Watch, tell: Tell) -> Outcome:
        (rows,) = watch(self.name, in_processes(_rows, [seed % SEEDS], processes=1), 1)
        for line in table(rows).splitlines()[:-1]:
            tell(line)
        ratio = median_ratio(rows)
        told = f"the expected bound is {ratio:.0f} times the largest error observed, in the median"
        return Outcome(f"usefulness: {told} (aim: {LARGEST_RATIO:.0f})", ratio <= LARGEST_RATIO)


def _rows(seed: int) -> list[Row]:
    return usefulness(seed)
