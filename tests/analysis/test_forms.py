from __future__ import annotations

import pytest

from kdsl.analysis.forms import Forms
from kdsl.ir.expr import symbol
from kdsl.ir.kernel import Kernel, bind, walk
from kdsl.ir.rewrite import retype
from kdsl.ir.text import parse_kernel

KERNEL = """
kernel f(x: in i32[N]) {
  size N
  program p < cdiv(N, 4)
  axis i < 4
  %p: i32 = index {form = p}
  %i: i64 = index {form = i}
  %c: i32 = constant {value = 4}
  %s: i32 = mul %p, %c
  %w: i64 = cast %s
  %at: i64 = add %w, %i
  %q: i32 = floordiv %p, %c
  %r: i32 = floormod %p, %c
  %m: i32 = minimum %p, %c
  %over: i32 = floordiv %c, %p
  %x: i32 = load x[0]
  %loaded: i32 = add %x, %c
  %byte: i8 = cast %at
  %square: i32 = mul %s, %s
  %minus: i32 = sub %p, %c
  %unsigned: u32 = cast %minus
}
"""
P, I = symbol("p"), symbol("i")


def forms(n: int | None) -> tuple[Kernel, Forms]:
    kernel = retype(parse_kernel(KERNEL))
    kernel = kernel if n is None else bind(kernel, {"N": n})
    return kernel, Forms(kernel)


def form(name: str, n: int | None = 40) -> object:
    kernel, known = forms(n)
    (value,) = (value for op in walk(kernel.body) for value in op.results if value.name == name)
    return known.of(value)


def test_arithmetic_on_indices_is_a_form() -> None:
    assert form("at") == form("byte") == 4 * P + I
    assert (form("q"), form("r"), form("square")) == (P // 4, P % 4, 16 * P * P)
    assert str(form("m")) == "min(4, p)"


@pytest.mark.parametrize(
    ("name", "n"),
    [("byte", 400), ("square", 1 << 20), ("unsigned", 40), ("over", 40), ("loaded", 40), ("at", None)],
)
def test_what_may_wrap_or_is_no_arithmetic_on_indices_has_no_form(name: str, n: int | None) -> None:
    assert form(name, n) is None
