"""Arguments and options that several commands have, and what their text means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdsl.diagnostics import fail

if TYPE_CHECKING:
    from kdsl.lang.kernel import Example, Kernel

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SRC[::KERNEL]",
        help="A Python file, a folder of them, or an importable module; ::KERNEL picks one kernel.",
        show_default=False,
    ),
]
TargetOption = Annotated[
    str,
    typer.Option(
        "--target", metavar="T[,T]|all", help="Targets, as `kdsl targets` lists them; all: all that are installed."
    ),
]
ArchOption = Annotated[
    str,
    typer.Option(
        "--arch", metavar="A[,A]", help="Only these architectures, such as cuda:90 or v5e.", show_default="all"
    ),
]
SettingsOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A tile size, as in BM=64; repeatable.")
]
JsonOption = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the verdicts there as JSON (docs/schema/verdict.json)."),
]


def parse_targets(text: str) -> list[str]:
    """Names of targets; `all` means those that are installed. Raises KdslError K0403 for a name nobody knows."""
    from kdsl.runtime.target import KNOWN, target_names

    names = _parts(text)
    known = list(dict.fromkeys([*target_names(), *KNOWN]))
    for name in names or [text]:
        if name not in (*known, "all"):
            raise fail("K0403", None, name=name or "''", known=", ".join([*known, "all"]))
    return list(dict.fromkeys(each for name in names for each in (target_names() if name == "all" else [name])))


def parse_archs(text: str, targets: Sequence[str]) -> list[str]:
    """Names of architectures. Raises KdslError K0404 for one that none of these targets has."""
    names = _parts(text)
    if not names:
        return []
    known = list(dict.fromkeys(arch for target in targets for arch in _archs(target)))
    for name in names:
        if name not in known:
            raise fail("K0404", None, name=f"{name} of {', '.join(targets)}", known=", ".join(known) or "none")
    return names


def _archs(target: str) -> Iterable[str]:
    from kdsl.runtime.target import KNOWN, find_target

    if target in KNOWN:
        return KNOWN[target]
    return find_target(target).archs


def parse_tiles(settings: Iterable[str]) -> dict[str, int]:
    """Tile sizes from NAME=VALUE. Raises KdslError K0405 for another form, K0504 for a size that is not positive."""
    tiles = {}
    for text in settings:
        name, equals, value = text.partition("=")
        try:
            size = int(value)
        except ValueError:
            size = None
        if not (name.isidentifier() and equals) or size is None:
            raise fail("K0405", None, text=text or "''")
        if size < 1:
            raise fail("K0504", None, name=name, value=size)
        tiles[name] = size
    return tiles


def pick_example(kernel: Kernel, number: int) -> Example:
    """The example of that number, from 1. Raises KdslError K0406 for no example, typer.BadParameter for too few."""
    from kdsl.runtime.examples import examples_of

    examples = examples_of(kernel)
    if number > len(examples):
        raise typer.BadParameter(f"{kernel.name} has {len(examples)} examples", param_hint="--example")
    return examples[number - 1]


def _parts(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
