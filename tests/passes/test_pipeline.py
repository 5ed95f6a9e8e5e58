from __future__ import annotations

import pytest

from kdsl.diagnostics import Location
from kdsl.ir.kernel import Kernel, walk
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import IRError
from kdsl.passes import PASSES, run_passes

TEXT = """
kernel total(x: in f32[N], y: out f32[1]) at "total.py":1:1 {
  size N
  axis n < N
  %x: f32[n] = load x[n] at 2:5
  %e: f32[n] = exp %x at 3:5
  %t: f32 = reduce %e {axis = n, combine = add} at 4:5
  store y[0] = %t at 5:5
}
"""


def test_every_op_keeps_a_place_in_the_source() -> None:
    kernel = parse_kernel(TEXT.replace("at 2:5", 'at "total.py":2:5').replace("exp", "sqrt"))
    kernel = run_passes(kernel, list(PASSES))
    assert {op.name: op.location and op.location.line for op in walk(kernel.body)} == {
        "load": 2,
        "sqrt": 3,
        "in_bounds": 4,
        "constant": 4,
        "select": 4,
        "reduce": 4,
        "store": 5,
    }
    assert kernel.location == Location("total.py", 1)


def test_a_pass_that_breaks_a_kernel_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget_the_axes(kernel: Kernel) -> Kernel:
        from dataclasses import replace

        return replace(kernel, axes=())

    monkeypatch.setitem(PASSES, "forget", forget_the_axes)
    with pytest.raises(IRError):
        run_passes(parse_kernel(TEXT), ["forget"])
