"""Batched evaluation gives the bits of stepped evaluation, in boxes that bound the memory it takes."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import kdsl
from kdsl.diagnostics import KdslError
from kdsl.equivalence.poisons import POISONS
from kdsl.interpreter import Mode, batched, mode_of, run, stepped
from kdsl.interpreter.grid import ORDERS, boxes, grid
from kdsl.interpreter.program import Program
from kdsl.ir.kernel import Buffer, Kernel, Op, bind
from kdsl.ir.meaning import Array
from kdsl.kernels.attention import attention
from kdsl.kernels.layernorm import layernorm
from kdsl.kernels.matmul import matmul
from kdsl.kernels.softmax import softmax
from kdsl.kernels.vector_add import vector_add
from kdsl.lang.kernel import Example
from kdsl.runtime.examples import bind_example
from tests.interpreter.test_stepped import ADD_INTO, ARGMAX, CAUSAL, LAYERNORM, MATMUL, SOFTMAX, TRIANGLE, bound, normal
from tests.ir.strategies import Case, kernels, random_array

SMALL = 200  # bytes: some boxes of few programs, and one of the rest


def assert_same_bits(kernel: Kernel, arguments: Mapping[str, Any], poisons: list[str], small: int = SMALL) -> None:
    """Whole grids in one box and in boxes of few programs, forwards and backwards."""
    for name in poisons:
        expected = stepped.run(kernel, arguments, POISONS[name])
        for size, order in itertools.product((1 << 30, small), ORDERS):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(batched, "BOX_BYTES", size)
                got = batched.run(kernel, arguments, POISONS[name], order)
            for buffer, array in expected.items():
                where = f"{buffer}, {name}, {order}, boxes of {size} bytes"
                assert array.tobytes() == got[buffer].tobytes(), f"{where}: {array} is not {got[buffer]}"


def arguments_of(kernel: Kernel) -> dict[str, Any]:
    """Random arguments for all parameters of a bound kernel."""
    rng = np.random.default_rng(4)
    arguments: dict[str, Any] = {}
    for parameter in kernel.parameters:
        shape = [size.constant or 0 for size in parameter.shape] if isinstance(parameter, Buffer) else []
        array = random_array(rng, parameter.dtype, shape)
        arguments[parameter.name] = array if isinstance(parameter, Buffer) else array.item()
    return arguments


# -- the same bits -------------------------------------------------------------------------------------------------

READY_MADE: list[tuple[Any, dict[str, Any], dict[str, int]]] = [
    (vector_add, {"N": 1000}, {"BN": 96}),
    (softmax, {"M": 19, "N": 33}, {"BM": 4}),
    (layernorm, {"M": 19, "N": 130, "epsilon": 1e-5}, {"BM": 1}),
    (matmul, {"M": 20, "N": 21, "K": 37, "activation": "gelu"}, {"BM": 16, "BN": 8, "BK": 16}),
    (attention, {"B": 1, "H": 2, "L": 19, "S": 21, "D": 8, "scale": 0.2, "causal": True}, {"BL": 8, "BS": 4}),
    (attention, {"B": 1, "H": 2, "L": 17, "S": 10, "D": 8, "scale": 0.2, "causal": False}, {"BL": 8, "BS": 8}),
]


@pytest.mark.parametrize("dtype", [kdsl.f32, kdsl.bf16])
@pytest.mark.parametrize(("kernel", "values", "tiles"), READY_MADE)
def test_ready_made_kernels(kernel: Any, values: dict[str, Any], tiles: dict[str, int], dtype: Any) -> None:
    example = bind_example(kernel, Example({**values, "T": dtype}))
    instance = bind(example.kernel, example.sizes, tiles)
    assert mode_of(instance) == "batched"
    assert_same_bits(instance, arguments_of(instance), list(POISONS), small=600)


TEXTS: dict[str, tuple[str, dict[str, int]]] = {
    "softmax": (SOFTMAX, {"M": 9, "N": 13}),
    "matmul": (MATMUL, {"M": 34, "N": 20, "K": 33}),
    "layernorm": (LAYERNORM, {"M": 6, "N": 11}),
    "argmax": (ARGMAX, {"M": 20, "N": 10}),
    "in place": (ADD_INTO, {"N": 38}),
    "one program": (CAUSAL, {"M": 3, "N": 3}),
    "trips of program and loop": (TRIANGLE, {"M": 6}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_kernels_in_ir_text(name: str) -> None:
    text, sizes = TEXTS[name]
    kernel = bound(text, **sizes)
    assert mode_of(kernel) == "batched"
    assert_same_bits(kernel, arguments_of(kernel), list(POISONS))


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(kernels(), st.sampled_from(sorted(POISONS)))
def test_generated_kernels(case: Case, poison: str) -> None:
    kernel = bind(case.kernel, case.sizes)
    assume(mode_of(kernel) == "batched")  # others have branches, atomics or computed places
    assert_same_bits(kernel, case.arguments, [poison], small=60)


EXPONENTIALS = """kernel exponentials(x: in f64[N], y: out f64[N], z: out f32[N]) {
  size N
  program p < N
  %x: f64[p] = load x[N - 1 - p]
  %y: f64[p] = exp %x
  store y[p] = %y
  %s: f32[p] = cast %x
  %z: f32[p] = exp2 %s
  store z[p] = %z
}
"""


def test_functions_whose_last_bit_depends_on_the_stride() -> None:
    assert_same_bits(bound(EXPONENTIALS, N=999), {"x": normal(999).astype(np.float64)}, ["NaN"], small=1000)


TRANSPOSED = """kernel transposed(a: in f32[M, K], b: in f32[N, K], c: out f32[M, N]) {
  size M
  size N
  size K
  program m_block < cdiv(M, 16)
  program n_block < cdiv(N, 16)
  axis m < 16 where 16*m_block + m < M
  axis k < K
  axis n < 16 where 16*n_block + n < N
  %a: f32[m_block, m, k] = load a[16*m_block + m, k]
  %b: f32[n_block, k, n] = load b[16*n_block + n, k]
  %c: f32[m_block, n_block, m, n] = dot %a, %b {axis = k, precision = ieee}
  store c[16*m_block + m, 16*n_block + n] = %c
}
"""


def test_products_whose_last_bit_depends_on_the_layout() -> None:
    """A ragged box is read by index arrays, the programs inside it by strided views."""
    kernel = bound(TRANSPOSED, M=40, N=41, K=123)
    assert_same_bits(kernel, {"a": normal(40, 123), "b": normal(41, 123)}, ["NaN"], small=1 << 14)


# -- programs that take different numbers of turns -----------------------------------------------------------------

# Programs that are through stand between others. Their next load would be out of bounds, and their next store seen.
UNEVEN = """kernel uneven(x: in i32[9], left: in i32[5], y: inout i32[P, Q, 9], n: out i32[P, Q], last: out i32[P, Q]) {
  size P
  size Q
  program p < P
  program q < Q
  loop i < mod(5*p + 3*q, 7) - 2
  loop j < mod(p + i, 3)
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %bias: i32[q] = index {form = 10*q}
  %n: i32[p, q], %last: i32[p, q] = for i (%a: i32[p, q, i] = %zero, %b: i32[p, q, i] = %one) {
    %x: i32[i] = load x[2*i]
    %l: i32[p, q, i] = load left[mod(5*p + 3*q, 7) - 3 - i]
    %y: i32[p, q, i] = load y[p, q, 2*i]
    %t: i32[p, q, i] = add %x, %y
    %s: i32[p, q, i] = add %t, %l
    store y[p, q, 2*i + 1] = %s
    %c: i32[p, q, i] = for j (%d: i32[p, q, i, j] = %a) {
      %e: i32[p, q, i, j] = add %d, %bias
      %f: i32[p, q, i, j] = add %e, %s
      yield %f
    }
    yield %b, %c
  }
  store n[p, q] = %n
  store last[p, q] = %last
}
"""


def test_a_program_that_is_through_keeps_its_results_and_touches_no_memory() -> None:
    kernel = bound(UNEVEN, P=6, Q=5)
    assert mode_of(kernel) == "batched"
    arguments = arguments_of(kernel)
    assert_same_bits(kernel, arguments, ["NaN"], small=30)
    trips = [[max(0, (5 * p + 3 * q) % 7 - 2) for q in range(5)] for p in range(6)]
    x, left, y = arguments["x"], arguments["left"], arguments["y"]
    expected = y.copy()
    for p, q in itertools.product(range(6), range(5)):
        for i in range(trips[p][q]):
            expected[p, q, 2 * i + 1] = x[2 * i] + y[p, q, 2 * i] + left[trips[p][q] - 1 - i]
    assert np.array_equal(run(kernel, arguments)["y"], expected)


def test_a_result_may_vary_over_programs_only_because_their_trips_do() -> None:
    text = """kernel count(y: out i32[P]) {
      size P
      program p < P
      loop i < 4 - p
      %zero: i32 = constant {value = 0}
      %one: i32 = constant {value = 1}
      %n: i32[p] = for i (%a: i32[i] = %zero) {
        %b: i32[i] = add %a, %one
        yield %b
      }
      store y[p] = %n
    }"""
    assert run(bound(text, P=6), {})["y"].tolist() == [4, 3, 2, 1, 0, 0]


# -- memory --------------------------------------------------------------------------------------------------------


def test_what_was_read_stays_though_the_tensor_is_written() -> None:
    text = """kernel swap(y: inout i32[2, N]) {
      size N
      program p < N
      %a: i32[p] = load y[0, p]
      %b: i32[p] = load y[1, p]
      store y[0, p] = %b
      store y[1, p] = %a
    }"""
    y = np.arange(10, dtype=np.int32).reshape(2, 5)
    kernel = bound(text, N=5)
    assert mode_of(kernel) == "batched"
    assert np.array_equal(run(kernel, {"y": y})["y"], y[::-1])


def test_of_lanes_that_write_one_element_the_last_counts() -> None:
    text = """kernel f(y: inout i32[3, 40]) {
      program p < 3
      axis m < 8
      axis n < 4
      %i: i32[p, m, n] = index {form = 100*p + 4*m + n}
      store y[p, m + 5*n] = %i
    }"""
    expected = np.zeros((3, 40), np.int32)
    for p, m, n in itertools.product(range(3), range(8), range(4)):
        expected[p, m + 5 * n] = 100 * p + 4 * m + n
    modes: list[Mode] = ["batched", "stepped"]
    for mode in modes:
        assert np.array_equal(run(bound(text), {"y": np.zeros((3, 40), np.int32)}, mode=mode)["y"], expected)


RUNNING_SUM = """kernel running_sum(x: in i32[N], y: inout i32[]) {
  size N
  program p < N
  %x: i32[p] = load x[p]
  %y: i32 = load y[]
  %s: i32[p] = add %x, %y
  store y[] = %s
}
"""


def test_programs_that_share_an_element_run_one_after_the_other() -> None:
    kernel = bound(RUNNING_SUM, N=100)
    assert mode_of(kernel) == "stepped"
    given = {"x": np.arange(100, dtype=np.int32), "y": np.array(7, np.int32)}
    assert run(kernel, given)["y"] == 4957


FAULTS = """kernel faults(x: in f32[9], y: inout f32[N]) {
  size N
  program p < N
  %a: f32[p] = load x[p - 2] where 0 <= p - 2
  store y[p] = %a
  %b: f32[p] = load x[2*p FIRST]
  store y[p] = %b
}
"""


@pytest.mark.parametrize("small", [4, 12, 1 << 20])
@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("first", ["", "- 3", "- 9"])
def test_the_fault_is_the_one_that_stepped_evaluation_meets_first(
    first: str, order: Any, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = bound(FAULTS.replace("FIRST", first), N=14)
    given = {"x": np.zeros(9, np.float32), "y": np.zeros(14, np.float32)}
    monkeypatch.setattr(batched, "BOX_BYTES", small)
    raised = []
    for evaluate in (stepped.run, batched.run):
        with pytest.raises(KdslError) as caught:
            evaluate(kernel, given, order=order)
        raised.append((caught.value.code, caught.value.message))
    assert raised[0][0] == "K0601"
    assert raised[0] == raised[1]


# -- boxes ---------------------------------------------------------------------------------------------------------

GRID = """kernel grid(y: out i32[A, B, C]) {
  size A
  size B
  size C
  program a < A
  program b < B
  program c < C
  %i: i32[a, b, c] = index {form = B*C*a + C*b + c}
  store y[a, b, c] = %i
}
"""


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize(("a", "b", "c"), [(2, 3, 5), (1, 7, 1), (5, 1, 2), (3, 0, 2), (0, 2, 2)])
def test_boxes_are_runs_of_the_programs_in_order(a: int, b: int, c: int, order: Any) -> None:
    kernel = bound(GRID, A=a, B=b, C=c)
    programs = list(itertools.product(range(a), range(b), range(c)))[:: 1 if order == "forward" else -1]
    for most in range(1, 40):
        parts = list(boxes(grid(kernel, order), most))
        assert [point for box in parts for point in itertools.product(*box.values())] == programs
        assert all(0 < len(list(itertools.product(*box.values()))) <= most for box in parts)
        assert len(parts) <= 2 * (len(programs) // most + a * b * c // max(1, c)) + 1


def test_no_value_of_a_box_exceeds_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    example = bind_example(attention, Example(dict(B=3, H=5, L=100, S=100, D=32, T=kdsl.f32, scale=1.0, causal=True)))
    kernel = bind(example.kernel, example.sizes, {"BL": 16, "BS": 16})
    sizes: list[int] = []
    evaluate = Program.evaluate

    def measured(program: Program, op: Op) -> list[Array]:
        results = evaluate(program, op)
        sizes.extend(array.nbytes for array in results)
        return results

    monkeypatch.setattr(Program, "evaluate", measured)
    monkeypatch.setattr(batched, "BOX_BYTES", 1 << 14)
    batched.run(kernel, arguments_of(kernel))
    assert 1 << 13 < max(sizes) <= 1 << 14


@pytest.mark.parametrize("text", [GRID, TRIANGLE, SOFTMAX])
def test_empty_grids_run_no_program(text: str) -> None:
    kernel = bound(text, **{size: 0 for size in ("A", "B", "C", "M", "N") if f"size {size}\n" in text})
    got = run(kernel, {"x": np.zeros((0, 0), np.float32)} if text == SOFTMAX else {})
    assert got["y"].size == 0


def test_ten_million_programs_take_little_memory_beside_their_tensors() -> None:
    text = """kernel negate(x: in i8[M, N], y: out i8[M, N]) {
      size M
      size N
      program p < M
      program q < N
      %x: i8[p, q] = load x[p, q]
      %y: i8[p, q] = neg %x
      store y[p, q] = %y
    }"""
    x = np.arange(10**7, dtype=np.int64).astype(np.int8)
    for shape in [(10**7, 1), (1, 10**7), (2500, 4000)]:
        kernel = bound(text, M=shape[0], N=shape[1])
        given = x.reshape(shape)
        tracemalloc.start()
        got = run(kernel, {"x": given})["y"]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert np.array_equal(got, -given)
        assert peak - got.nbytes < 100 << 20  # an output starts as eight bytes of poison a byte
