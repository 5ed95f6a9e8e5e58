from __future__ import annotations

from kdsl.ir.kernel import walk
from kdsl.ir.text import parse_kernel
from kdsl.passes import run_passes


def test_constants_that_python_calls_equal_stay_apart() -> None:
    text = """
    kernel zeros(y: out f32[4]) {
      %plus: f32 = constant {value = 0.0}
      %minus: f32 = constant {value = -0.0}
      %again: f32 = constant {value = 0.0}
      store y[0] = %plus
      store y[1] = %minus
      store y[2] = %again
    }
    """
    kernel = run_passes(parse_kernel(text), ["cse"])
    stored = [op.operands[0].name for op in walk(kernel.body) if op.name == "store"]
    assert stored == ["plus", "minus", "plus"]


def test_a_value_of_a_loop_serves_only_that_loop() -> None:
    text = """
    kernel loops(x: in f32[8], y: out f32[8]) {
      loop t < 4
      loop u < 4
      axis n < 8
      %x: f32[n] = load x[n]
      for t () {
        %a: f32[n] = exp %x
        for u () {
          %b: f32[n] = exp %x
          store y[n] = %b
          yield
        }
        yield
      }
      %c: f32[n] = exp %x
      store y[n] = %c
    }
    """
    kernel = run_passes(parse_kernel(text), ["cse"])
    stored = [op.operands[0].name for op in walk(kernel.body) if op.name == "store"]
    assert stored == ["a", "c"]


def test_loads_are_not_merged_across_a_store() -> None:
    text = """
    kernel twice(y: inout f32[8]) {
      axis n < 8
      %a: f32[n] = load y[n]
      %b: f32[n] = add %a, %a
      store y[n] = %b
      %c: f32[n] = load y[n]
      %d: f32[n] = add %c, %c
      store y[n] = %d
    }
    """
    kernel = parse_kernel(text)
    assert run_passes(kernel, ["cse"]) == kernel
