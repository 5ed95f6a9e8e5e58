"""kdsl verify: emitted source is run and compared with the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdsl.cli import screen
from kdsl.cli.options import ArchOption, JsonOption, SourceArgument, TargetOption, parse_archs, parse_targets

if TYPE_CHECKING:
    from kdsl.equivalence.verdict import Verdict
    from kdsl.runtime.loading import Loaded

SHRINK_SECONDS = 20.0  # for each mismatch


def verify(
    source: SourceArgument,
    target: TargetOption = "all",
    arch: ArchOption = "",
    examples: Annotated[
        int | None,
        typer.Option("--examples", min=1, metavar="N", help="Examples to run on each target.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="S", help="What the examples are drawn from.")] = 0,
    save_failures: Annotated[
        Path | None,
        typer.Option("--save-failures", metavar="DIR", help="Keep examples that fail there, and try them first."),
    ] = None,
    json: JsonOption = None,
    explain_bound: Annotated[
        bool,
        typer.Option("--explain-bound", help="Also show which source lines the error bound of each target comes from."),
    ] = False,
) -> None:
    """Run what is emitted for each target and compare it with the oracle, edges poisoned."""
    from kdsl.cli.report import reported
    from kdsl.equivalence.verdict import Outcome, Verdict
    from kdsl.equivalence.verify import verify as verify_kernel
    from kdsl.runtime import unexpected
    from kdsl.runtime.loading import load
    from kdsl.runtime.threads import Progress, in_threads

    with reported(json) as collected:
        targets = parse_targets(target)
        archs = parse_archs(arch, targets)
        kernels = load(source)

        def judged(each: Loaded, say: Progress) -> list[Verdict]:
            try:
                return verify_kernel(
                    each.kernel,
                    source=each.label,
                    targets=targets,
                    archs=archs,
                    examples=examples,
                    seed=seed,
                    progress=say,
                    shrink_seconds=SHRINK_SECONDS,
                    save_failures=save_failures,
                )
            except Exception as error:
                failed = Verdict(kernel=each.label, target="", verdict=Outcome.ERROR, message=unexpected.summary(error))
                return [replace(failed, target=name) for name in targets]

        with screen.progress() as progress:
            for rows in in_threads(judged, kernels, progress):
                collected.rows += rows
    for row in collected.rows:
        if row.counterexample is not None:
            screen.say(f"\nA small example that fails, as a file to run:\n\n{row.counterexample}")
    if explain_bound:
        _show_explanations(kernels, targets, collected.rows, seed)
    raise typer.Exit(collected.exit_status())


def _show_explanations(kernels: Sequence[Loaded], targets: Sequence[str], rows: Sequence[Verdict], seed: int) -> None:
    """One table for each kernel and target that was run."""
    from kdsl.cli.report import RAN
    from kdsl.cli.tables import explanation_table, explanation_title
    from kdsl.equivalence.explanation import explain_bound

    ran = {(row.kernel, row.target) for row in rows if row.verdict in RAN}
    for each in kernels:
        for target in targets:
            if target != "numpy" and (each.label, target) in ran:
                found = explain_bound(each.kernel, each.label, target, seed)
                typer.echo(f"\n{explanation_title(found)}")
                if found.parts:
                    screen.show_table(explanation_table(found))
