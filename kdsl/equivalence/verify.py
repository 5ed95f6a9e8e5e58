"""`kdsl verify`: the oracle's properties of a kernel, and each target's emitted code against the oracle."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kdsl.diagnostics import KdslError, fail
from kdsl.equivalence.algebra.words import P
from kdsl.equivalence.bounds import error_bounds
from kdsl.equivalence.compare import UNDECIDED_ALLOWED, Comparison, OutputError, compare, identical, merge
from kdsl.equivalence.inputs import KINDS, draw_inputs
from kdsl.equivalence.poisons import POISONS
from kdsl.equivalence.properties import EXACT_PASSES, Violation, check_algebra, check_properties, check_text
from kdsl.equivalence.trials import draw_trials
from kdsl.equivalence.verdict import Outcome, Verdict
from kdsl.interpreter import checked, run
from kdsl.ir.kernel import bind
from kdsl.lang.kernel import Kernel
from kdsl.passes import PASSES
from kdsl.runtime.description import in_words, plain
from kdsl.runtime.examples import Binding
from kdsl.runtime.target import Source, Target, architectures, find_target, target_names
from kdsl.runtime.unexpected import summary

Progress = Callable[[str], None]
ORACLE_EXAMPLES, TARGET_EXAMPLES = 30, 6


def verify(
    kernel: Kernel,
    *,
    source: str,
    targets: Sequence[str],
    archs: Sequence[str] = (),
    examples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Judge a kernel on the oracle, then on each target's host stand-in. Nothing is raised: all becomes a row.

    `source` is the kernel's label, `module:function`. The first row is of the target "numpy", the oracle itself,
    whether asked for or not; then each target has one row, or one for each of `archs` that is its own, whose compiler
    is then asked too. `examples`, at least 1, is how many are tried in each row (default 30 on the oracle, 6 on a
    target). Equal seeds give equal examples.
    """
    session = _Session(kernel, source, examples, seed, progress or (lambda text: None))
    rows = [session.row("numpy", _judge_oracle)]
    for name in targets:
        if name != "numpy":
            rows += _target_rows(session, name, archs)
    return rows


@dataclass
class _Session:
    """What all rows of one call share."""

    kernel: Kernel
    label: str
    examples: int | None
    seed: int
    progress: Progress

    def count(self, default: int) -> int:
        return default if self.examples is None else max(1, self.examples)

    def row(self, target: str, judge: Callable[[_Session, str, _Findings], None]) -> Verdict:
        """The row of a target, from what a judge finds or fails with."""
        started = time.perf_counter()
        findings = _Findings()
        outcome: dict[str, Any]
        try:
            judge(self, target, findings)
            outcome = findings.outcome()
        except (Violation, OutputError) as difference:
            outcome = {"verdict": Outcome.MISMATCH, "message": f"{findings.at}{difference}"}
        except KdslError as error:
            outcome = _refusal(error)
            if outcome["verdict"] is Outcome.MISMATCH:
                outcome["message"] = f"{findings.at}{outcome['message']}"
        except Exception as error:
            outcome = {"verdict": Outcome.ERROR, "message": f"{findings.at}{summary(error)}"}
        return Verdict(
            kernel=self.label,
            target=target,
            declared_refusal=self.kernel.refuses.get(target),
            **findings.measured(),
            **outcome,
            seconds=time.perf_counter() - started,
        )


OTHER_POISON = "-3e38"  # than the NaN that the oracle starts from


