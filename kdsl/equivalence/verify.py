"""`kdsl verify`: the oracle's properties of a kernel, and each target's emitted code against the oracle."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kdsl.diagnostics import KdslError, fail
from kdsl.equivalence.algebra.words import P
from kdsl.equivalence.blocks import past_tiles
from kdsl.equivalence.cases import Case, save, saved
from kdsl.equivalence.compare import UNDECIDED_ALLOWED, Comparison, OutputError, merge
from kdsl.equivalence.inputs import BASE_KINDS, OTHER_KINDS, SCHEDULE, Kind, draw_for, without_extremes
from kdsl.equivalence.judging import check_on_target, judge_on_oracle, judge_on_target
from kdsl.equivalence.poisons import POISONS
from kdsl.equivalence.properties import EXACT_PASSES, Violation, check_algebra
from kdsl.equivalence.shrink import shrink
from kdsl.equivalence.sizes import fits
from kdsl.equivalence.trials import draw_trials
from kdsl.equivalence.verdict import Outcome, Verdict
from kdsl.lang.kernel import Kernel
from kdsl.passes import PASSES
from kdsl.runtime.description import in_words, plain
from kdsl.runtime.examples import Binding
from kdsl.runtime.target import Source, Target, architectures, find_target, target_names
from kdsl.runtime.unexpected import summary

Progress = Callable[[str], None]
ORACLE_EXAMPLES, TARGET_EXAMPLES = 30, 8


def verify(
    kernel: Kernel,
    *,
    source: str,
    targets: Sequence[str],
    archs: Sequence[str] = (),
    examples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    shrink_seconds: float = 0.0,
    save_failures: Path | None = None,
) -> list[Verdict]:
    """Judge a kernel on the oracle, then on each target's host stand-in. Nothing is raised: all becomes a row.

    `source` is the kernel's label, `module:function`. The first row is of the target "numpy", the oracle itself,
    whether asked for or not; then each target has one row, or one for each of `archs` that is its own, whose compiler
    is then asked too. `examples`, at least 1, is how many are tried in each row (default 30 on the oracle, 8 on a
    target). Equal seeds give equal examples. A mismatch is shrunk for `shrink_seconds`, and its row then has a
    counter-example; those in the folder `save_failures` are tried first, and new ones kept there.
    """
    session = _Session(kernel, source, examples, seed, progress or (lambda text: None), shrink_seconds, save_failures)
    rows = [session.row("numpy", _judge_oracle)]
    for name in targets:
        if name != "numpy":
            rows += _target_rows(session, name, archs)
    return rows


def verify_target(
    kernel: Kernel, target: Target, *, source: str, examples: int | None = None, seed: int = 0
) -> Verdict:
    """The row of one target, which need not be installed: what `verify` says of it, without the oracle's own row."""
    session = _Session(kernel, source, examples, seed, lambda text: None, 0.0, None)
    return session.row(target.name, lambda session, name, findings: _judge_on(session, target, findings))


@dataclass
class _Session:
    """What all rows of one call share."""

    kernel: Kernel
    label: str
    examples: int | None
    seed: int
    progress: Progress
    shrink_seconds: float
    save_failures: Path | None

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
            outcome["counterexample"] = self.counterexample(target, findings, str(difference))
        except KdslError as error:
            outcome = _refusal(error)
            if outcome["verdict"] is Outcome.MISMATCH:
                outcome["message"] = f"{findings.at}{outcome['message']}"
                outcome["counterexample"] = self.counterexample(target, findings, error.message)
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

    def counterexample(self, target: str, findings: _Findings, problem: str) -> str | None:
        """A small example that fails, as a Python file, and kept where the caller wants it."""
        if findings.case is None or not (self.shrink_seconds or self.save_failures):
            return None
        self.progress(f"{self.label}: {target}: looking for a smaller example that fails")
        case, problem = shrink(findings.case, self.shrink_seconds) if self.shrink_seconds else (findings.case, problem)
        if self.save_failures is not None:
            save(self.save_failures, self.label, case, problem)
        return case.snippet(problem)

    def retry(self, target: Target | None, findings: _Findings) -> None:
        """Try what failed before. Raises Violation if it still does."""
        for file, case in saved(self.save_failures, self.label, target) if self.save_failures is not None else ():
            findings.at = f"{file}: "
            problem = case.problem()
            if problem is not None:
                findings.case = case
                raise Violation("a saved counter-example still fails", problem)
            findings.checks.append(f"{file.name} holds now")


@dataclass
class _Findings:
    """What was found so far, so that a row that ends early still says it."""

    comparisons: list[Comparison] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    form: str | None = None
    at: str = ""  # the example in hand
    warnings: dict[str, str] = field(default_factory=dict)  # the first of each place
    case: Case | None = None  # the same, so that it can be tried again
    emitted: tuple[Target, Source, Binding] | None = None  # of the default example

    def warn(self, warning: KdslError) -> None:
        self.warnings.setdefault(str(warning.location), f"warning: {self.at}{warning.message}")

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
            reason = "a comparison that rounding can flip, or on the order of the programs"
            return {"verdict": Outcome.UNDECIDED, "message": f"{share:.1%} of the elements hang on {reason}"}
        return {"verdict": Outcome.VERIFIED, "message": "; ".join(self.warnings.values()) or None}


