from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from kdsl.diagnostics import KdslError, Location
from kdsl.interpreter.stepped import run
from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Kernel, bind, walk
from kdsl.ir.ops import OPS
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import verify
from tests.ir.strategies import Case, kernels

Array = np.ndarray[Any, Any]

SOFTMAX = """kernel softmax(x: in f32[M, N], y: out f32[M, N]) {
  size M
  size N
  tile BM = 4
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < next_pow2(N) where n < N
  %x: f32[m_block, m, n] = load x[BM*m_block + m, n]
  %top: f32[m_block, m] = reduce %x {axis = n, combine = maximum}
  %shifted: f32[m_block, m, n] = sub %x, %top
  %e: f32[m_block, m, n] = exp %shifted
  %sum: f32[m_block, m] = reduce %e {axis = n, combine = add}
  %y: f32[m_block, m, n] = div %e, %sum
  store y[BM*m_block + m, n] = %y
}
"""

MATMUL = """kernel matmul(a: in bf16[M, K], b: in bf16[K, N], c: out f32[M, N]) {
  size M
  size N
  size K
  tile BM = 16
  tile BN = 16
  tile BK = 16
  program m_block < cdiv(M, BM)
  program n_block < cdiv(N, BN)
  loop k_step < cdiv(K, BK)
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  axis k < BK where BK*k_step + k < K
  %zero: f32 = constant {value = 0.0}
  %sum: f32[m_block, n_block, m, n] = for k_step (%c: f32[m_block, n_block, k_step, m, n] = %zero) {
    %a: bf16[m_block, k_step, m, k] = load a[BM*m_block + m, BK*k_step + k]
    %b: bf16[n_block, k_step, n, k] = load b[BK*k_step + k, BN*n_block + n]
    %p: f32[m_block, n_block, k_step, m, n] = dot %a, %b {axis = k, precision = ieee}
    %d: f32[m_block, n_block, k_step, m, n] = add %c, %p
    yield %d
  }
  store c[BM*m_block + m, BN*n_block + n] = %sum
}
"""

LAYERNORM = """kernel layernorm(x: in f32[M, N], w: in f32[N], eps: f32, y: out f32[M, N]) {
  size M
  size N
  tile BN = 4
  program row < M
  loop step < cdiv(N, BN)
  axis n < BN where BN*step + n < N
  axis j < next_pow2(N) where j < N
  %zero: f32 = constant {value = 0.0}
  %length: i32 = index {form = N}
  %count: f32 = cast %length
  %total: f32[row] = for step (%t: f32[row, step] = %zero) {
    %part: f32[row, step, n] = load x[row, BN*step + n]
    %s: f32[row, step] = reduce %part {axis = n, combine = add}
    %t1: f32[row, step] = add %t, %s
    yield %t1
  }
  %mean: f32[row] = div %total, %count
  %x: f32[row, j] = load x[row, j]
  %centred: f32[row, j] = sub %x, %mean
  %squared: f32[row, j] = mul %centred, %centred
  %sum: f32[row] = reduce %squared {axis = j, combine = add}
  %variance: f32[row] = div %sum, %count
  %eps: f32 = argument {scalar = eps}
  %safe: f32[row] = add %variance, %eps
  %scale: f32[row] = rsqrt %safe
  %unit: f32[row, j] = mul %centred, %scale
  %w: f32[j] = load w[j]
  %y: f32[row, j] = mul %unit, %w
  store y[row, j] = %y
}
"""

# The loop keeps the best of earlier tiles on a tie, as the lowest index wants.
ARGMAX = """kernel argmax(x: in f32[M, N], best: out f32[M], where: out i32[M]) {
  size M
  size N
  tile BN = 4
  program row < M
  loop step < cdiv(N, BN)
  axis n < BN where BN*step + n < N
  %low: f32 = constant {value = -inf}
  %none: i32 = constant {value = -1}
  %best: f32[row], %where: i32[row] = for step (%b: f32[row, step] = %low, %w: i32[row, step] = %none) {
    %x: f32[row, step, n] = load x[row, BN*step + n]
    %value: f32[row, step] = reduce %x {axis = n, combine = maximum}
    %lane: i32[row, step] = reduce %x {axis = n, combine = argmax}
    %start: i32[step] = index {form = BN*step}
    %place: i32[row, step] = add %start, %lane
    %better: bool[row, step] = gt %value, %b
    %b1: f32[row, step] = select %better, %value, %b
    %w1: i32[row, step] = select %better, %place, %w
    yield %b1, %w1
  }
  store best[row] = %best
  store where[row] = %where
}
"""


