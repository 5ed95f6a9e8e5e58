"""`make test` installs every extra: tests that skip without one must not skip there unnoticed."""

from __future__ import annotations

import importlib.util

import pytest


@pytest.mark.parametrize("package", ["jax", "libtpu", "torch", "triton"])
def test_the_tool_chains_that_tests_need_are_installed(package: str) -> None:
    assert importlib.util.find_spec(package) is not None, f"run `pip install -e '.[all,test]'`: {package} is missing"
