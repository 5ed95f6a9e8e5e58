from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from kdsl.equivalence.explanation import Explanation, explain, explain_bound, lines
from kdsl.equivalence.inputs import draw_inputs
from kdsl.interpreter.accuracy import ACCURACY
from kdsl.ir.kernel import bind
from kdsl.lang.kernel import Kernel
from kdsl.runtime.examples import default_example
from kdsl.runtime.target import Accuracy, AccuracyTable
from tests.equivalence.examples import SMALL, rounding_sign, totals
from tests.equivalence.targets import FakeTarget


def explained(kernel: Kernel, accuracy: AccuracyTable = ACCURACY, **arguments: Any) -> Explanation:
    example = default_example(kernel)
    bound = bind(example.kernel, example.sizes, example.tiles)
    given = arguments or draw_inputs(bound, "generic", (0,), example.scalars)
    return explain(bound, given, accuracy, "kernel", "target", "inputs")


def line_of(kernel: Kernel, code: str) -> int:
    source, first = inspect.getsourcelines(kernel.function)
    return first + next(place for place, text in enumerate(source) if code in text)


def test_the_shares_add_up_and_the_largest_comes_first() -> None:
    found = explained(SMALL["layernorm"])
    shares = [part.share for part in found.parts]
    assert sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)
    assert found.element is not None and 0 < found.expected <= found.hard


def test_an_inaccurate_function_is_found_at_its_line() -> None:
    coarse = {**ACCURACY, ("exp", "f32"): Accuracy(2.0**12)}
    part = explained(SMALL["softmax"], coarse).parts[0]
    assert part.line == line_of(SMALL["softmax"], "kdsl.exp(")
    assert part.file.endswith("softmax.py") and "exp" in part.ops
    assert part.share > 0.95


def test_only_the_lines_that_round_have_a_part() -> None:
    assert [part.line for part in explained(totals).parts] == [line_of(totals, "kdsl.sum")]


def test_where_nothing_is_decided_there_is_no_element() -> None:
    found = explained(rounding_sign)
    assert (found.element, found.parts) == (None, ())


def test_where_nothing_is_rounded_there_is_no_part() -> None:
    found = explained(totals, x=np.ones((30, 40), np.float32))
    assert (found.hard, found.parts) == (0.0, ())


def test_lines_are_listed_with_their_ops() -> None:
    example = default_example(totals)
    assert [ops for _, ops in lines(example.kernel).items()] == [("load", "abs", "reduce", "store")]


def test_a_target_s_tiles_and_accuracy_count(monkeypatch: pytest.MonkeyPatch) -> None:
    target = FakeTarget(accuracy={**ACCURACY, ("exp", "f32"): Accuracy(2.0**12)})
    monkeypatch.setattr("kdsl.equivalence.explanation.find_target", lambda name: target)
    found = explain_bound(SMALL["softmax"], "tests:softmax", "fake", seed=3)
    assert (found.kernel, found.target) == ("tests:softmax", "fake")
    assert found.inputs.endswith("generic inputs (seed 3)")
    assert found.parts[0].line == line_of(SMALL["softmax"], "kdsl.exp(")
