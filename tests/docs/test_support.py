"""The page of what each target has is what the targets do."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdsl.ir.kernel import walk
from kdsl.runtime.target import targets
from tests.docs.support import page, rows

PAGE = Path(__file__).parents[2] / "docs" / "support.md"


def test_every_op_has_a_minimal_kernel() -> None:
    for op, kernels in rows():
        assert kernels, f"no dtype fits the minimal kernel of {op}"
        for kernel in kernels.values():
            assert op in {inner.name for inner in walk(kernel.body)}, op


def test_the_page_is_what_the_targets_do(request: pytest.FixtureRequest) -> None:
    made = page(targets())
    if request.config.getoption("--update-golden"):
        PAGE.write_text(made)
    assert made == PAGE.read_text(), "run pytest --update-golden tests/docs/test_support.py"
