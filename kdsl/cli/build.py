"""kdsl build: emitted source for each target, and a manifest."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdsl.cli import screen
from kdsl.cli.options import (
    ArchOption,
    JsonOption,
    SettingsOption,
    SourceArgument,
    TargetOption,
    parse_archs,
    parse_targets,
    parse_tiles,
)
from kdsl.diagnostics import KdslError, fail

if TYPE_CHECKING:
    from kdsl.runtime.loading import Loaded


def build(
    source: SourceArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write to.", show_default=False)],
    target: TargetOption = "all",
    arch: ArchOption = "",
    settings: SettingsOption = None,
    check: Annotated[bool, typer.Option("--check", help="Compile with each target's own compiler.")] = False,
    json: JsonOption = None,
) -> None:
    """Write DIR/<target>/<kernel>.py and DIR/manifest.json."""
    from kdsl.cli.report import reported
    from kdsl.runtime.build import build as build_kernel
    from kdsl.runtime.loading import load

    with reported(json) as collected:
        targets = parse_targets(target)
        archs = parse_archs(arch, targets)
        tiles = parse_tiles(settings or ())
        kernels = load(source)
        _one_file_each(kernels)
        _meant_for_some(tiles, kernels)
        diagnose = functools.cache(screen.show_diagnostic)  # what is true of every kernel is said once
        with screen.progress() as progress:
            for each in kernels:
                try:
                    collected.rows += build_kernel(
                        each.kernel,
                        each.label,
                        targets,
                        out,
                        archs,
                        tiles,
                        check,
                        progress,
                        lambda error: diagnose(error.render()),
                    )
                except OSError as error:
                    raise fail("K0409", None, path=error.filename or out, problem=error.strerror or error) from error
    raise typer.Exit(collected.exit_status())


def _one_file_each(kernels: Sequence[Loaded]) -> None:
    """Raises KdslError K0408 where two kernels of different modules have one name."""
    by_name: dict[str, str] = {}
    for each in kernels:
        first = by_name.setdefault(each.kernel.name, each.label)
        if first != each.label:
            raise fail("K0408", None, first=first, second=each.label, file=f"{each.kernel.name}.py")


def _meant_for_some(tiles: Mapping[str, int], kernels: Sequence[Loaded]) -> None:
    """Raises KdslError for a tile size that no kernel has: K0503 where there is one kernel, K0405 where are several."""
    from kdsl.runtime.examples import default_example

    if not tiles:
        return
    try:
        known = {tile.name for each in kernels for tile in default_example(each.kernel).kernel.tiles}
    except KdslError:  # this kernel will be refused, with the reason; which tile sizes it has is not known
        return
    for name in tiles.keys() - known:
        if len(kernels) == 1:
            raise fail("K0503", None, kernel=kernels[0].kernel.name, name=name)
        raise fail("K0405", None, text=f"{name}={tiles[name]}, a tile size of none of these kernels,")
