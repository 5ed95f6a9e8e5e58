from __future__ import annotations

import io
import re
from typing import Any

from rich.console import Console

from kdsl.cli.tables import STYLES, explanation_table, explanation_title, verdict_table
from kdsl.equivalence.explanation import Explanation, Part
from kdsl.equivalence.verdict import Outcome, Verdict


def printed(**values: Any) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(verdict_table([Verdict(kernel="kernels.matmul:matmul", target="tpu", **values)]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def explained(element: str | None, *parts: Part) -> tuple[str, list[str]]:
    found = Explanation("m:softmax", "tpu", "M=3", element, 0.5, 1e-6, 1e-7, tuple(parts))
    console = Console(file=io.StringIO(), width=160)
    console.print(explanation_table(found))
    assert isinstance(console.file, io.StringIO)
    return explanation_title(found), console.file.getvalue().splitlines()


def test_an_explanation_names_the_element_and_the_lines_and_sums_the_small_ones_up() -> None:
    small = [Part("s.py", 27, ("div",), 0.004), Part("mul", 0, ("mul",), 0.004)]
    title, lines = explained("y[2, 7]", Part("s[bold].py", 26, ("exp", "sub"), 0.992), *small)
    assert title == "m:softmax on tpu, M=3: y[2, 7] = 0.5, hard bound 1e-06, expected 1e-07"
    shown = [re.sub("[^a-z0-9.:%,\\[\\]]+", " ", line).strip() for line in lines]
    assert "99.2% s[bold].py:26 exp, sub" in shown and "0.8% all other lines" in shown


def test_an_explanation_of_nothing_says_so() -> None:
    assert explained(None)[0].endswith("no element is decided")


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
