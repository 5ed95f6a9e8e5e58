"""What the tests of passes share: the check that two kernels give the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kdsl.interpreter import run
from kdsl.interpreter.stepped import Poison, worst
from kdsl.ir.kernel import Kernel
from kdsl.ir.meaning import Array


def bits(array: Array) -> bytes:
    """The array's bytes, with all NaNs made one: their signs and payloads mean nothing."""
    settled = np.where(array != array, np.full_like(array, np.nan), array) if array.dtype.kind in "fV" else array
    return np.ascontiguousarray(settled).tobytes()


def assert_same_results(before: Kernel, after: Kernel, arguments: Mapping[str, Any], poison: Poison = worst) -> None:
    """Both kernels, bound, leave the same bits in every written buffer. Outputs must be given, else they are poison."""
    expected, got = run(before, arguments, poison), run(after, arguments, poison)
    for name, array in expected.items():
        if bits(array) != bits(got[name]):
            np.testing.assert_array_equal(got[name], array, err_msg=f"{name} differs in value")
            raise AssertionError(f"{name} differs in the sign of zeros: {got[name]} is not {array}")
