"""The target protocol: what a backend gives, and what comes out of it. Targets are found by entry point.

kernel -> legalize -> emit -> Source -> check (the real compiler, no device) and run (a host stand-in)
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from kdsl.diagnostics import fail
from kdsl.ir.dtypes import F32, F64, DType
from kdsl.ir.kernel import Kernel, Op

Array = np.ndarray[Any, np.dtype[Any]]
GROUP = "kdsl.backends"

# The names that have a meaning whether or not the target is installed; a third party's come with its backend.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "gpu": ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942", "hip:gfx950"),
    "tpu": ("v5e", "v6e", "v7x"),
    "cpu": ("x86",),
    "trainium": ("trn2", "trn3"),
    "numpy": (),  # the oracle itself
}


@dataclass(frozen=True)
class Source:
    """Emitted source: a module that stands alone, and the function in it to call.

    `form` names how the kernel was mapped (grid, sequential, ...), `tiles` the tile sizes that are the defaults of the
    function, `notes` whatever was chosen or changed on the way and a user should know. `launch` is what the backend's
    own check needs, as JSON-able data.
    """

    target: str
    kernel: Kernel
    function: str
    text: str
    form: str
    tiles: Mapping[str, int]
    notes: tuple[str, ...] = ()
    launch: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """What the target's compiler said for one architecture.

    `figures` are numbers worth showing; `line` is in the emitted source.
    """

    arch: str
    accepted: bool
    message: str = ""
    line: int | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    artefacts: Mapping[str, str | bytes] = field(default_factory=dict)  # file suffix -> content, e.g. ".mlir"


@dataclass(frozen=True)
class Toolchain:
    """What was found: versions by package, and for each architecture None or why it cannot be checked here."""

    versions: Mapping[str, str]
    archs: Mapping[str, str | None]
    runs_on: str  # what `run` uses, in words


@dataclass(frozen=True)
class Accuracy:
    """How far one op may be from the exact result, on a target: `ulp` of the result's dtype plus `absolute`.

    Of a sum or dot `ulp` counts for each term, and `addition` for each addition, in ulp of the accumulator: more than
    0.5 if it does not round to nearest, so that all errors may have one sign. `source` says who states it. An op
    without an entry is rounded correctly (0.5 ulp).
    """

    ulp: float
    absolute: float = 0.0
    source: str = ""
    addition: float = 0.5


# (op, dtype name of the result) -> Accuracy; dtype "*" for all. A dot of f32 or f64 operands with precision ieee, which
# matrix units may not do, may have an entry of its own as IEEE_DOT.
AccuracyTable = Mapping[tuple[str, str], Accuracy]
IEEE_DOT = "dot ieee"


class Target(Protocol):
    """A backend. `emit` needs no tool-chain; `check` and `run` do their work in worker processes."""

    name: str
    archs: tuple[str, ...]
    accuracy: AccuracyTable

    def toolchain(self) -> Toolchain:
        """What is installed. Never raises: what is missing is said in it."""

    def legalize(self, kernel: Kernel) -> Kernel:
        """The kernel in the form that `emit` prints. Raises KdslError for what the target cannot do (K03xx)."""

    def emit(self, kernel: Kernel, tiles: Mapping[str, int], sizes: Mapping[str, int]) -> Source:
        """Source for an unbound kernel as the front end gives it. `tiles` are the user's choices (kernel defaults
        elsewhere); `sizes` those of the example, for choices that need a size: the source stays valid for others.
        Raises KdslError."""

    def check(self, source: Source, sizes: Mapping[str, int], arch: str) -> Report:
        """Compile for one architecture and the sizes of an example. Raises KdslError K0305 if it cannot be tried."""

    def run(self, source: Source, sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> dict[str, Array]:
        """Run on the host stand-in; arrays and numbers in, the written arrays out, by name.

        Raises KdslError K0307 if the emitted code fails to run.
        """


def target_names() -> tuple[str, ...]:
    """The names of all installed targets, in the order gpu, tpu, cpu, trainium, then others. Loads none of them."""
    order = list(KNOWN)
    names = {entry.name for entry in importlib.metadata.entry_points(group=GROUP)}
    return tuple(sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name)))


def targets() -> dict[str, Target]:
    """All installed targets by name, in that order."""
    return {name: find_target(name) for name in target_names()}


def find_target(name: str) -> Target:
    """The target of that name. Raises KdslError K0403 where none is installed."""
    for entry in importlib.metadata.entry_points(group=GROUP, name=name):
        target: Target = entry.load()
        return target
    raise fail("K0403", None, name=name, known=", ".join(target_names()))


def addition_of(table: AccuracyTable, op: Op) -> Accuracy:
    """The entry of a table for the sums of a reduce, scan or dot."""
    wide = op.name == "dot" and all(value.dtype in (F32, F64) for value in op.operands)
    if wide and op.attributes.get("precision") == "ieee" and (IEEE_DOT, op.result.dtype.name) in table:
        return table[IEEE_DOT, op.result.dtype.name]
    return accuracy_of(table, op.name, op.result.dtype)


def accuracy_of(table: AccuracyTable, op: str, dtype: DType) -> Accuracy:
    """The entry of a table for an op and dtype; correct rounding where there is none."""
    return table.get((op, dtype.name)) or table.get((op, "*")) or Accuracy(0.5)


def architectures(target: Target, wanted: Sequence[str]) -> tuple[str, ...]:
    """Those of the wanted architectures that are this target's; all of the target's if none are wanted."""
    return tuple(arch for arch in target.archs if not wanted or arch in wanted)
