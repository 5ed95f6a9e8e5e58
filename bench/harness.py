"""What all benches share: options, interleaved timing, the table and the JSON that comes out.

    {"rows": [{"case", "arch", "ours", "rival", "rival_name", "unit", "ratio"}], "geomean", "worst", "also": [...]}

`rows` are what the bench is judged by; `also` has rows of the same form that are only shown.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

TURN_SECONDS = 0.2
ROOT = Path(__file__).parents[1]
Run = Callable[[], float | None]


@dataclass(frozen=True)
class Row:
    """One comparison. `ours` and `rival` are in `unit`; what `ratio` divides by what, the bench says."""

    case: str
    arch: str
    ours: float
    rival: float
    rival_name: str
    unit: str
    ratio: float


def options(description: str, rounds: int) -> argparse.Namespace:
    """The options of every bench: json, rounds, small."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"repetitions, of which the best counts ({rounds})")
    parser.add_argument("--small", action="store_true", help="small sizes: shows that the bench runs, and nothing else")
    return parser.parse_args()


def best_of(rounds: int, runs: Mapping[str, Run]) -> dict[str, float]:
    """The least seconds of each run, taken in turns so that what else the machine does meets all alike.

    A turn is one run, or as many short ones as fit TURN_SECONDS. A run that is timed elsewhere returns its seconds; of
    any other, the whole call counts.
    """
    best = dict.fromkeys(runs, math.inf)
    for _ in range(rounds):
        for name, run in runs.items():
            began = start = time.perf_counter()
            while start - began < TURN_SECONDS:
                told = run()
                end = time.perf_counter()
                best[name] = min(best[name], end - start if told is None else told)
                start = end
    return best


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def report(
    title: str,
    rows: Sequence[Row],
    also: Sequence[Row],
    *,
    ratio: str,
    also_ratio: str,
    worst: Callable[[Sequence[float]], float],
    json_file: Path | None,
) -> None:
    """Print both tables, and write the JSON if a file is given. `ratio` and `also_ratio` say what the ratios are."""
    ratios = [row.ratio for row in rows]
    mean, extreme = geometric_mean(ratios), worst(ratios)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    table = _table(title, rows, ratio)
    table.add_section()
    table.add_row("geometric mean", "", "", "", "", f"{mean:.1f}")
    table.add_row("worst", "", "", "", "", f"{extreme:.1f}")
    console.print(table)
    if also:
        console.print(_table("also", also, also_ratio))
    if json_file is not None:
        result = {
            "rows": [asdict(row) for row in rows],
            "geomean": mean,
            "worst": extreme,
            "also": [asdict(row) for row in also],
        }
        json_file.write_text(json.dumps(result, indent=2) + "\n")


def _table(title: str, rows: Sequence[Row], ratio: str) -> Table:
    table = Table(title=title)
    for heading in ("case", "arch", "ours", "rival"):
        table.add_column(heading, justify="left" if heading in ("case", "arch") else "right")
    table.add_column("rival is")
    table.add_column(ratio, justify="right")
    for row in rows:
        figures = [f"{figure:.2f} {row.unit}" for figure in (row.ours, row.rival)]
        table.add_row(row.case, row.arch, *figures, row.rival_name, f"{row.ratio:.1f}")
    return table
