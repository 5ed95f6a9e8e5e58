"""Targets for tests: the oracle in place of emitted code, whole or with a fault planted in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

from kdsl.diagnostics import fail
from kdsl.interpreter import run
from kdsl.interpreter.accuracy import ACCURACY
from kdsl.interpreter.stepped import Program, points, take_arguments, worst
from kdsl.ir.kernel import Kernel, Op, bind
from kdsl.ir.meaning import Array
from kdsl.ir.rewrite import map_ops
from kdsl.passes import run_passes
from kdsl.runtime.target import AccuracyTable, Report, Source, Toolchain

Run = Callable[[Kernel, Mapping[str, Any]], dict[str, Array]]


@dataclass
class FakeTarget:
    """A target whose `execute` runs a bound kernel; by default the oracle does, so that all is right."""

    execute: Run = run
    name: str = "fake"
    archs: tuple[str, ...] = ("one", "two")
    accuracy: AccuracyTable = field(default_factory=lambda: ACCURACY)
    emitted: int = 0

    def toolchain(self) -> Toolchain:
        return Toolchain({}, dict.fromkeys(self.archs), "the oracle")

    def legalize(self, kernel: Kernel) -> Kernel:
        return kernel

    def emit(self, kernel: Kernel, tiles: Mapping[str, int], sizes: Mapping[str, int]) -> Source:
        self.emitted += 1
        chosen = {tile.name: tile.default for tile in kernel.tiles} | dict(tiles)
        return Source(self.name, kernel, kernel.name, "", "whole", chosen)

    def check(self, source: Source, sizes: Mapping[str, int], arch: str) -> Report:
        return Report(arch, arch == "one", message="too large for it")

    def run(self, source: Source, sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> dict[str, Array]:
        return self.execute(bind(source.kernel, sizes, source.tiles), arguments)


# -- faults --------------------------------------------------------------------------------------------------------


def changed(change: Callable[[Op], Op]) -> Run:
    """A run of the kernel with explicit edges, its ops changed."""

    def execute(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Array]:
        padded = run_passes(kernel, ["pad_extents", "explicit_edges"])
        return run(map_ops(padded, change), arguments, poison=lambda dtype, shape: np.ones(shape, dtype.numpy))

    return execute


def mask_dropped(op: Op) -> Op:
    """Every select takes what its mask guards, and fills are gone: lanes beyond the edge take part."""
    if op.name == "select":
        return replace(op, operands=(op.operands[0], op.operands[1], op.operands[1]))
    kept = {key: value for key, value in op.attributes.items() if key != "fill"}
    return replace(op, attributes=kept) if op.name == "load" else op


def index_shifted(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Array]:
    """Every input is read one element too far, around the end."""
    return run(kernel, {name: np.roll(value, 1) if np.ndim(value) else value for name, value in arguments.items()})


def last_iteration_skipped(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Array]:
    axes = tuple(replace(a, extent=a.extent - 1) if a.kind == "loop" else a for a in kernel.axes)
    return run(replace(kernel, axes=axes), arguments)


def outputs_swapped(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Array]:
    written = run(kernel, arguments)
    return dict(zip(written, reversed(written.values()), strict=True))


def one_element_wrong(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Array]:
    written = run(kernel, arguments)
    for array in written.values():
        array.flat[array.size // 2] += np.float32(1)
    return written


class Narrow(Program):
    """Sums and products along an axis leave bf16 accumulators."""

    def evaluate(self, op: Op) -> list[Array]:
        results = super().evaluate(op)
        if op.name not in ("dot", "reduce"):
            return results
        return [result.astype(ml_dtypes.bfloat16).astype(result.dtype) for result in results]


def bf16_accumulators(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Array]:
    memory, scalars = take_arguments(kernel, arguments, worst)
    with np.errstate(all="ignore"):
        for point in points(kernel):
            Narrow(kernel, memory, scalars, point, worst).run(kernel.body, [])
    return {buffer.name: memory[buffer.name] for buffer in kernel.written}


def refuses(code: str, **fields: object) -> Run:
    def execute(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Array]:
        raise fail(code, kernel.body.ops[-1].location, target="fake", **fields)

    return execute


def crashes(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Array]:
    raise RuntimeError("no such\nregister")


def forgets_an_output(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Array]:
    return {}
