"""The target `tpu`: Pallas source in grid form, compiled by libtpu with no TPU, run by Pallas' interpreter on x86."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kdsl.diagnostics import fail
from kdsl.ir.kernel import Buffer, Kernel, size_values
from kdsl.runtime.target import AccuracyTable, Report, Source, Toolchain

from .accuracy import ACCURACY

if TYPE_CHECKING:
    from kdsl.runtime.target import Array
    from kdsl.runtime.worker import Worker, WorkerFailure

TOOLCHAIN = "kdsl.integrations.jax.toolchain"
COMPILE_SECONDS, RUN_SECONDS = 120, 300


class PallasTarget:
    """Grid form: BlockSpecs fetch one block of each tensor a step; a loop becomes the innermost, ordered grid axis."""

    name = "tpu"
    archs = ("v5e", "v6e", "v7x")
    accuracy: AccuracyTable = ACCURACY

    def toolchain(self) -> Toolchain:
        from kdsl.runtime.worker import WorkerFailure

        try:
            values = _worker().call(f"{TOOLCHAIN}:probe", {}, timeout=COMPILE_SECONDS).values
        except WorkerFailure as failure:
            return Toolchain({}, dict.fromkeys(self.archs, failure.message), "nothing: jax does not start")
        versions = {package: version for package, version in values["versions"].items() if version is not None}
        missing = {arch: values["missing"].get(arch) for arch in self.archs}
        return Toolchain(versions, missing, "Pallas' interpreter on x86")

    def legalize(self, kernel: Kernel) -> Kernel:
        from .legalize import legalize

        return legalize(kernel)

    def emit(self, kernel: Kernel, tiles: Mapping[str, int], sizes: Mapping[str, int]) -> Source:
        from .emit import module_text
        from .plan import make_plan
        from .tiles import choose_tiles

        plan = make_plan(self.legalize(kernel))
        choice = choose_tiles(plan, tiles, sizes)
        return Source(self.name, kernel, kernel.name, module_text(plan, choice), "grid", choice.sizes, choice.notes)

    def check(self, source: Source, sizes: Mapping[str, int], arch: str) -> Report:
        from kdsl.codegen.hostplan import host_plan
        from kdsl.runtime.worker import WorkerFailure

        values = size_values(source.kernel, sizes)
        arguments = [
            {
                "name": each.name,
                "kind": "array",
                "shape": [int(extent.evaluate(values)) for extent in each.shape],
                "dtype": each.dtype.numpy.name,
            }
            if isinstance(each, Buffer)
            else {"kind": "scalar", "value": 1}
            for each in host_plan(source.kernel).arguments
        ]
        payload = _payload(source, arguments, values) | {"arch": arch}
        try:
            figures = _worker().call(f"{TOOLCHAIN}:compile_tpu", payload, timeout=COMPILE_SECONDS).values
        except WorkerFailure as failure:
            self._blame_installation(failure)
            line = re.search(r"\bline (\d+)", failure.message)
            return Report(arch, False, failure.message, int(line[1]) if line else None)
        if figures["custom_calls"] < 1:
            return Report(arch, False, "the compiled program has no Pallas kernel in it", figures=figures)
        return Report(arch, True, figures=figures)

    def run(self, source: Source, sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> dict[str, Array]:
        import numpy as np

        from kdsl.codegen.hostplan import host_plan
        from kdsl.runtime.worker import WorkerFailure, run_failure

        plan = host_plan(source.kernel)
        arrays = {each.name: np.asarray(arguments[each.name]) for each in plan.arguments if isinstance(each, Buffer)}
        given = [
            {"name": each.name, "kind": "array"}
            if isinstance(each, Buffer)
            else {"kind": "scalar", "value": np.asarray(arguments[each.name]).item()}
            for each in plan.arguments
        ]
        payload = _payload(source, given, size_values(source.kernel, sizes), interpret=True)
        try:
            outputs = _worker().call(f"{TOOLCHAIN}:run", payload, arrays, timeout=RUN_SECONDS).arrays
        except WorkerFailure as failure:
            self._blame_installation(failure)
            raise run_failure(failure, source.kernel.location, self.name) from None
        return {name: outputs[str(place)] for place, name in enumerate(plan.results)}

    def _blame_installation(self, failure: WorkerFailure) -> None:
        """Raise K0305 if the tool-chain is not there."""
        from kdsl.runtime.worker import WorkerError

        if isinstance(failure, WorkerError) and failure.kind in ("ImportError", "ModuleNotFoundError"):
            raise fail("K0305", None, target=self.name, missing=failure.message, extra="tpu") from None


def _payload(
    source: Source, arguments: list[dict[str, Any]], sizes: Mapping[str, int], **keywords: Any
) -> dict[str, Any]:
    """What the tool-chain's functions take (see there)."""
    from kdsl.codegen.hostplan import host_plan

    return {
        "source": source.text,
        "function": source.function,
        "arguments": arguments,
        "keywords": {name: sizes[name] for name in host_plan(source.kernel).keywords} | keywords,
    }


def _worker() -> Worker:
    from kdsl.integrations.jax.toolchain import ENVIRONMENT
    from kdsl.runtime.worker import worker

    return worker("jax", ENVIRONMENT)


TARGET = PallasTarget()
