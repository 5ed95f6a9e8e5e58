"""Building one kernel: emitted for each target, checked by the target's compiler if asked, written with a manifest.

Nothing is written until everything is known, so an interrupted build leaves what was there before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kdsl.diagnostics import KdslError, fail
from kdsl.equivalence.verdict import Outcome, Verdict
from kdsl.ir.kernel import bind
from kdsl.lang.kernel import Kernel
from kdsl.runtime import unexpected
from kdsl.runtime.description import describe, in_words
from kdsl.runtime.examples import Binding, default_example
from kdsl.runtime.manifest import Manifest
from kdsl.runtime.target import Report, Source, Target, architectures, find_target, target_names
from kdsl.runtime.threads import Progress, in_threads


@dataclass
class _Attempt:
    """One kernel on one target, as far as it came. `base` is what its rows have in common."""

    base: Verdict
    target: Target | None = None
    source: Source | None = None
    rows: list[Verdict] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)

    def add(self, verdict: Outcome, **values: Any) -> None:
        self.rows.append(replace(self.base, verdict=verdict, **values))

    def refuse(self, error: KdslError, **values: Any) -> None:
        place = {} if error.location is None else {"file": error.location.file, "line": error.location.line}
        self.add(
            Outcome.REFUSED, code=error.code, message=f"{error.message}; what to do: {error.hint}", **place, **values
        )


def build(
    kernel: Kernel,
    source: str,
    targets: Sequence[str],
    out: Path,
    archs: Sequence[str] = (),
    tiles: Mapping[str, int] | None = None,
    check: bool = False,
    progress: Progress = lambda text: None,
    diagnose: Callable[[KdslError], None] = lambda error: None,
) -> list[Verdict]:
    """Write `out/<target>/<kernel>.py` for each target, and `out/manifest.json`.

    `source` is the kernel's label, `module:function`. The kernel's default example gives dtypes, constants and sizes;
    `tiles` are tile sizes that the user chose, of which those that this kernel has count. With `check`, each target's
    compiler is asked about each of `archs` that is the target's (empty: all of them).

    Returns one row a target, or one for each target and architecture that was checked. Where a target refuses, no files
    stay there, not even those of an earlier build. `diagnose` is given refusals, to be shown in full.
    Raises KdslError K0409 and OSError if the folder cannot be written to; all else becomes a row.
    """
    manifest = Manifest(out)
    manifest.entries()  # what is no manifest is found before the work, not after it
    attempts = [
        _Attempt(Verdict(kernel=source, target=name, verdict=Outcome.BUILT, declared_refusal=kernel.refuses.get(name)))
        for name in targets
    ]
    example = _example(kernel, tiles or {}, attempts, diagnose)
    if example is not None:
        for attempt in attempts:
            progress(f"{source}: writing {attempt.base.target}")
            _emit(attempt, example, diagnose)
        if check:
            list(in_threads(lambda attempt, say: _check(attempt, example, archs, say), attempts, progress))
    for attempt in attempts:
        _store(attempt, kernel, example, manifest, checked=check)
    return [row for attempt in attempts for row in attempt.rows]


def _example(
    kernel: Kernel, tiles: Mapping[str, int], attempts: Sequence[_Attempt], diagnose: Callable[[KdslError], None]
) -> Binding | None:
    """The default example with the user's tile sizes. If there is no sound one, all attempts end with the reason."""
    try:
        example = default_example(kernel)
        own = {tile.name for tile in example.kernel.tiles}
        example = replace(example, tiles={**example.tiles, **{n: size for n, size in tiles.items() if n in own}})
        bind(example.kernel, example.sizes, example.tiles)  # sizes meet the kernel's constraints
        return example
    except KdslError as error:
        diagnose(error)
        for attempt in attempts:
            attempt.refuse(error)
    except Exception as error:
        message = unexpected.summary(error)
        for attempt in attempts:
            attempt.add(Outcome.ERROR, message=message)
    return None


# -- source --------------------------------------------------------------------------------------------------------


