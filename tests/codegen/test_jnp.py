"""The op table as jnp text: numbers that are exactly themselves, and parentheses where Python needs them."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from kdsl.codegen import jnp
from kdsl.codegen.expressions import print_expr
from kdsl.codegen.jnp import Code
from kdsl.codegen.jnp_helpers import HELPERS, helpers_in
from kdsl.ir.dtypes import BF16, BOOL, DTYPES, F16, F32, I32, U32, DType
from kdsl.ir.expr import function, symbol
from kdsl.ir.kernel import Op, Value
from kdsl.ir.ops import OPS


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, F32, "0.1"),
        (0.1, BF16, "0.10009765625"),
        (2, F32, "2.0"),
        (-1.5, F16, "-1.5"),
        (1e-12, F32, "1e-12"),
        (float("-inf"), F32, "-jnp.inf"),
        (float("nan"), BF16, "jnp.nan"),
        (1e300, F32, "jnp.inf"),
        (-3, I32, "-3"),
        (2**32 - 1, U32, "jnp.uint32(4294967295)"),
        (1, BOOL, "True"),
    ],
)
def test_a_constant_is_the_shortest_text_of_its_dtypes_nearest_value(value: float, dtype: DType, text: str) -> None:
    code = jnp.constant(value, dtype)
    assert code.text == text
    if dtype.is_float and text[-1].isdigit():
        assert np.asarray(ast.literal_eval(text)).astype(dtype.numpy) == np.asarray(value).astype(dtype.numpy)


def apply(name: str, *operands: Code, dtype: DType = F32) -> Code:
    values = tuple(Value(f"v{place}", dtype) for place in range(len(operands)))
    return jnp.pointwise(Op(name, values), operands)


def test_operands_are_put_in_parentheses_where_python_binds_otherwise() -> None:
    x, y, z = Code("x"), Code("y"), Code("z")
    assert apply("mul", apply("add", x, y), z).text == "(x + y) * z"
    assert apply("sub", x, apply("sub", y, z)).text == "x - (y - z)"
    assert apply("sub", apply("sub", x, y), z).text == "x - y - z"
    assert apply("and", apply("lt", x, y), apply("not", z)).text == "(x < y) & ~z"
    assert apply("eq", apply("lt", x, y), z).text == "(x < y) == z"
    assert apply("neg", apply("mul", x, y)).text == "-(x * y)"
    assert jnp.cast(apply("neg", x), F32, BF16).text == "(-x).astype(jnp.bfloat16)"


def test_an_integer_form_binds_as_what_it_is_written_with() -> None:
    x, m, n = Code("x"), symbol("M"), symbol("N")
    written = [jnp.integer(form, print_expr(form)) for form in (n, m * n, m + n, -n, function("floordiv", m, n))]
    divided = ["x / N", "x / (M * N)", "x / (M + N)", "x / (-N)", "x / (M // N)"]
    assert [apply("div", x, form).text for form in written] == divided


def test_of_bare_numbers_one_is_given_its_dtype() -> None:
    one, two = jnp.constant(1, BF16), jnp.constant(2, BF16)
    assert apply("add", one, two, dtype=BF16).text == "jnp.bfloat16(1.0) + 2.0"
    assert apply("maximum", Code("x"), two, dtype=BF16).text == "jnp.maximum(x, 2.0)"


def test_division_and_shifts_by_a_number_need_no_helper() -> None:
    x, y = Code("x"), Code("y")
    assert apply("floordiv", x, jnp.constant(3, I32), dtype=I32).text == "x // 3"
    assert apply("floordiv", x, jnp.constant(0, I32), dtype=I32).text == "floor_divide(x, 0)"
    assert apply("floordiv", x, y, dtype=I32).text == "floor_divide(x, y)"
    assert apply("shl", x, jnp.constant(4, I32), dtype=I32).text == "x << 4"
    assert apply("shr", x, jnp.constant(40, I32), dtype=I32).text == "shift_right(x, 40)"
    size = Code("N", number=True)  # a number too, but who knows which
    assert apply("floordiv", x, size, dtype=I32).text == "floor_divide(x, N)"
    assert apply("shl", x, size, dtype=I32).text == "shift_left(x, N)"
    assert apply("shl", jnp.constant(1, I32), y, dtype=I32).text == "shift_left(jnp.int32(1), y)"


def test_helpers_are_found_by_their_calls() -> None:
    assert helpers_in("y = shift_left(floor_divide(a, b), c)") == ("floor_divide", "shift_left")
    assert helpers_in("x.floor_divide(y)") == ()
    assert helpers_in("a, b, c, d = philox(a, b, c, d, e, f, 10)") == ("multiply_high", "philox")  # one calls the other
    for name, source in HELPERS.items():
        assert ast.parse(source).body[0].name == name  # type: ignore[attr-defined]  # it is a function


def test_every_pointwise_op_and_dtype_can_be_written() -> None:
    assert {name for name, spec in OPS.items() if spec.pointwise is not None} == jnp.EXPRESSIONS.keys()
    assert DTYPES.keys() == jnp.JNP.keys()
