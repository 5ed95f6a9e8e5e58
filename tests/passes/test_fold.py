from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from kdsl.ir.kernel import bind, walk
from kdsl.ir.text import parse_kernel
from kdsl.passes import run_passes
from tests.ir.strategies import Case, kernels
from tests.passes.checking import assert_same_results

TEXT = """
kernel apply(x: in {dtype}[8], y: out {dtype}[8]) {{
  axis n < 8
  %x: {dtype}[n] = load x[n]
  %c: {dtype} = constant {{value = {value}}}
  %yes: bool = constant {{value = true}}
  %r: {dtype}[n] = {op}
  store y[n] = %r
}}
"""


def stored(op: str, dtype: str = "f32", value: str = "0.0") -> str:
    """The name of what is stored in place of %r."""
    kernel = run_passes(parse_kernel(TEXT.format(op=op, dtype=dtype, value=value)), ["fold"])
    return next(op.operands[0].name for op in walk(kernel.body) if op.name == "store")


@pytest.mark.parametrize(
    ("op", "dtype", "value"),
    [
        ("add %x, %c", "f32", "-0.0"),
        ("add %c, %x", "i32", "0"),
        ("sub %x, %c", "f32", "0.0"),
        ("mul %c, %x", "bf16", "1.0"),
        ("div %x, %c", "f32", "1.0"),
        ("cast %x", "f32", "0.0"),
        ("select %yes, %x, %c", "f32", "0.0"),
        ("broadcast %x {axes = [n]}", "f32", "0.0"),
    ],
)
def test_what_changes_nothing_goes(op: str, dtype: str, value: str) -> None:
    assert stored(op, dtype, value) == "x"


@pytest.mark.parametrize(
    ("op", "dtype", "value"),
    [
        ("add %x, %c", "f32", "0.0"),  # -0.0 + 0.0 is 0.0
        ("sub %c, %x", "f32", "0.0"),
        ("mul %x, %c", "f32", "0.0"),  # NaN * 0 is NaN
        ("div %c, %x", "f32", "1.0"),
        ("cast %x", "bf16", "0.0"),  # where the author wants the rounding
    ],
)
def test_what_changes_something_stays(op: str, dtype: str, value: str) -> None:
    assert stored(op, dtype, value) == "r"


def test_constants_are_computed_as_the_table_says() -> None:
    text = """
    kernel constants(y: out i8[8]) {
      axis n < 8
      %a: f32 = constant {value = 300.5}
      %b: i8 = cast %a
      %c: i8[n] = broadcast %b {axes = [n]}
      %d: i8 = constant {value = 1}
      %e: i8[n] = add %c, %d
      store y[n] = %e
    }
    """
    before = parse_kernel(text)
    after = run_passes(before, ["fold", "dce"])
    values = [op.attributes["value"] for op in walk(after.body) if op.name == "constant"]
    assert values == [-128]  # 300.5 saturates to 127, and 127 + 1 wraps
    assert_same_results(before, after, {"y": np.zeros(8, np.int8)})


@settings(max_examples=40, deadline=None)
@given(case=kernels())
def test_random_kernels_keep_their_bits(case: Case) -> None:
    before = bind(case.kernel, case.sizes)
    arguments = case.arguments | {
        buffer.name: np.zeros([size.constant or 0 for size in buffer.shape], buffer.dtype.numpy)
        for buffer in before.written
        if buffer.name not in case.arguments
    }
    assert_same_results(before, run_passes(before, ["fold"]), arguments)
    assert_same_results(before, bind(run_passes(case.kernel, ["fold", "cse", "dce"]), case.sizes), arguments)
