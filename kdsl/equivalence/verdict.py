"""Verdicts: what is known about one kernel on one target, and the report that a command writes.

`docs/schema/verdict.json` documents the JSON, field by field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from kdsl.runtime.files import write_atomically


class Outcome(StrEnum):
    """How far a kernel came on a target."""

    BUILT = "built"  # source was written
    COMPILED = "compiled"  # the target's compiler took it; it was not run
    VERIFIED = "verified"  # it ran and agrees
    UNDECIDED = "undecided"  # too many elements hang on a comparison that rounding can flip, or nothing to compare with
    MISMATCH = "mismatch"  # it ran and disagrees
    REFUSED = "refused"  # the target cannot do it, for a reason that names the author's line
    ERROR = "error"  # a fault of kdsl's own


HOLDING = frozenset({Outcome.BUILT, Outcome.COMPILED, Outcome.VERIFIED})


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One kernel on one target. None means: does not apply, or was not measured."""

    kernel: str  # module:function
    target: str  # gpu, tpu, cpu, trainium, numpy
    verdict: Outcome
    source: str | None = None  # the emitted file
    record: str | None = None  # the recorded launch that it was judged on
    arch: str | None = None  # cuda:90, v5e, x86, ...
    form: str | None = None  # the way of emitting that was chosen: grid, dma, xla, ...
    code: str | None = None  # the diagnostic's, of a refusal
    message: str | None = None  # why, where, by how much: for a reader
    file: str | None = None  # the place in the author's source
    line: int | None = None
    error_used_of_bound: float | None = None  # largest |difference| / bound over all elements; verified is at most 1
    undecided_fraction: float | None = None  # of the output elements
    checks: tuple[str, ...] = ()  # what was done to reach the verdict, in order
    seconds: float | None = None  # wall time
    # A small example that fails, as a Python file; not part of the JSON.
    counterexample: str | None = field(default=None, metadata={"json": False})
    # The refusal that the kernel declares for this target, `refuses={"tpu": "K0301"}`; not part of the JSON.
    declared_refusal: str | None = field(default=None, metadata={"json": False})

    @property
    def holds(self) -> bool:
        """Is this what was asked for? Of a kernel that declares a refusal: that refusal and nothing else."""
        if self.declared_refusal is not None:
            return self.verdict is Outcome.REFUSED and self.code == self.declared_refusal
        return self.verdict in HOLDING

    def to_json(self) -> dict[str, Any]:
        """The row of the schema. JSON has no infinity and no NaN: such a number becomes null."""
        return {
            column.name: _finite(getattr(self, column.name))
            for column in fields(self)
            if column.metadata.get("json", True)
        }


@dataclass(frozen=True)
class VerdictReport:
    """The verdicts of one command, and the versions of what was used to reach them (name -> version)."""

    rows: Sequence[Verdict]
    versions: Mapping[str, str]

    def exit_status(self) -> int:
        """0 if every row holds; else the gravest: 4 error, 3 mismatch, 1 refused, undecided or not as declared."""
        outcomes = {row.verdict for row in self.rows if not row.holds}
        if Outcome.ERROR in outcomes:
            return 4
        if Outcome.MISMATCH in outcomes:
            return 3
        return 1 if outcomes else 0

    def to_json(self) -> dict[str, Any]:
        return {"rows": [row.to_json() for row in self.rows], "versions": dict(self.versions)}

    def write(self, path: Path) -> None:
        """Write the JSON; a reader sees the old file or the new one, never a part."""
        write_atomically(path, json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return list(value) if isinstance(value, tuple) else value