@dataclass
class _Findings:
    """What was found so far, so that a row that ends early still says it."""

    comparisons: list[Comparison] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    form: str | None = None
    at: str = ""  # the example in hand
    warnings: dict[str, str] = field(default_factory=dict)  # the first of each place
    emitted: tuple[Target, Source, Binding] | None = None  # of the default example

    def measured(self) -> dict[str, Any]:
        total = merge(self.comparisons)
        compared = total.elements > 0
        return {
            "form": self.form,
            "checks": tuple(self.checks),
            "error_used_of_bound": total.error_used if compared else None,
            "undecided_fraction": total.undecided_fraction if compared else None,
        }

    def outcome(self) -> dict[str, Any]:
        total = merge(self.comparisons)
        if not total.elements:
            return {"verdict": Outcome.UNDECIDED, "message": "no output has an element that could be compared"}
        if not total.likely:
            message = (
                f"{total.outside} of {total.elements} elements are outside the expected rounding error, of which "
                f"1 in 10^4 may be; the furthest: {total.unexpected}"
            )
            return {"verdict": Outcome.MISMATCH, "message": message}
        share = total.undecided_fraction
        if share > UNDECIDED_ALLOWED:
            message = f"{share:.1%} of the elements hang on a comparison that rounding can flip"
            return {"verdict": Outcome.UNDECIDED, "message": message}
        return {"verdict": Outcome.VERIFIED, "message": "; ".join(self.warnings.values()) or None}


def _refusal(error: KdslError) -> dict[str, Any]:
    """K0307, emitted code that fails to run, is a fault of kdsl's, K06... faults of the kernel that showed when it ran;
    all else says what cannot be done and why."""
    place = {"file": error.location.file, "line": error.location.line} if error.location is not None else {}
    ran_wrong = Outcome.MISMATCH if error.code.startswith("K06") else Outcome.REFUSED
    outcome = Outcome.ERROR if error.code == "K0307" else ran_wrong
    return {"verdict": outcome, "code": error.code, "message": f"{error.message}; {error.hint}", **place}


# -- the oracle ----------------------------------------------------------------------------------------------------


