"""The `gpu` target: Triton source, compiled for NVIDIA and AMD, run under Triton's interpreter."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from kdsl.codegen.hostplan import call_arguments
from kdsl.diagnostics import fail
from kdsl.ir.kernel import Buffer, Kernel, size_values
from kdsl.runtime.target import Array, Report, Source, Toolchain
from kdsl.runtime.worker import Worker, WorkerError, WorkerFailure, run_failure, worker

from .accuracy import ACCURACY
from .legalize import legalize
from .limits import NAME

MODULE = "kdsl.backends.triton.toolchain"
COMPILE_SECONDS, RUN_SECONDS = 300.0, 600.0


class GPU:
    """Implements kdsl.runtime.target.Target."""

    name = NAME
    archs = ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942", "hip:gfx950")
    accuracy = ACCURACY

    def toolchain(self) -> Toolchain:
        runs_on = "Triton's interpreter (NumPy)"
        if missing := _missing("triton"):
            return Toolchain({}, dict.fromkeys(self.archs, f"{missing} is not installed"), runs_on)
        try:
            found = _compiler().call(f"{MODULE}:probe", {}).values
        except WorkerFailure as failure:
            return Toolchain({}, dict.fromkeys(self.archs, failure.message), runs_on)
        versions = {name: version for name, version in found["versions"].items() if version is not None}
        archs = {arch: None if found["archs"].get(arch) else "Triton has no assembler for it" for arch in self.archs}
        return Toolchain(versions, archs, runs_on)

    def legalize(self, kernel: Kernel) -> Kernel:
        return legalize(kernel)

    def emit(self, kernel: Kernel, tiles: Mapping[str, int], sizes: Mapping[str, int]) -> Source:
        from .emit import emit

        return emit(kernel, tiles, sizes)

    def check(self, source: Source, sizes: Mapping[str, int], arch: str) -> Report:
        from .emit import launch_parameters

        self._require(source, "triton")
        environment = {**size_values(source.kernel, sizes), **source.tiles}
        signature, constants = {}, {}
        for parameter in launch_parameters(source.kernel):
            if parameter.kind == "constexpr" and parameter.form is not None:
                constants[parameter.name] = int(parameter.form.evaluate(environment))
            else:
                signature[parameter.name] = parameter.signature(environment)
        payload = {
            "source": source.text,
            "kernel": f"{source.function}_kernel",
            "arch": arch,
            "signature": signature,
            "constexprs": constants,
            "options": dict(source.launch),
        }
        try:
            reply = _compiler().call(f"{MODULE}:compile", payload, timeout=COMPILE_SECONDS)
        except WorkerFailure as failure:
            message, line = _place(failure)
            return Report(arch, False, message, line)
        figures = {name: value for name, value in reply.values.items() if name not in ("artefacts", "text")}
        return Report(arch, True, figures=figures, artefacts=reply.values.get("text", {}))

    def run(self, source: Source, sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> dict[str, Array]:
        self._require(source, "triton", "torch")
        positional, keywords = call_arguments(source.kernel, arguments, sizes)
        given: list[dict[str, Any]] = []
        arrays: dict[str, Array] = {}
        parameters = [p for p in source.kernel.parameters if not isinstance(p, Buffer) or p.role != "out"]
        for parameter, value in zip(parameters, positional, strict=True):
            if isinstance(parameter, Buffer):
                arrays[parameter.name] = np.asarray(value)
                given.append({"name": parameter.name, "kind": "array"})
            else:
                kind = float if parameter.dtype.is_float else bool if parameter.dtype.kind == "bool" else int
                given.append({"name": parameter.name, "kind": "scalar", "value": kind(value)})
        payload = {
            "source": source.text,
            "function": source.function,
            "arguments": given,
            "keywords": {**keywords, **({} if arrays else {"device": "cpu"})},
        }
        try:
            reply = _interpreter().call(f"{MODULE}:run", payload, arrays, timeout=RUN_SECONDS)
        except WorkerFailure as failure:
            raise run_failure(failure, source.kernel.location, NAME) from failure
        return {buffer.name: reply.arrays[str(place)] for place, buffer in enumerate(source.kernel.written)}

    def _require(self, source: Source, *modules: str) -> None:
        if missing := _missing(*modules):
            extra = "torch" if missing == "torch" else "gpu"
            raise fail("K0305", source.kernel.location, target=NAME, missing=missing, extra=extra)


def _missing(*modules: str) -> str | None:
    return next((name for name in modules if importlib.util.find_spec(name) is None), None)


def _compiler() -> Worker:
    return worker("gpu-compile", {"TRITON_INTERPRET": ""})


def _interpreter() -> Worker:
    return worker("gpu-run", {"TRITON_INTERPRET": "1"})


def _place(failure: WorkerFailure) -> tuple[str, int | None]:
    """The compiler's message, and its line in the emitted source where it knows one."""
    found = re.match(r"line (\d+): (.*)", failure.message, re.DOTALL) if isinstance(failure, WorkerError) else None
    return (found[2], int(found[1])) if found else (failure.message, None)
