"""Faults that public bug reports tell of, rebuilt: checked mode finds each, and none in the kernel set right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.diagnostics import KdslError
from kdsl.interpreter import checked
from kdsl.ir.kernel import bind
from kdsl.lang.kernel import Example
from kdsl.runtime.examples import bind_example
from tests.interpreter import public_bugs as bugs

VECTOR = {"N": 9}
# The report, the faulty kernel, the code and the source line that it is found with, the kernel set right.
REPORTS: dict[str, tuple[Any, str, str, Any, dict[str, int]]] = {
    "triton#10336": (bugs.strided_too_far, "K0601", "x[2 * h + 2]", bugs.strided, {"N": 8, "HALF": 4}),
    "vllm-ascend#16275": (bugs.previous_in_a_select, "K0601", "x[n - 1]", bugs.previous, VECTOR),
    "tilelang#2979": (bugs.differences_past_the_end, "K0601", "x[n + 1]", bugs.differences, VECTOR),
    "sglang#27074": (bugs.row_sums_without_a_fill, "K0603", "y[m] = ", bugs.row_sums, {"M": 3, "N": 5}),
    "tilelang#2433": (bugs.persistent_that_drops, "K0605", "", bugs.persistent, {"N": 9, "PROGRAMS": 4}),
    "nki-samples#134": (bugs.nothing, "K0605", "", bugs.doubled, VECTOR),
    "tpu-inference#3426": (bugs.added_to_nothing, "K0208", "y[n] = ", bugs.added, VECTOR),
}


def run(kernel: Any, sizes: dict[str, int]) -> None:
    example = bind_example(kernel, Example(sizes))
    instance = bind(example.kernel, example.sizes)
    shapes = {buffer.name: [size.constant or 0 for size in buffer.shape] for buffer in instance.buffers}
    given = {b.name: np.ones(shapes[b.name], np.float32) for b in instance.buffers if b.role != "out"}
    assert not checked.run(instance, given).warnings


@pytest.mark.parametrize("report", REPORTS)
def test_the_fault_is_found(report: str) -> None:
    faulty, code, line, right, sizes = REPORTS[report]
    with pytest.raises(KdslError) as caught:
        run(faulty, sizes)
    assert caught.value.code == code
    assert caught.value.location is not None
    assert line in caught.value.render()
    run(right, sizes)


def test_a_safe_value_that_a_target_ignores() -> None:
    """tilelang#2543: no fault of the kernel's; verify compares what the target gives (tests/equivalence)."""
    run(bugs.row_minima, {"M": 3, "N": 5})
