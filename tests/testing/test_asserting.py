"""Verdicts as assertions, in a user's own test suite."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kdsl.equivalence.verdict import Outcome
from kdsl.testing import assert_verified, verified
from tests.equivalence.examples import SMALL, half_written

ROOT = Path(__file__).parents[2]


@verified(SMALL["vector_add"], examples=1)
def test_the_decorator_gives_the_verdicts_and_leaves_fixtures_alone(verdicts: Any, tmp_path: Path) -> None:
    assert [(row.target, row.verdict) for row in verdicts] == [("numpy", Outcome.VERIFIED)]
    assert tmp_path.is_dir()


def test_the_decorated_function_hides_its_first_parameter() -> None:
    function = test_the_decorator_gives_the_verdicts_and_leaves_fixtures_alone
    assert list(inspect.signature(function).parameters) == ["tmp_path"]


def test_a_kernel_that_is_wrong_fails_with_the_reason_and_a_counter_example() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_verified(half_written, examples=1)
    text = str(failure.value)
    assert "half_written on numpy is mismatch" in text
    assert "elements of out are never written" in text
    assert "CASE = {" in text
    assert "'sizes': {'M': 2, 'N': 1}" in text


def test_a_target_that_is_missing_fails_with_its_code() -> None:
    with pytest.raises(AssertionError, match="trainium is refused K0309"):
        assert_verified(SMALL["vector_add"], ["trainium"], examples=1)


SUITE = """
from tests.equivalence.examples import SMALL, half_written

def test_right(kdsl_verify):
    assert len(kdsl_verify(SMALL["vector_add"], examples=1)) == 1

def test_wrong(kdsl_verify):
    kdsl_verify(half_written, examples=1)
"""


def test_the_plugin_has_a_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "kdsl.testing.plugin", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "half_written on numpy is mismatch" in done.stdout


def test_hypothesis_is_imported_only_where_it_is_asked_for() -> None:
    script = "import sys, kdsl, kdsl.testing; assert 'hypothesis' not in sys.modules and 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)