def bound(text: str, tiles: dict[str, int] | None = None, **sizes: int) -> Kernel:
    return bind(verify(parse_kernel(text, file="kernel.kir")), sizes, tiles)


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(0, 2, shape).astype(np.float32)


# -- kernels against NumPy in f64 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), [(1, 1), (4, 8), (5, 7), (9, 33)])
def test_softmax(m: int, n: int) -> None:
    x = normal(m, n)
    wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    got = run(bound(SOFTMAX, M=m, N=n), {"x": x})["y"]
    np.testing.assert_allclose(got, wide / wide.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("tiles", [(16, 16, 16), (4, 8, 2), (1, 3, 5)])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (17, 5, 33), (3, 18, 1)])
def test_matmul_with_ragged_everything(m: int, n: int, k: int, tiles: tuple[int, int, int]) -> None:
    import ml_dtypes

    # Small integers: exact in f32 in any order, so one lost or doubled lane shows.
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    kernel = bound(MATMUL, dict(zip(("BM", "BN", "BK"), tiles, strict=True)), M=m, N=n, K=k)
    assert np.array_equal(run(kernel, {"a": a, "b": b})["c"], a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize(("m", "n"), [(3, 1), (2, 4), (3, 11)])
def test_layernorm(m: int, n: int) -> None:
    x, w = normal(m, n), normal(n)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 0.01) * w
    got = run(bound(LAYERNORM, M=m, N=n), {"x": x, "w": w, "eps": 0.01})["y"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tile", [1, 3, 4, 16])
def test_argmax_is_the_lowest_index_of_the_largest(tile: int) -> None:
    x = np.random.default_rng(2).integers(-3, 3, (20, 10)).astype(np.float32)
    x[0] = -5  # the largest is below zero: a lane that counts as zero would win
    got = run(bound(ARGMAX, {"BN": tile}, M=20, N=10), {"x": x})
    assert np.array_equal(got["where"], np.argmax(x, axis=1))
    assert np.array_equal(got["best"], x.max(axis=1))


def test_an_invalid_lane_that_holds_the_extreme_does_not_win() -> None:
    text = """kernel f(x: in f32[N], y: out i32[]) {
      size N
      axis n < 8 where 2 <= n < N
      %x: f32[n] = load x[n]
      %i: i32 = reduce %x {axis = n, combine = argmax}
      store y[] = %i
    }"""
    x = np.full(5, -np.inf, np.float32)
    assert run(bound(text, N=5), {"x": x})["y"] == 2
    x[:2], x[4] = 9, 1
    assert run(bound(text, N=5), {"x": x})["y"] == 4


# -- poison and order ----------------------------------------------------------------------------------------------


def poison_of(number: float) -> Any:
    def poison(dtype: DType, shape: tuple[int, ...]) -> Array:
        with np.errstate(all="ignore"):
            return np.full(shape, number if dtype.is_float else int(number) % 100 + 1).astype(dtype.numpy)

    return poison


def assert_equal_results(left: dict[str, Array], right: dict[str, Array]) -> None:
    assert left.keys() == right.keys()
    for name, array in left.items():
        wide = [each.astype(np.float64) if each.dtype.kind not in "biu" else each for each in (array, right[name])]
        assert np.array_equal(*wide, equal_nan=wide[0].dtype.kind == "f"), name


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(kernels())
def test_results_depend_neither_on_poison_nor_on_program_order(case: Case) -> None:
    kernel = bind(case.kernel, case.sizes)
    result = run(kernel, case.arguments)
    assert list(result) == [buffer.name for buffer in kernel.written]
    for number in (7.0, -1e30):
        assert_equal_results(run(kernel, case.arguments, poison=poison_of(number)), result)
    if not any(OPS[op.name].effect == "atomic" or op.name == "store_at" for op in walk(kernel.body)):
        assert_equal_results(run(kernel, case.arguments, order="reverse"), result)


@pytest.mark.parametrize("text", [SOFTMAX, LAYERNORM, ARGMAX])
def test_nothing_of_a_known_kernel_depends_on_poison(text: str) -> None:
    given = {"x": normal(5, 7), "w": normal(7), "eps": 0.1}
    kernel = bound(text, M=5, N=7)
    arguments = {parameter.name: given[parameter.name] for parameter in kernel.parameters if parameter.name in given}
    assert_equal_results(run(kernel, arguments, poison=poison_of(3)), run(kernel, arguments))


LEAK = """kernel leak(x: in f32[N], y: out f32[N]) {
  size N
  axis n < 8 where n < N
  %x: f32[n] = load x[n - 1] where 0 <= n - 1
  store y[n] = %x
}
"""


def test_a_masked_load_without_a_fill_is_poison() -> None:
    x = normal(4)
    assert np.isnan(run(bound(LEAK, N=4), {"x": x})["y"][0])
    assert run(bound(LEAK, N=4), {"x": x}, poison=poison_of(3))["y"].tolist() == [3, *x[:3].tolist()]
    filled = LEAK.replace("0 <= n - 1", "0 <= n - 1 fill -2.0")
    assert run(bound(filled, N=4), {"x": x})["y"].tolist() == [-2, *x[:3].tolist()]


def test_an_output_that_no_program_writes_stays_poison() -> None:
    text = LEAK.replace("store y[n] = %x", "store y[n] = %x where n < 1")
    assert np.isnan(run(bound(text, N=4), {"x": normal(4)})["y"]).all()


CAUSAL = """kernel causal(x: in f32[M, N], rows: out f32[M], columns: out f32[N], product: out f32[N]) {
  size M
  size N
  axis m < 4 where m < M
  axis n < 4 where n < N and n < m + 1
  %x: f32[m, n] = load x[m, n]
  %row: f32[m] = reduce %x {axis = n, combine = add}
  %column: f32[n] = reduce %x {axis = m, combine = add}
  %w: f32 = constant {value = 2.0}
  %weights: f32[m] = broadcast %w {axes = [m]}
  %p: f32[n] = dot %x, %weights {axis = m, precision = ieee}
  store rows[m] = %row
  store columns[n] = %column
  store product[n] = %p
}
"""


def test_lanes_that_one_axis_makes_invalid_along_another_take_no_part() -> None:
    x = normal(3, 3)
    got = run(bound(CAUSAL, M=3, N=3), {"x": x})
    np.testing.assert_allclose(got["rows"], np.tril(x).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(got["columns"], np.tril(x).sum(axis=0), rtol=1e-6)
    np.testing.assert_allclose(got["product"], 2 * np.tril(x).sum(axis=0), rtol=1e-6)


# -- memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (" where 0 <= n - 1", ' at "leak.py":3:9', "x: index n - 1 = -1 in dimension 0, which has 4 elements"),
        ("store y[n] = %x", 'store y[n + 2] = %x at "leak.py":3:9', "y: index n + 2 = 4 in dimension 0"),
    ],
)
def test_an_access_out_of_bounds_names_its_place(old: str, new: str, where: str) -> None:
    with pytest.raises(KdslError) as caught:
        run(bound(LEAK.replace(old, new), N=4), {"x": normal(4)})
    assert caught.value.code == "K0601"
    assert caught.value.location == Location("leak.py", 3, 9)
    assert where in caught.value.message


