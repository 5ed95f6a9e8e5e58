"""Which input elements each output element was computed from, against sets written down by hand and by perturbation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kdsl
from kdsl.interpreter import run
from kdsl.interpreter.provenance import Element, provenance
from kdsl.ir.kernel import bind
from kdsl.kernels.attention import attention
from kdsl.kernels.matmul import matmul
from kdsl.lang.kernel import Example
from kdsl.runtime.examples import bind_example
from tests.interpreter.test_batched import arguments_of
from tests.interpreter.test_stepped import bound


def instance(kernel: Any, tiles: dict[str, int], **values: Any) -> Any:
    example = bind_example(kernel, Example(values))
    return bind(example.kernel, example.sizes, tiles)


def test_matmul_reads_a_row_and_a_column() -> None:
    kernel = instance(matmul, {"BM": 4, "BN": 4, "BK": 2}, M=5, N=3, K=7, T=kdsl.f32, activation="gelu")
    found = provenance(kernel, arguments_of(kernel))
    for m in range(5):
        for n in range(3):
            elements = set(found.read_by("c", (m, n)))
            wanted: set[Element] = {("a", (m, k)) for k in range(7)} | {("b", (k, n)) for k in range(7)}
            assert {element for element in elements if element[0] in "ab"} == wanted


def test_causal_attention_reads_no_later_keys() -> None:
    values = dict(B=1, H=1, L=5, S=5, D=4, T=kdsl.f32, scale=0.5, causal=True)
    kernel = instance(attention, {"BL": 2, "BS": 2}, **values)
    found = provenance(kernel, arguments_of(kernel))
    for l in range(5):
        keys = {index[2] for name, index in found.read_by("out", (0, 0, l, 1)) if name == "k"}
        assert keys == set(range(l + 1))


MOVED = {
    "running sum": ("%y: f32[p, n] = scan %x {axis = n, combine = add}", lambda p, n: {(p, i) for i in range(n + 1)}),
    "from the end": (
        "%y: f32[p, n] = scan %x {axis = n, combine = maximum, reverse = true}",
        lambda p, n: {(p, i) for i in range(n, 4)},
    ),
    "flip": ("%y: f32[p, n] = flip %x {axis = n}", lambda p, n: {(p, 3 - n)}),
    "sort": ("%y: f32[p, n] = sort %x {axis = n}", lambda p, n: {(p, i) for i in range(4)}),
    "select": (
        """%i: i32[n] = index {form = n}
      %two: i32 = constant {value = 2}
      %c: bool[n] = lt %i, %two
      %zero: f32 = constant {value = 0.0}
      %y: f32[p, n] = select %c, %x, %zero""",
        lambda p, n: {(p, n)} if n < 2 else set(),
    ),
    "computed place": (
        """%i: i32[n] = index {form = 3 - n}
      %p: i32[p] = index {form = p}
      %y: f32[p, n] = load_at %p, %i {buffer = x}""",
        lambda p, n: {(p, 3 - n)},
    ),
    "while": (
        """%three: i32 = constant {value = 3}
      %one: i32 = constant {value = 1}
      %p: i32[p] = index {form = p}
      %y: f32[p, n], %e: i32[p] = while %x, %p (%a: f32[p, n], %i: i32[p]) {
        %more: bool[p] = lt %i, %three
        yield %more
      } (%b: f32[p, n], %j: i32[p]) {
        %f: f32[p, n] = flip %b {axis = n}
        %k: i32[p] = add %j, %one
        yield %f, %k
      }""",
        lambda p, n: {(p, n if (3 - p) % 2 == 0 else 3 - n)},
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_ops_that_move_lanes(name: str) -> None:
    body, expected = MOVED[name]
    kernel = bound(f"""kernel moving(x: in f32[2, 4], y: out f32[2, 4]) {{
      program p < 2
      axis n < 4
      %x: f32[p, n] = load x[p, n]
      {body}
      store y[p, n] = %y
    }}""")
    found = provenance(kernel, arguments_of(kernel))
    for p, n in np.ndindex(2, 4):
        assert {index for _, index in found.read_by("y", (p, n))} == expected(p, n)


def test_an_element_that_changes_an_output_was_read_for_it() -> None:
    values = dict(B=1, H=1, L=3, S=4, D=2, T=kdsl.f32, scale=0.5, causal=False)
    kernel = instance(attention, {"BL": 2, "BS": 2}, **values)
    given = arguments_of(kernel)
    found, before = provenance(kernel, given), run(kernel, given)["out"]
    for name in ("q", "k", "v"):
        for index in np.ndindex(given[name].shape):
            changed = given[name].copy()
            changed[index] += 1
            for place in np.argwhere(run(kernel, {**given, name: changed})["out"] != before):
                assert (name, index) in found.read_by("out", place.tolist())


def test_what_an_output_held_before_is_read_where_it_is_added_to() -> None:
    kernel = bound("""kernel adding(x: in f32[N], where: in i32[N], y: inout f32[2]) {
      size N
      program n < N
      %x: f32[n] = load x[n]
      %i: i32[n] = load where[n]
      atomic %x, %i {buffer = y, combine = add}
    }""", N=3)  # fmt: skip
    given = {
        "x": np.ones(3, np.float32),
        "where": np.array([1, 0, 1], np.int32),
        "y": np.zeros(2, np.float32),
    }
    found = provenance(kernel, given)
    assert {element for element in found.read_by("y", (1,)) if element[0] != "where"} == {
        ("x", (0,)),
        ("x", (2,)),
        ("y", (1,)),
    }
