"""Verdicts as assertions: for the test suites of those who write kernels."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdsl.lang.kernel import Kernel

if TYPE_CHECKING:
    from kdsl.equivalence.verdict import Verdict

SHRINK_SECONDS = 10.0


def assert_verified(
    kernel: Kernel,
    targets: Sequence[str] = (),
    *,
    examples: int | None = None,
    seed: int = 0,
    save_failures: Path | None = None,
) -> list[Verdict]:
    """Judge a kernel on the oracle and on targets (gpu, tpu, cpu, ...), as `kdsl verify` does; gives the verdicts.

    Raises AssertionError that says, for each verdict that does not hold, what and where, with a small counter-example
    where there is one. `examples` are tried on each target (default: those of `kdsl verify`). `save_failures` is a
    folder for counter-examples, which are tried first from then on.
    """
    from kdsl.equivalence.verify import verify

    rows = verify(
        kernel,
        source=f"{kernel.__module__}:{kernel.name}",
        targets=targets,
        examples=examples,
        seed=seed,
        shrink_seconds=SHRINK_SECONDS,
        save_failures=save_failures,
    )
    failed = [row for row in rows if not row.holds]
    if failed:
        raise AssertionError("\n\n".join(map(_described, failed)))
    return rows


def _described(row: Verdict) -> str:
    code = f" {row.code}" if row.code else ""
    text = f"{row.kernel} on {row.target} is {row.verdict.value}{code}: {row.message}"
    return f"{text}\n\n{row.counterexample}" if row.counterexample else text


def verified(
    kernel: Kernel, targets: Sequence[str] = (), **options: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a test that a kernel is verified: `assert_verified` runs first, then the function.

    The function's first parameter takes the verdicts; others are fixtures. Options are those of `assert_verified`.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def test(*arguments: Any, **keywords: Any) -> None:
            function(assert_verified(kernel, targets, **options), *arguments, **keywords)

        # The test runner must not look for a fixture that gives the verdicts.
        rest = list(signature.parameters.values())[1:]
        test.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]  # as inspect reads it
        return test

    return decorate


def replay(case: Mapping[str, Any]) -> None:
    """Run a kept counter-example again and print the element that differs, or that none does."""
    from kdsl.equivalence.cases import Case

    problem = Case.from_literal(case).problem()
    print(problem or "no difference: this counter-example holds now")


__all__ = ["assert_verified", "replay", "verified"]
