from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from kdsl.cli.tables import STYLES, verdict_table
from kdsl.equivalence.verdict import Outcome, Verdict


def printed(**values: Any) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(verdict_table([Verdict(kernel="kernels.matmul:matmul", target="tpu", **values)]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_every_outcome_has_a_style() -> None:
    assert set(STYLES) == set(Outcome)


def test_a_row_shows_what_matters() -> None:
    text = printed(verdict=Outcome.VERIFIED, arch="v5e", form="grid", error_used_of_bound=0.1234)
    assert all(part in text for part in ("kernels.matmul:matmul", "tpu", "v5e", "grid", "verified", "0.12"))


def test_a_message_with_brackets_is_not_markup() -> None:
    text = printed(verdict=Outcome.REFUSED, code="K0301", file="m.py", line=7, message="x[bold] + y[/] is a gather")
    assert "K0301 m.py:7 x[bold] + y[/] is a gather" in text


def test_a_declared_refusal_is_marked() -> None:
    refused = {"verdict": Outcome.REFUSED, "message": "no", "declared_refusal": "K0301"}
    assert "(as declared)" in printed(code="K0301", **refused)
    assert "(declared K0301)" in printed(code="K0302", **refused)
    assert "(declared K0301)" in printed(verdict=Outcome.BUILT, declared_refusal="K0301")
