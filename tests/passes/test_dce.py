from __future__ import annotations

from kdsl.ir.kernel import walk
from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.passes import run_passes

LOOP = """
kernel loops(x: in f32[8], y: out f32[8]) {{
  loop t < 4
  axis n < 8
  %x: f32[n] = load x[n]
  %one: f32 = constant {{value = 1.0}}
  %p: f32[n], %q: f32[n], %r: f32 = for t (%a: f32[n] = %x, %b: f32[n] = %x, %c: f32 = %one) {{
    %a1: f32[n] = add %a, %b
    %b1: f32[n] = mul %b, %x
    %c1: f32 = add %c, %one
    yield %a1, %b1, %c1
  }}
  store y[n] = {stored}
}}
"""


def carried(text: str) -> list[str]:
    kernel = run_passes(parse_kernel(text), ["dce"])
    return [argument.name for op in walk(kernel.body) if op.name == "for" for argument in op.regions[0].arguments]


def test_a_carried_value_stays_while_a_live_one_needs_it() -> None:
    assert carried(LOOP.format(stored="%p")) == ["a", "b"]
    assert carried(LOOP.format(stored="%q")) == ["b"]


def test_a_loop_that_reaches_no_store_goes() -> None:
    kernel = run_passes(parse_kernel(LOOP.format(stored="%x")), ["dce"])
    assert [op.name for op in walk(kernel.body)] == ["load", "store"]


def test_stores_in_loops_stay_with_what_they_need() -> None:
    text = """
    kernel fills(x: in f32[8], y: out f32[4, 8]) {
      loop t < 4
      axis n < 8
      %x: f32[n] = load x[n]
      %unused: f32[n] = load x[n]
      for t () {
        %e: f32[n] = exp %x
        %dead: f32[n] = exp %e
        store y[t, n] = %e
        yield
      }
    }
    """
    kernel = run_passes(parse_kernel(text), ["dce"])
    assert [op.name for op in walk(kernel.body)] == ["load", "for", "exp", "store", "yield"]
    assert print_kernel(run_passes(kernel, ["dce"])) == print_kernel(kernel)
