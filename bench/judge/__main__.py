"""Does the judge find what is wrong? Planted faults, error bounds, time and mutants, whose score is the last line.

    python -m bench.judge [--seed N] [--part NAME ...]

The seed is from the commit's hash unless it is given, here or in KDSL_JUDGE_SEED. The exit status is 1 if a part falls
short.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.harness import ROOT
from bench.judge.found import Planted, Time
from bench.judge.mutation import Mutation
from bench.judge.parts import Part
from bench.judge.rounding import Soundness, Usefulness

SEED_VARIABLE = "KDSL_JUDGE_SEED"
WITHOUT_GIT = 20260101
Item = TypeVar("Item")

# In the order in which they run; the last one's line is the last line.
PARTS: tuple[Part, ...] = (Planted(), Soundness(), Usefulness(), Time(), Mutation())


def main() -> None:
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, help="what sizes, inputs and mutants are drawn from")
    parser.add_argument("--part", choices=names, action="append", help="only this part (may be repeated)")
    given = parser.parse_args()
    seed, origin = chosen_seed(given.seed)
    print(f"seed {seed}, {origin}", flush=True)
    chosen = [part for part in PARTS if given.part is None or part.name in given.part]
    good = [judged(part, seed) for part in chosen]  # all of them, also after one that falls short
    sys.exit(0 if all(good) else 1)


def chosen_seed(given: int | None) -> tuple[int, str]:
    """The seed, and where it is from."""
    if given is not None:
        return given, "as given"
    if SEED_VARIABLE in os.environ:
        return int(os.environ[SEED_VARIABLE]), f"from {SEED_VARIABLE}"
    try:
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return WITHOUT_GIT, "fixed, as there is no commit to take it from"
    commit = asked.stdout.strip()
    return int(commit[:8], 16), f"from commit {commit[:12]}"


def judged(part: Part, seed: int) -> bool:
    """Run a part and print what it found, its line last."""
    start = time.monotonic()
    outcome = part.run(seed, watch, lambda line: print(f"  {line}", flush=True))
    minutes, seconds = divmod(round(time.monotonic() - start), 60)
    print(f"  {part.name}: {'ok' if outcome.ok else 'FALLS SHORT'}, {minutes} min {seconds} s")
    print(outcome.summary, flush=True)
    return outcome.ok


def watch(what: str, items: Iterable[Item], total: int) -> Iterator[Item]:
    """Passes the items on, with a bar on a terminal's standard error."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        for item in items:
            yield item
            progress.advance(task)


if __name__ == "__main__":
    main()
