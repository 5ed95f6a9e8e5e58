"""The cpu target: JAX source, exported to StableHLO, verified as such and run by XLA on x86."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdsl.diagnostics import fail
from kdsl.ir.kernel import Buffer, Kernel, Scalar, bind
from kdsl.runtime.target import AccuracyTable, Array, Report, Source, Toolchain
from kdsl.runtime.worker import Reply, WorkerFailure, run_failure, worker

from .accuracy import ACCURACY

FUNCTIONS = "kdsl.integrations.jax.toolchain"
TIMEOUT = 120  # seconds; XLA compiles the largest module of the tests in under 5


@dataclass(frozen=True)
class StableHlo:
    """Builds kernels for any XLA device. What is run is the StableHLO module that was exported, not the source."""

    name: str = "cpu"
    archs: tuple[str, ...] = ("x86",)

    @property
    def accuracy(self) -> AccuracyTable:
        return ACCURACY

    def toolchain(self) -> Toolchain:
        from importlib import metadata

        versions: dict[str, str] = {}
        for package in ("jax", "jaxlib"):
            try:
                versions[package] = metadata.version(package)
            except metadata.PackageNotFoundError:
                return Toolchain(versions, {"x86": f"{package} is not installed"}, "XLA on x86")
        return Toolchain(versions, {"x86": None}, "XLA on x86")

    def legalize(self, kernel: Kernel) -> Kernel:
        from .legalize import legalize

        return legalize(kernel)

    def emit(self, kernel: Kernel, tiles: Mapping[str, int], sizes: Mapping[str, int]) -> Source:
        from .emit import emit_module, is_wide

        chosen = {tile.name: int(tiles.get(tile.name, tile.default)) for tile in kernel.tiles}
        for name in tiles.keys() - chosen.keys():
            raise fail("K0503", kernel.location, kernel=kernel.name, name=name)
        for name, value in chosen.items():
            if value < 1:
                raise fail("K0504", kernel.location, name=name, value=value)
        legal = self.legalize(kernel)
        notes = ("uses 64-bit types, which JAX has only under jax_enable_x64",) if is_wide(legal) else ()
        launch = {"x64": is_wide(legal)}
        return Source(self.name, kernel, kernel.name, emit_module(legal, chosen), "sequential", chosen, notes, launch)

    def check(self, source: Source, sizes: Mapping[str, int], arch: str) -> Report:
        try:
            values = self._export(source, sizes).values
        except WorkerFailure as failure:
            return Report(arch, False, failure.message)
        figures = {
            "stablehlo_lines": values["text"].count("\n"),
            "artefact_bytes": values["bytes"],
            "platforms": values["platforms"],
        }
        return Report(arch, True, figures=figures, artefacts={".mlir": values["text"]})

    def run(self, source: Source, sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> dict[str, Array]:
        parameters = _parameters(source.kernel)
        arrays = {p.name: np.asarray(arguments[p.name], p.dtype.numpy) for p in parameters}
        try:
            text = self._export(source, sizes).values["text"]
            payload = {"text": text, "names": [p.name for p in parameters]}
            results = _call("run_stablehlo", payload, arrays).arrays
        except WorkerFailure as failure:
            raise run_failure(failure, source.kernel.location, self.name) from failure
        return {buffer.name: results[str(place)] for place, buffer in enumerate(source.kernel.written)}

    def _export(self, source: Source, sizes: Mapping[str, int]) -> Reply:
        """The StableHLO module for these sizes. Scalars stay arguments of it, so that it serves all their values."""
        from kdsl.codegen.hostplan import host_plan

        self._need_jax(source)
        bound = bind(source.kernel, sizes)
        arguments = [
            {"name": p.name, "kind": "array", "shape": _shape(p), "dtype": p.dtype.numpy.name}
            for p in _parameters(bound)
        ]
        keywords = {name: int(sizes[name]) for name in host_plan(source.kernel).keywords}
        payload = {"source": source.text, "function": source.function, "arguments": arguments, "keywords": keywords}
        return _exported(json.dumps(payload | {"x64": source.launch["x64"]}))

    def _need_jax(self, source: Source) -> None:
        missing = self.toolchain().archs["x86"]
        if missing is not None:
            raise fail("K0305", source.kernel.location, target=self.name, missing=missing, extra="tpu")


@functools.lru_cache(maxsize=64)
def _exported(payload: str) -> Reply:
    """The export of a payload, once: a kernel is run on many inputs of the same sizes."""
    return _call("export_stablehlo", json.loads(payload), {})


def _call(function: str, payload: dict[str, Any], arrays: Mapping[str, Array]) -> Reply:
    from kdsl.integrations.jax.toolchain import ENVIRONMENT

    return worker("jax", ENVIRONMENT).call(f"{FUNCTIONS}:{function}", payload, arrays, TIMEOUT)


def _parameters(kernel: Kernel) -> list[Buffer | Scalar]:
    """What an emitted function takes, in order."""
    return [p for p in kernel.parameters if isinstance(p, Scalar) or p.role != "out"]


def _shape(parameter: Buffer | Scalar) -> list[int]:
    shape = parameter.shape if isinstance(parameter, Buffer) else ()
    return [int(size.evaluate({})) for size in shape]
