"""The pytest plugin: a fixture that judges kernels. Kept light, for pytest loads it in every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def kdsl_verify() -> Callable[..., Any]:
    """`kdsl.testing.assert_verified`: fails the test unless a kernel is verified on the oracle and the targets."""
    from kdsl.testing import assert_verified

    return assert_verified