def _refusal(error: KdslError) -> dict[str, Any]:
    """K0307, emitted code that fails to run, is a fault of kdsl's; K0310 says that it did not end; K06... are faults of
    the kernel that showed when it ran. All else says what cannot be done and why."""
    place = {"file": error.location.file, "line": error.location.line} if error.location is not None else {}
    ran_wrong = Outcome.MISMATCH if error.code.startswith("K06") else Outcome.REFUSED
    outcome = {"K0307": Outcome.ERROR, "K0310": Outcome.UNDECIDED}.get(error.code, ran_wrong)
    return {"verdict": outcome, "code": error.code, "message": f"{error.message}; {error.hint}", **place}


# -- the oracle ----------------------------------------------------------------------------------------------------


def _judge_oracle(session: _Session, target: str, findings: _Findings) -> None:
    session.retry(None, findings)
    count = session.count(ORACLE_EXAMPLES)
    trials = draw_trials(session.kernel, count, session.seed)
    for place, trial in enumerate(trials):
        session.progress(f"{session.label}: numpy: example {place + 1} of {len(trials)}")
        kind = SCHEDULE[place % len(SCHEDULE)]
        findings.at = f"{in_words(trial)}, {kind} inputs (seed {session.seed}): "
        arguments = draw_for(trial, trial.tiles, kind, (session.seed, place))
        findings.case = Case(session.kernel, None, trial, kind, (session.seed, place), arguments)
        used = judge_on_oracle(trial, kind, arguments, session.seed + place, findings.warn)
        if kind in BASE_KINDS:
            findings.comparisons.append(used)
    findings.at, findings.case = "", None
    preserving = check_algebra(trials[0], session.seed)
    findings.checks += [
        _tried(trials),
        f"{_listed(SCHEDULE[: len(trials)])} inputs in turn",
        "checked: accesses in bounds, nothing undefined used, no races, outputs written whole, addresses do not wrap",
        f"same bits whatever lies beyond the edges ({', '.join(POISONS)}) and with the programs backwards",
        f"same bits after the passes {', '.join(EXACT_PASSES)}",
        f"same within rounding after {', '.join(name for name in PASSES if name not in EXACT_PASSES)}, if it applies",
        "same within rounding for other tile sizes, and for permuted rows where rows are seen to be independent",
        "IR text parses back",
    ]
    if preserving:
        findings.checks.append(f"same meaning over a finite field (p = {P}) after {', '.join(preserving)}")


def _listed(kinds: Sequence[Kind]) -> str:
    *most, last = dict.fromkeys(kinds)
    return f"{', '.join(most)} and {last}" if most else last


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
    _judge_on(session, find_target(name), findings)


def _judge_on(session: _Session, target: Target, findings: _Findings) -> None:
    session.retry(target, findings)
    trials = draw_trials(session.kernel, session.count(TARGET_EXAMPLES), session.seed)
    sources: dict[str, Source] = {}

    def emitted(trial: Binding) -> Source:
        variant = repr((sorted(plain(trial.bindings).items()), sorted(trial.tiles.items())))
        if variant not in sources:
            sources[variant] = target.emit(trial.kernel, trial.tiles, trial.sizes)
        return sources[variant]

    # Drawn sizes may all fit one of the target's tiles: some give way to sizes past them.
    authors = min(len(session.kernel.examples), len(trials))
    past = [(each, past_tiles(each.kernel, emitted(each).tiles, each.sizes)) for each in trials[:authors]]
    wide = [replace(each, sizes=sizes) for each, sizes in past if sizes != each.sizes and fits(each.kernel, sizes)]
    wide = wide[: len(trials) - authors]
    trials[len(trials) - len(wide) :] = wide
    for place, trial in enumerate(trials):
        session.progress(f"{session.label}: {target.name}: example {place + 1} of {len(trials)}")
        findings.at = f"{in_words(trial)}: "
        source = emitted(trial)
        if findings.emitted is None:
            findings.emitted, findings.form = (target, source, trial), source.form
        kinds = (*BASE_KINDS, *(OTHER_KINDS if place == 0 else ()))
        _run(target, source, trial, (session.seed, place), kinds, session, findings)
    total = merge(findings.comparisons)
    findings.checks += [
        f"run by {target.toolchain().runs_on}",
        _tried(trials),
        f"{_listed(BASE_KINDS)} inputs for each",
        f"{_listed(OTHER_KINDS)} inputs for the first",
        f"outside the expected rounding error: {total.outside} of {total.elements} elements",
    ]


def _run(
    target: Target,
    source: Source,
    trial: Binding,
    seed: tuple[int, int],
    kinds: Sequence[Kind],
    session: _Session,
    findings: _Findings,
) -> None:
    """Run emitted code on one example with inputs of several kinds."""
    for kind in kinds:
        findings.at = f"{in_words(trial)}, {kind} inputs (seed {seed[0]}): "
        arguments = without_extremes(draw_for(trial, source.tiles, kind, seed))
        findings.case = Case(session.kernel, target, trial, kind, seed, arguments)
        comparison = judge_on_target(target, source, trial, arguments)
        if kind in BASE_KINDS:
            findings.comparisons.append(comparison)
        check_on_target(comparison)


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
