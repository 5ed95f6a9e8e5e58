"""Checked mode finds each planted fault, names its place, and says nothing of kernels that are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.diagnostics import KdslError
from kdsl.interpreter import checked, run
from kdsl.ir.kernel import Kernel, bind
from kdsl.ir.meaning import Array
from tests.interpreter.test_batched import READY_MADE, arguments_of
from tests.interpreter.test_stepped import bound


def fault(kernel: Kernel, **arguments: Any) -> KdslError:
    with pytest.raises(KdslError) as caught:
        checked.run(kernel, arguments)
    return caught.value


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


# -- values that mean nothing --------------------------------------------------------------------------------------

SHIFTED = """kernel shifted(x: in f32[N], keep: in i32[N], y: out f32[N]) {
  size N
  program block < cdiv(N, 4)
  axis n < 4 where 4*block + n < N
  %x: f32[block, n] = load x[4*block + n - 1] where 0 <= 4*block + n - 1 FILL at "k.py":7:9
  %keep: i32[block, n] = load keep[4*block + n]
  %none: i32 = constant {value = 0}
  %yes: bool[block, n] = ne %keep, %none
  %zero: f32 = constant {value = 0.0}
  %y: f32[block, n] = select %yes, %x, %zero
  store y[4*block + n] = %y at "k.py":9:5
}
"""


def test_a_lane_without_a_fill_that_is_stored() -> None:
    kernel = bound(SHIFTED.replace("FILL", ""), N=6)
    found = fault(kernel, x=floats(*range(6)), keep=np.ones(6, np.int32))
    assert found.code == "K0603"
    assert found.location is not None and found.location.line == 9
    assert "the store of y[0]" in found.message
    assert "the load of x in line 7" in found.message
    assert "block = 0, n = 0" in found.message


@pytest.mark.parametrize("keep", [[0, 1, 1, 1, 1, 1], [0] * 6])
def test_a_lane_without_a_fill_that_a_select_leaves_out(keep: list[int]) -> None:
    kernel = bound(SHIFTED.replace("FILL", ""), N=6)
    got = checked.run(kernel, {"x": floats(*range(6)), "keep": np.array(keep, np.int32)})
    assert got.outputs["y"].tolist() == [0.0, *(float(i) * keep[i + 1] for i in range(5))]
    assert not got.warnings


def test_a_fill_means_something() -> None:
    kernel = bound(SHIFTED.replace("FILL", "fill 5.0"), N=6)
    got = checked.run(kernel, {"x": floats(*range(6)), "keep": np.ones(6, np.int32)})
    assert got.outputs["y"].tolist() == [5, 0, 1, 2, 3, 4]


# What follows the load of one value of each row, `%x`, that means nothing in row 2.
USES = {
    "a sum": """
  %s: f32[p] = reduce %x {axis = n, combine = add}
  store y[p] = %s""",
    "a maximum after arithmetic": """
  %e: f32[p, n] = exp %x
  %d: f32[p, n] = add %e, %x
  %s: f32[p] = reduce %d {axis = n, combine = maximum}
  store y[p] = %s""",
    "the lane of the largest": """
  %i: i32[p] = reduce %x {axis = n, combine = argmax}
  %s: f32[p] = cast %i
  store y[p] = %s""",
    "a sort": """
  %o: f32[p, n] = sort %x {axis = n}
  %s: f32[p] = reduce %o {axis = n, combine = add}
  store y[p] = %s""",
    "a running sum": """
  %o: f32[p, n] = scan %x {axis = n, combine = add}
  %s: f32[p] = reduce %o {axis = n, combine = add}
  store y[p] = %s""",
    "a product": """
  %w: f32[n] = load w[n]
  %s: f32[p] = dot %x, %w {axis = n, precision = ieee}
  store y[p] = %s""",
    "what a loop carries": """
  %zero: f32[p] = constant {value = 0.0}
  %s: f32[p] = for i (%a: f32[p, i] = %zero) {
    %part: f32[p] = reduce %x {axis = n, combine = add}
    %b: f32[p, i] = add %a, %part
    yield %b
  }
  store y[p] = %s""",
    "a branch": """
  %zero: f32 = constant {value = 0.0}
  %m: f32[p] = reduce %x {axis = n, combine = maximum}
  %c: bool[p] = gt %m, %zero
  if %c () {
    store y[p] = %zero
    yield
  } () {
    store y[p] = %zero
    yield
  }""",
    "an index": """
  %m: f32[p] = reduce %x {axis = n, combine = maximum}
  %i: i32[p] = cast %m
  %none: i32 = constant {value = 0}
  %z: i32[p] = mul %i, %none
  %p: i32[p] = index {form = p}
  %j: i32[p] = add %z, %p
  %zero: f32 = constant {value = 0.0}
  store_at %zero, %j {buffer = y}""",
    "an assertion": """
  %m: f32[p] = reduce %x {axis = n, combine = maximum}
  %c: bool[p] = le %m, %m
  assert %c {message = "never"}
  store y[p] = %m""",
}

USING = """kernel using(x: in f32[P, 3], w: in f32[3], y: out f32[P]) {
  size P
  program p < P
  loop i < 2
  axis n < 3
  %x: f32[p, n] = load x[p, n] where 3*p + n < 8
USE
}
"""


@pytest.mark.parametrize("use", USES)
def test_a_value_that_means_nothing_is_followed_to_its_use(use: str) -> None:
    text = USING.replace("USE", USES[use].replace("%zero: f32[p]", "%zero: f32").lstrip("\n"))
    given: dict[str, Any] = {"x": np.arange(9, dtype=np.float32).reshape(3, 3), "w": floats(1, 2, 3)}
    found = fault(bound(text, P=3), **given)
    assert found.code == "K0603"
    assert "the load of x left this lane out" in found.message
    assert "p = 2" in found.message
    assert not checked.run(bound(text, P=2), {**given, "x": given["x"][:2]}).warnings


def test_an_op_that_gives_nothing_where_no_lane_is_valid() -> None:
    text = """kernel best(x: in f32[P, N], y: out f32[P]) {
      size P
      size N
      program p < P
      axis n < N where n < p
      %x: f32[p, n] = load x[p, n]
      %m: f32[p] = reduce_by %x {axis = n} (%a: f32[p, n], %b: f32[p, n]) {
        %c: f32[p, n] = maximum %a, %b
        yield %c
      }
      store y[p] = %m
    }"""
    found = fault(bound(text, P=3, N=4), x=np.ones((3, 4), np.float32))
    assert found.code == "K0603"
    assert "reduce_by gives nothing there" in found.message
    assert "p = 0" in found.message


# -- memory --------------------------------------------------------------------------------------------------------


def test_an_element_that_is_never_written() -> None:
    text = """kernel most(x: in f32[N], y: out f32[N]) {
      size N
      program block < floordiv(N, 4)
      axis n < 4
      %x: f32[block, n] = load x[4*block + n]
      store y[4*block + n] = %x
    }"""
    found = fault(bound(text, N=10), x=np.ones(10, np.float32))
    assert found.code == "K0605"
    assert "2 of 10 elements of y are never written, y[8] first" in found.message
    assert not checked.run(bound(text, N=8), {"x": np.ones(8, np.float32)}).warnings


def test_an_element_that_is_read_before_it_is_written() -> None:
    text = """kernel add(x: in f32[N], y: out f32[N]) {
      size N
      program n < N
      %x: f32[n] = load x[n]
      %y: f32[n] = load y[n]
      %s: f32[n] = add %x, %y
      store y[n] = %s
    }"""
    found = fault(bound(text, N=3), x=np.ones(3, np.float32))
    assert found.code == "K0603"
    assert "nothing was written to this element of y before" in found.message
    inout = bound(text.replace("y: out", "y: inout"), N=3)
    assert (
        checked.run(inout, {"x": np.ones(3, np.float32), "y": np.ones(3, np.float32)}).outputs["y"].tolist() == [2] * 3
    )


RACES = {
    "a sum over programs": (
        """%y: f32 = load y[0]
      %s: f32[n] = add %x, %y
      store y[0] = %s""",
        "wrote",
    ),
    "all write one element": ("store y[0] = %x", "wrote"),
    "a neighbour reads": (
        """store y[n] = %x
      %y: f32[n] = load y[N - 1 - n]
      store z[n] = %y""",
        "read",
    ),
    "a neighbour is read": (
        """%y: f32[n] = load y[max(0, n - 1)]
      store z[n] = %y
      store y[n] = %x""",
        "wrote",
    ),
    "a store and an atomic": (
        """%i: i32 = constant {value = 0}
      %p: i32[n] = index {form = n}
      %odd: bool[n] = gt %p, %i
      if %odd () {
        store y[0] = %x
        yield
      } () {
        atomic %x, %i {buffer = y, combine = add}
        yield
      }""",
        "changed by an atomic",
    ),
    "an atomic and a load": (
        """%i: i32 = constant {value = 0}
      atomic %x, %i {buffer = y, combine = add}
      %y: f32[n] = load y[n]
      store z[n] = %y""",
        "read",
    ),
}


@pytest.mark.parametrize("race", RACES)
def test_a_race(race: str) -> None:
    body, deed = RACES[race]
    text = f"""kernel racing(x: in f32[N], y: inout f32[N], z: inout f32[N]) {{
      size N
      program n < N
      %x: f32[n] = load x[n]
      {body}
    }}"""
    found = fault(bound(text, N=4), x=floats(1, 2, 3, 4), y=floats(0, 0, 0, 0), z=floats(0, 0, 0, 0))
    assert found.code == "K0604"
    assert deed in found.message
    assert "where n = " in found.message


def test_programs_that_write_the_same_bits_do_not_race() -> None:
    text = """kernel same(x: in f32[N], where: in i32[N], y: inout f32[N]) {
      size N
      program n < N
      %zero: f32 = constant {value = 0.0}
      %i: i32[n] = load where[n]
      store_at %zero, %i {buffer = y}
    }"""
    given = {"x": floats(1, 2, 3), "where": np.array([1, 1, 2], np.int32), "y": floats(7, 7, 7)}
    assert checked.run(bound(text, N=3), given).outputs["y"].tolist() == [7, 0, 0]


def test_lanes_that_write_one_element() -> None:
    text = """kernel overlap(x: in f32[N], y: inout f32[N]) {
      size N
      program p < 1
      axis i < 3
      axis j < 4
      %j: i32[j] = index {form = j}
      %f: f32[j] = cast %j
      %i: i32[i] = index {form = i}
      %g: f32[i] = cast %i
      %s: f32[i, j] = ADD
      store y[2*i + j] = %s
    }"""
    apart = bound(text.replace("ADD", "mul %g, %f"), N=9)
    found = fault(apart, x=np.zeros(9, np.float32), y=np.zeros(9, np.float32))
    assert found.code == "K0604"
    assert "y[3], which another lane of the program writes otherwise" in found.message


# -- addresses -----------------------------------------------------------------------------------------------------


def test_an_address_that_wraps_around() -> None:
    text = """kernel hashed(x: in i32[N], y: out i32[N]) {
      size N
      program n < N
      %x: i32[n] = load x[n]
      %f: i32 = constant {value = 100000}
      %h: i32[n] = mul %x, %f at "k.py":3:5
      %c: i32 = constant {value = 3}
      %i: i32[n] = floormod %h, %c
      %y: i32[n] = load_at %i {buffer = x}
      store y[n] = %h
    }"""
    kernel = bound(text, N=3)
    assert checked.run(kernel, {"x": np.array([1, 2, 3], np.int32)}).outputs["y"].tolist() == [100000, 200000, 300000]
    found = fault(kernel, x=np.array([1, 100000, 3], np.int32))
    assert found.code == "K0606"
    assert found.location is not None and found.location.line == 3
    assert "mul of the index of the load of x" in found.message


def test_arithmetic_that_wraps_around_and_decides_nothing() -> None:
    text = """kernel mixed(x: in i32[N], y: out i32[N]) {
      size N
      program n < N
      %x: i32[n] = load x[n]
      %h: i32[n] = mul %x, %x
      store y[n] = %h
    }"""
    got = checked.run(bound(text, N=1), {"x": np.array([1 << 20], np.int32)})
    assert got.outputs["y"].tolist() == [0]


def test_an_access_out_of_bounds_says_all_that_is_to_say() -> None:
    text = """kernel halo(x: in f32[N], y: out f32[N]) {
      size N
      program block < cdiv(N, 4)
      axis n < 4 where 4*block + n < N
      %x: f32[block, n] = load x[4*block + n + 1] at "k.py":3:5
      store y[4*block + n] = %x
    }"""
    found = fault(bound(text, N=7), x=np.ones(7, np.float32))
    assert found.code == "K0601"
    assert "x: index 4*block + n + 1 = 7 in dimension 0, which has 7 elements (valid from 0 to 6)" in found.message
    assert "block = 1, n = 2" in found.message


# -- NaN and infinity ----------------------------------------------------------------------------------------------

RATIO = """kernel ratio(x: in f32[N], y: in f32[N], z: out f32[N]) {
  size N
  program n < N
  %x: f32[n] = load x[n]
  %y: f32[n] = load y[n]
  %q: f32[n] = div %x, %y at "k.py":4:5
  %one: f32 = constant {value = 1.0}
  %big: bool[n] = gt %y, %one
  %z: f32[n] = USE
  store z[n] = %z
}
"""


def test_a_nan_that_was_born_is_a_warning() -> None:
    kernel = bound(RATIO.replace("USE", "add %q, %one"), N=3)
    (warning,) = checked.run(kernel, {"x": floats(0, 1, 1), "y": floats(0, 2, 3)}).warnings
    assert warning.code == "K0607"
    assert warning.location is not None and warning.location.line == 4
    assert "the store of z[0]" in warning.message


@pytest.mark.parametrize(
    ("use", "x", "y"),
    [
        ("add %q, %one", floats(np.nan, np.inf, 1), floats(1, 0, 2)),  # given, not born
        ("select %big, %q, %one", floats(0, 1, 4), floats(0, 0, 2)),  # left out
        ("div %one, %q", floats(1, 2, 1), floats(0, 1, 1)),  # an infinity that comes to nothing
    ],
)
def test_no_warning(use: str, x: Array, y: Array) -> None:
    assert not checked.run(bound(RATIO.replace("USE", use), N=3), {"x": x, "y": y}).warnings


def test_a_nan_that_ends_a_while() -> None:
    text = """kernel newton(x: in f32[N], y: out f32[N]) {
      size N
      program n < N
      %x: f32[n] = load x[n]
      %zero: f32 = constant {value = 0.0}
      %half: f32 = constant {value = 0.5}
      %q: f32[n] = div %zero, %x
      %r: f32[n] = while %x (%a: f32[n]) {
        %s: f32[n] = add %a, %q
        %more: bool[n] = gt %s, %half
        yield %more
      } (%b: f32[n]) {
        %c: f32[n] = mul %b, %half
        yield %c
      }
      store y[n] = %r
    }"""
    kernel = bound(text, N=2)
    assert not checked.run(kernel, {"x": floats(1, 4)}).warnings
    (warning,) = checked.run(kernel, {"x": floats(1, 0)}).warnings
    assert warning.code == "K0607"
    assert "the condition of a while" in warning.message


# -- kernels that are right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "values", "tiles"), READY_MADE)
def test_no_false_alarm_and_the_same_bits(kernel: Any, values: dict[str, Any], tiles: dict[str, int]) -> None:
    import kdsl
    from kdsl.lang.kernel import Example
    from kdsl.runtime.examples import bind_example

    example = bind_example(kernel, Example({**values, "T": kdsl.bf16}))
    instance = bind(example.kernel, example.sizes, tiles)
    arguments = arguments_of(instance)
    plain, got = run(instance, arguments), checked.run(instance, arguments)
    assert all(plain[name].tobytes() == got.outputs[name].tobytes() for name in plain)
    assert not got.warnings
