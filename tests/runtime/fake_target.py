"""A target that emits and compiles nothing real, and fails on demand: FAKE_TARGET in the environment says how.

`installed` makes it a target as a third party would, by a distribution with an entry point.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kdsl.diagnostics import fail
from kdsl.ir.kernel import Kernel
from kdsl.runtime.target import Report, Source, Toolchain


class FakeTarget:
    name = "fake"
    archs = ("fake:1", "fake:2")
    accuracy: Mapping[tuple[str, str], Any] = {}

    def toolchain(self) -> Toolchain:
        missing = "no compiler" if os.environ.get("FAKE_TARGET") == "missing" else None
        return Toolchain({"fakec": "9.9"}, dict.fromkeys(self.archs, missing), "nothing")

    def legalize(self, kernel: Kernel) -> Kernel:
        return kernel

    def emit(self, kernel: Kernel, tiles: Mapping[str, int], sizes: Mapping[str, int]) -> Source:
        behaviour = os.environ.get("FAKE_TARGET")
        if behaviour == "refuse":
            raise fail("K0301", kernel.location, target=self.name, problem="no such thing", instead="do without")
        if behaviour == "crash":
            raise ZeroDivisionError("emitters have bugs")
        chosen = {tile.name: tiles.get(tile.name, tile.default) for tile in kernel.tiles}
        text = "def (:\n" if behaviour == "garbage" else f"def {kernel.name}():\n    return {chosen}\n"
        return Source(self.name, kernel, kernel.name, text, "flat", chosen, ("nothing was lost",))

    def check(self, source: Source, sizes: Mapping[str, int], arch: str) -> Report:
        behaviour = os.environ.get("FAKE_TARGET")
        if behaviour == "missing":
            raise fail("K0305", None, target=self.name, missing="fakec", extra="fake")
        if behaviour == "hang":
            Path(os.environ["FAKE_TARGET_STARTED"]).touch()
            time.sleep(2)
        if behaviour == "reject" and arch == "fake:2":
            return Report(arch, False, "too many\nregisters", 2)
        if behaviour == "die":
            raise RuntimeError("[the] compiler died")
        return Report(arch, True, figures={"registers": 7, "ratio": float("nan")}, artefacts={".asm": f"; {arch}\n"})

    def run(self, source: Source, sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


TARGET = FakeTarget()


def install(folder: Path) -> Path:
    """A folder that, on the import path, makes `fake` an installed target, and `broken` one that cannot be loaded."""
    distribution = folder / "fake_target-1.0.dist-info"
    distribution.mkdir(parents=True)
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-target\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text(
        f"[kdsl.backends]\nfake = {__name__}:TARGET\nbroken = no_such_package:TARGET\n"
    )
    return folder