def test_the_faulting_program_is_named() -> None:
    text = MATMUL.replace("BM*m_block + m, BK*k_step", "BM*m_block + m + 1, BK*k_step")
    import ml_dtypes

    a = np.zeros((32, 16), ml_dtypes.bfloat16)
    with pytest.raises(KdslError, match="m_block = 1, n_block = 0"):
        run(bound(text, M=32, N=16, K=16), {"a": a, "b": a[:16]})


def test_lanes_outside_do_not_touch_memory_out_of_bounds() -> None:
    assert run(bound(LEAK, N=8), {"x": normal(8)})["y"][1:].tolist() == normal(8)[:7].tolist()


ADD_INTO = """kernel add_into(x: in i8[N], y: inout i8[N], seen: out bool[]) {
  size N
  tile BN = 4
  program p < cdiv(N, BN)
  axis n < BN where BN*p + n < N
  %x: i8[p, n] = load x[BN*p + n]
  %y: i8[p, n] = load y[BN*p + n]
  %s: i8[p, n] = add %x, %y
  store y[BN*p + n] = %s
  %again: i8[p, n] = load y[BN*p + n]
  %t: i8[p, n] = add %again, %x
  store y[BN*p + n] = %t
  %yes: bool = constant {value = true}
  store seen[] = %yes
}
"""


def test_a_program_sees_its_own_stores_and_arguments_stay_as_they_are() -> None:
    x, y = np.full(6, 50, np.int8), np.arange(6, dtype=np.int8)
    got = run(bound(ADD_INTO, N=6), {"x": x, "y": y})
    assert np.array_equal(got["y"], (np.arange(6) + 100).astype(np.int8))
    assert got["seen"].shape == () and got["seen"]
    assert np.array_equal(y, np.arange(6)) and np.array_equal(x, np.full(6, 50))


def test_arguments_may_be_strided_and_read_only() -> None:
    x, y = np.full((6, 2), 50, np.int8)[:, 0], np.arange(12, dtype=np.int8)[::2]
    x.flags.writeable = y.flags.writeable = False
    got = run(bound(ADD_INTO, N=6), {"x": x, "y": y})
    assert np.array_equal(got["y"], (np.arange(0, 12, 2) + 100).astype(np.int8))


