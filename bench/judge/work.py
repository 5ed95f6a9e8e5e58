"""What is done in processes of their own: judging mutants, planting faults, timing verify."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from typing import TypeVar

from bench.judge.planted import FAULTS, Planting
from kdsl.equivalence.mutation.effort import effort_of
from kdsl.equivalence.mutation.engine import Mutant, Mutants, mutants_of
from kdsl.equivalence.mutation.judge import Judge, Judged
from kdsl.equivalence.mutation.targets import Altered, JudgedOnTarget, judge_on_target
from kdsl.equivalence.verdict import Outcome
from kdsl.equivalence.verify import verify, verify_target
from kdsl.lang.kernel import Kernel
from kdsl.runtime.loading import load
from kdsl.runtime.target import find_target

KERNELS = "kernels"
PROCESSES = 2
# NumPy's threads would only be in each other's way.
SINGLE_THREADED = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
Item = TypeVar("Item")
Result = TypeVar("Result")


def in_processes(work: Callable[[Item], Result], items: Iterable[Item], processes: int = PROCESSES) -> Iterator[Result]:
    """`work(item)` for each item, as they come. Raises what the work raises."""
    os.environ.update(SINGLE_THREADED)  # for the processes that start now
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def labels() -> list[str]:
    """The labels of the ready-made kernels."""
    return [each.label for each in load(KERNELS)]


def kernel_of(label: str) -> Kernel:
    (found,) = (each.kernel for each in load(KERNELS) if each.label == label)
    return found


@dataclass(frozen=True)
class Session:
    """A kernel, its mutants and their judge, kept from one task to the next."""

    kernel: Kernel
    judge: Judge
    made: Mutants

    def mutant(self, identity: str) -> Mutant:
        return next(each for each in self.made.mutants if each.id == identity)


@lru_cache(maxsize=1)
def session(label: str, seed: int) -> Session:
    kernel = kernel_of(label)
    effort = effort_of(kernel, seed)
    return Session(kernel, Judge(effort), mutants_of(effort.variants))


@dataclass(frozen=True)
class OnOracle:
    """Some mutants of a kernel, by their places in the list."""

    label: str
    seed: int
    start: int
    stop: int


def judge_mutants(task: OnOracle) -> list[tuple[str, Judged]]:
    """The label with each mutant's fate."""
    kept = session(task.label, task.seed)
    return [(task.label, kept.judge.judge(mutant)) for mutant in kept.made.mutants[task.start : task.stop]]


def count_mutants(task: tuple[str, int]) -> tuple[str, int, int, int]:
    """The label, and how many mutants, discarded and repeated ones the kernel has."""
    made = session(*task).made
    return task[0], len(made.mutants), made.discarded, made.repeated


@dataclass(frozen=True)
class OnTarget:
    """A mutant of a kernel on a target."""

    label: str
    seed: int
    mutant: str
    target: str


def judge_mutant_on_target(task: OnTarget) -> JudgedOnTarget:
    kept = session(task.label, task.seed)
    mutant, target = kept.mutant(task.mutant), find_target(task.target)
    return judge_on_target(kept.kernel, task.label, kept.judge.effort, mutant, target, task.seed)


def plant(task: tuple[str, int, int]) -> tuple[str, str | None]:
    """A target's fault by its place in the table, and the seed: its name, and None if it is found, else why not."""
    name, place, seed = task
    fault = FAULTS[name][place]
    planting = Planting(fault)
    label = next(label for label in labels() if label.endswith(f":{fault.kernel}"))
    verdict = verify_target(kernel_of(label), Altered(find_target(name), source=planting), source=label, seed=seed)
    told = f"{name}: {fault}"
    if not planting.planted:
        return told, "there is no place for it in what is emitted"
    found = verdict.verdict in (Outcome.MISMATCH, Outcome.ERROR)
    return told, None if found else f"{verdict.verdict.value} {verdict.message or ''}".strip()


def time_verify(task: tuple[str, int, tuple[str, ...]]) -> tuple[str, float, str]:
    """Seconds that verify takes for a kernel on the targets, and what is wrong."""
    label, seed, targets = task
    start = time.perf_counter()
    rows = verify(kernel_of(label), source=label, targets=targets, seed=seed)
    seconds = time.perf_counter() - start
    return label, seconds, "; ".join(f"{row.target}: {row.message}" for row in rows if not row.holds)