def _judge_oracle(session: _Session, target: str, findings: _Findings) -> None:
    count = session.count(ORACLE_EXAMPLES)
    trials = draw_trials(session.kernel, count, session.seed)
    for place, trial in enumerate(trials):
        session.progress(f"{session.label}: numpy: example {place + 1} of {len(trials)}")
        # Examples and dtypes take turns with a period of 4; each meets each kind.
        kind = KINDS[(place + place // 4) % len(KINDS)]
        findings.at = f"{in_words(trial)}, {kind} inputs (seed {session.seed}): "
        check_text(trial.kernel)
        bound = bind(trial.kernel, trial.sizes, trial.tiles)
        arguments = draw_inputs(bound, kind, (session.seed, place), trial.scalars)
        for warning in checked.run(bound, arguments).warnings:
            findings.warnings.setdefault(str(warning.location), f"warning: {findings.at}{warning.message}")
        findings.comparisons.append(check_properties(trial, arguments, session.seed + place))
    findings.at = ""
    preserving = check_algebra(trials[0], session.seed)
    findings.checks += [
        _tried(trials),
        "exact and generic inputs in turn",
        "checked: accesses in bounds, nothing undefined used, no races, outputs written whole, addresses do not wrap",
        f"same bits whatever lies beyond the edges ({', '.join(POISONS)}) and with the programs backwards",
        f"same bits after the passes {', '.join(EXACT_PASSES)}",
        f"same within rounding after {', '.join(name for name in PASSES if name not in EXACT_PASSES)}, if it applies",
        "same within rounding for other tile sizes",
        "IR text parses back",
    ]
    if preserving:
        findings.checks.append(f"same meaning over a finite field (p = {P}) after {', '.join(preserving)}")


def _tried(trials: Sequence[Binding]) -> str:
    values: dict[str, list[Any]] = {}
    for trial in trials:
        for name, value in {**trial.bindings, **trial.sizes}.items():
            values.setdefault(name, []).append(value)
    listed = [f"{name} in {{{', '.join(map(str, _distinct(found)))}}}" for name, found in values.items()]
    return f"{len(trials)} examples: {', '.join(listed)}"


def _distinct(values: Sequence[Any]) -> list[Any]:
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return sorted(set(values))
    return list(dict.fromkeys(map(plain, values)))


# -- targets -------------------------------------------------------------------------------------------------------


def _target_rows(session: _Session, name: str, archs: Sequence[str]) -> list[Verdict]:
    """One row, or if architectures of the target are named one for each."""
    found: list[_Findings] = []

    def judge(session: _Session, target: str, findings: _Findings) -> None:
        found.append(findings)
        _judge_target(session, target, findings)

    row = session.row(name, judge)
    emitted = found[0].emitted
    own = architectures(emitted[0], archs) if emitted is not None and archs else ()
    return [_checked(row, emitted, arch, session.progress) for arch in own if emitted is not None] or [row]


def _judge_target(session: _Session, name: str, findings: _Findings) -> None:
    if name not in target_names():
        raise fail("K0309", None, target=name)
    target = find_target(name)
    count = session.count(TARGET_EXAMPLES)
    trials = draw_trials(session.kernel, count, session.seed, authors=1)
    sources: dict[str, Source] = {}
    for place, trial in enumerate(trials):
        session.progress(f"{session.label}: {name}: example {place + 1} of {len(trials)}")
        findings.at = f"{in_words(trial)}: "
        variant = repr((sorted(plain(trial.bindings).items()), sorted(trial.tiles.items())))
        if variant not in sources:
            sources[variant] = target.emit(trial.kernel, trial.tiles, trial.sizes)
        source = sources[variant]
        if findings.emitted is None:
            findings.emitted, findings.form = (target, source, trial), source.form
        _run(target, source, trial, (session.seed, place), findings)
    total = merge(findings.comparisons)
    findings.checks += [
        f"run by {target.toolchain().runs_on}",
        _tried(trials),
        "exact and generic inputs for each",
        f"outside the expected rounding error: {total.outside} of {total.elements} elements",
    ]


def _run(target: Target, source: Source, trial: Binding, seed: tuple[int, int], findings: _Findings) -> None:
    """Run emitted code on one example, and compare with the oracle at the tile sizes that the code has."""
    bound = bind(trial.kernel, trial.sizes, source.tiles)
    for kind in KINDS:
        findings.at = f"{in_words(trial)}, {kind} inputs (seed {seed[0]}): "
        arguments = draw_inputs(bound, kind, seed, trial.scalars)
        reference = error_bounds(bound, arguments, target.accuracy)
        # What nothing was written to holds poison here and there alike, so that only other poison shows it.
        unwritten = identical(run(bound, arguments, POISONS[OTHER_POISON]), reference.values).worst
        if unwritten is not None:
            raise Violation(
                "an output element is never written, or depends on what lies beyond an edge", str(unwritten)
            )
        # Copies: a target that writes to its inputs must not change what comes after.
        given = {name: np.array(value) if np.ndim(value) else value for name, value in arguments.items()}
        written = target.run(source, trial.sizes, given)
        comparison = compare(written, reference.values, reference.bounds, reference.expected)
        findings.comparisons.append(comparison)
        if comparison.worst is not None:
            raise Violation("differs from the oracle", str(comparison.worst))


def _checked(row: Verdict, emitted: tuple[Target, Source, Binding], arch: str, progress: Progress) -> Verdict:
    """The row for one architecture: what its compiler says of the default example counts where the run was good."""
    target, source, trial = emitted
    row = replace(row, arch=arch)
    if row.verdict is not Outcome.VERIFIED:
        return row
    progress(f"{row.kernel}: compiling for {row.target} {arch}")
    started = time.perf_counter()
    try:
        report = target.check(source, trial.sizes, arch)
        if not report.accepted:
            where = f"line {report.line} of the emitted source: " if report.line is not None else ""
            problem = where + report.message
            raise fail("K0306", trial.kernel.location, target=row.target, arch=arch, problem=problem)
        row = replace(row, checks=(*row.checks, f"compiler for {arch}, {in_words(trial)}"))
    except KdslError as error:
        row = replace(row, **_refusal(error))
    except Exception as error:
        row = replace(row, verdict=Outcome.ERROR, message=summary(error))
    return replace(row, seconds=(row.seconds or 0.0) + time.perf_counter() - started)