def test_a_given_output_keeps_what_is_not_written() -> None:
    text = LEAK.replace("store y[n] = %x", "store y[n] = %x where 2 <= n < 3")
    y = np.full(4, 7, np.float32)
    assert run(bound(text, N=4), {"x": normal(4), "y": y})["y"].tolist() == [7, 7, float(normal(4)[1]), 7]
    assert y.tolist() == [7, 7, 7, 7]


BAD: dict[str, dict[str, Any]] = {
    "missing tensor": {"x": None},
    "missing inout": {"y": None},
    "missing scalar": {"s": None},
    "wrong dtype": {"x": np.zeros(3, np.float64)},
    "wrong shape": {"x": np.zeros(4, np.float32)},
    "wrong rank": {"x": np.zeros((3, 1), np.float32)},
    "unknown name": {"z": np.zeros(3, np.float32)},
    "scalar of another kind": {"s": 1.5},
    "scalar out of range": {"s": 128},
    "scalar that is a tensor": {"s": np.zeros(1, np.int8)},
}


@pytest.mark.parametrize("name", BAD)
def test_arguments_are_checked(name: str) -> None:
    text = "kernel f(x: in f32[N], y: inout f32[N], s: i8) { size N }"
    good: dict[str, Any] = {"x": np.zeros(3, np.float32), "y": np.zeros(3, np.float32), "s": np.int8(3)}
    assert run(bound(text, N=3), good)["y"].tolist() == [0, 0, 0]
    arguments = {key: value for key, value in {**good, **BAD[name]}.items() if value is not None}
    with pytest.raises(KdslError) as caught:
        run(bound(text, N=3), arguments)
    assert caught.value.code == "K0505"
    assert next(iter(BAD[name])) in caught.value.message


# -- empty sizes and loops -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), [(0, 5), (5, 0), (0, 0)])
@pytest.mark.parametrize("text", [SOFTMAX, LAYERNORM])
def test_empty_tensors_give_empty_results(text: str, m: int, n: int) -> None:
    arguments = {"x": normal(m, n)} if text == SOFTMAX else {"x": normal(m, n), "w": normal(n), "eps": 0.1}
    assert run(bound(text, M=m, N=n), arguments)["y"].shape == (m, n)


def test_a_sum_over_nothing_is_zero() -> None:
    import ml_dtypes

    a = np.zeros((3, 0), ml_dtypes.bfloat16)
    got = run(bound(MATMUL, M=3, N=2, K=0), {"a": a, "b": a[:2].T})["c"]
    assert got.tolist() == [[0, 0]] * 3


def test_a_loop_without_iterations_gives_its_initial_values() -> None:
    got = run(bound(ARGMAX, M=2, N=0), {"x": normal(2, 0)})
    assert got["best"].tolist() == [-np.inf, -np.inf]
    assert got["where"].tolist() == [-1, -1]


TRIANGLE = """kernel triangle(y: out i32[M]) {
  size M
  program p < M
  loop i < p
  loop j < i + 1
  %one: i32 = constant {value = 1}
  %zero: i32 = constant {value = 0}
  %n: i32[p] = for i (%a: i32[p, i] = %zero) {
    %b: i32[p, i] = for j (%c: i32[p, i, j] = %a) {
      %d: i32[p, i, j] = add %c, %one
      yield %d
    }
    yield %b
  }
  store y[p] = %n
}
"""


def test_trip_counts_may_depend_on_programs_and_outer_loops() -> None:
    assert run(bound(TRIANGLE, M=6), {})["y"].tolist() == [0, 1, 3, 6, 10, 15]


def test_reduce_of_no_valid_lane_is_the_identity() -> None:
    for combine, identity in [("add", 0), ("mul", 1), ("maximum", -128), ("minimum", 127), ("and", -1), ("or", 0)]:
        text = f"""kernel f(x: in i8[N], y: out i8[]) {{
          size N
          axis n < 4 where n < N
          %x: i8[n] = load x[n]
          %r: i8 = reduce %x {{axis = n, combine = {combine}}}
          store y[] = %r
        }}"""
        assert run(bound(text, N=0), {"x": np.zeros(0, np.int8)})["y"] == identity, combine


def test_a_dot_ignores_what_invalid_lanes_hold() -> None:
    text = """kernel f(x: in f32[N], y: out f32[]) {
      size N
      axis n < 8 where n < N
      %x: f32[n] = load x[n]
      %inf: f32[n] = div %x, %x
      %log: f32[n] = log %inf
      %r: f32 = dot %inf, %log {axis = n, precision = ieee}
      store y[] = %r
    }"""
    assert run(bound(text, N=3), {"x": np.ones(3, np.float32)})["y"] == 0