def _emit(attempt: _Attempt, example: Binding, diagnose: Callable[[KdslError], None]) -> None:
    """Source for the target, or a row that says why not."""
    started = time.perf_counter()
    try:
        attempt.target = _target(attempt.base.target, example)
        emitted = attempt.target.emit(example.kernel, example.tiles, example.sizes)
        compile(emitted.text, f"<{attempt.base.target}>", "exec", dont_inherit=True)
    except KdslError as error:
        if error.code != attempt.base.declared_refusal:
            diagnose(error)
        attempt.refuse(error, seconds=time.perf_counter() - started)
    except Exception as error:
        attempt.add(Outcome.ERROR, message=unexpected.summary(error), seconds=time.perf_counter() - started)
    else:
        attempt.source = emitted
        seconds = time.perf_counter() - started
        attempt.base = replace(attempt.base, form=emitted.form, checks=("it is Python source",), seconds=seconds)


def _target(name: str, example: Binding) -> Target:
    if name == "numpy":
        what = {"target": name, "problem": "it is the oracle itself, which has no source"}
        raise fail("K0301", example.kernel.location, **what, instead="use `kdsl verify --target numpy`")
    if name not in target_names():
        raise fail("K0309", None, target=name)
    return find_target(name)


# -- the compilers' verdict ----------------------------------------------------------------------------------------


def _check(attempt: _Attempt, example: Binding, archs: Sequence[str], progress: Progress) -> None:
    """Ask the target's compiler about what was emitted; a row for each architecture."""
    if attempt.target is None or attempt.source is None:
        return
    for arch in architectures(attempt.target, archs):
        progress(f"{attempt.base.kernel}: compiling for {attempt.base.target} {arch}")
        started = time.perf_counter()
        try:
            report = attempt.target.check(attempt.source, example.sizes, arch)
        except KdslError as error:
            attempt.refuse(error, arch=arch)
        except Exception as error:
            attempt.add(Outcome.ERROR, arch=arch, message=unexpected.summary(error))
        else:
            attempt.reports.append(report)
            _judge(attempt, report, example, time.perf_counter() - started)


def _judge(attempt: _Attempt, report: Report, example: Binding, seconds: float) -> None:
    asked = f"compiler for {report.arch}, {in_words(example)}"
    values: dict[str, Any] = {"arch": report.arch, "checks": (*attempt.base.checks, asked), "seconds": seconds}
    if report.accepted:
        attempt.add(Outcome.COMPILED, **values)
        return
    where = f"line {report.line} of the emitted source: " if report.line is not None else ""
    problem = where + report.message
    attempt.refuse(
        fail("K0306", example.kernel.location, target=attempt.base.target, arch=report.arch, problem=problem), **values
    )


# -- files ---------------------------------------------------------------------------------------------------------


def _store(attempt: _Attempt, kernel: Kernel, example: Binding | None, manifest: Manifest, checked: bool) -> None:
    """Write the attempt's files, or remove those of an earlier one; complete its rows."""
    target, source = attempt.base.target, attempt.source
    label = attempt.base.kernel
    if source is None or example is None:
        removed = manifest.replace(label, target, {}, None)
        if removed:
            note = f"removed from an earlier build: {', '.join(removed)}"
            attempt.rows = [replace(row, message=f"{row.message} ({note})") for row in attempt.rows]
        return
    if not attempt.rows:
        attempt.add(Outcome.BUILT)
    files = {f"{target}/{kernel.name}.py": source.text, **_artefacts(attempt, kernel.name)}
    entry = describe(kernel, example, source, attempt.rows, attempt.reports, manifest.folder, checked)
    manifest.replace(label, target, files, entry)
    path = str(manifest.folder / target / f"{kernel.name}.py")
    attempt.rows = [replace(row, source=path) for row in attempt.rows]


def _artefacts(attempt: _Attempt, name: str) -> dict[str, str | bytes]:
    """What the compilers made, by file name; the architecture is part of it where the target has several."""
    assert attempt.target is not None
    several = len(attempt.target.archs) > 1
    return {
        f"{attempt.base.target}/{name}{f'.{_in_file_name(report.arch)}' if several else ''}{suffix}": content
        for report in attempt.reports
        for suffix, content in report.artefacts.items()
    }


def _in_file_name(arch: str) -> str:
    return arch.replace(":", "-")
