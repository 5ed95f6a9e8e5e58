"""kdsl targets: what is installed, and what can be checked here."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def targets() -> None:
    """List targets, their architectures, and the tool-chains found for them."""
    from rich.table import Table
    from rich.text import Text

    from kdsl.cli import screen
    from kdsl.runtime.target import KNOWN, target_names

    table = Table("target", "arch", "can be compiled here", "runs on", "versions")
    with screen.progress() as progress:
        for name in dict.fromkeys([*target_names(), *KNOWN]):
            progress(f"looking for the tool-chain of {name}")
            for cells in _rows(name):
                table.add_row(*map(Text, cells))
    screen.show_table(table)
    typer.echo("Source is written for every installed target, whether or not its tool-chain is found.")


def _rows(name: str) -> Sequence[tuple[str, ...]]:
    from kdsl.runtime import unexpected
    from kdsl.runtime.target import target_names
    from kdsl.runtime.versions import toolchain, versions

    if name == "numpy":
        return [(name, "", "", "the oracle itself", f"numpy {versions()['numpy']}")]
    if name not in target_names():
        return [(name, "", "not installed", "", "")]
    try:
        found = toolchain(name)
    except Exception as error:  # a third party's backend may do anything
        return [(name, "", unexpected.summary(error), "", "")]
    shown = ", ".join(f"{package} {version}" for package, version in found.versions.items())
    rows = [
        (name, arch, "yes" if missing is None else f"no: {missing}", found.runs_on, shown)
        for arch, missing in found.archs.items()
    ]
    return rows or [(name, "", "", found.runs_on, shown)]
