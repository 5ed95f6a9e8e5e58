"""The cpu target against the oracle: what runs is the StableHLO module that was exported and verified."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kdsl.backends.stablehlo import TARGET
from kdsl.diagnostics import KdslError
from kdsl.interpreter import run as run_oracle
from kdsl.ir.kernel import Kernel, bind
from kdsl.runtime.target import find_target
from tests.backends.stablehlo import kernels

pytest.importorskip("jax", reason="an extra; tests/test_extras.py fails without it")

Arrays = dict[str, np.ndarray[Any, Any]]


def outputs(kernel: Kernel, sizes: Mapping[str, int], arguments: Arrays, **tiles: int) -> tuple[Arrays, Arrays]:
    """What the target gives and what the oracle gives."""
    source = TARGET.emit(kernel, tiles, sizes)
    given = {size.name: sizes[size.name] for size in kernel.sizes if size.value is None}
    oracle = run_oracle(bind(kernel, given, source.tiles), arguments)
    return TARGET.run(source, given, arguments), oracle


def assert_equal(kernel: Kernel, sizes: Mapping[str, int], arguments: Arrays, **tiles: int) -> None:
    """No difference at all, NaN for NaN."""
    got, want = outputs(kernel, sizes, arguments, **tiles)
    assert list(got) == list(want)
    for name in want:
        assert got[name].dtype == want[name].dtype
        np.testing.assert_array_equal(_comparable(got[name]), _comparable(want[name]), err_msg=name)


def _comparable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NumPy's testing functions know no NaN of bfloat16."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def assert_close(kernel: Kernel, sizes: Mapping[str, int], arguments: Arrays, ulp: float = 8, **tiles: int) -> None:
    """Within a few units in the last place of the largest value in the output."""
    got, want = outputs(kernel, sizes, arguments, **tiles)
    for name in want:
        unit = 2.0 ** -{2: 8, 4: 23, 8: 52}[want[name].dtype.itemsize]
        scale = max(1.0, float(np.abs(want[name].astype(np.float64)).max(initial=0)))
        error = np.abs(got[name].astype(np.float64) - want[name].astype(np.float64)).max(initial=0)
        assert error <= ulp * unit * scale, (name, error)


def numbers(dtype: str, *shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    array = np.random.default_rng(seed).standard_normal(shape)
    return array.astype(kernels.NUMPY[dtype])


def integers(dtype: str, *shape: int, seed: int = 0, span: int = 4) -> np.ndarray[Any, Any]:
    """Small integers: their sums and products are exact in any order."""
    return np.random.default_rng(seed).integers(-span, span + 1, shape).astype(kernels.NUMPY[dtype])


def logits(dtype: str, *shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """0 or -1e4, at least one 0 a row: exp gives 1 or 0, and softmax counts."""
    array = np.where(np.random.default_rng(seed).random(shape) < 0.5, 0, -1e4)
    array[..., :1] = 0
    return array.astype(kernels.NUMPY[dtype])


# -- the five kernels of the demo ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("N", "dtype"), [(1, "f32"), (1023, "bf16"), (100, "i8"), (0, "f32")])
def test_vector_add(N: int, dtype: str) -> None:
    x, y = integers(dtype, N, span=100), integers(dtype, N, seed=1, span=100)
    assert_equal(kernels.kernel(kernels.VECTOR_ADD, dtype), {"N": N}, {"x": x, "y": y})


@pytest.mark.parametrize(("M", "N", "dtype"), [(1, 1, "f32"), (33, 100, "bf16"), (257, 1023, "f32"), (7, 0, "f32")])
def test_softmax(M: int, N: int, dtype: str) -> None:
    kernel, sizes = kernels.kernel(kernels.SOFTMAX, dtype), {"M": M, "N": N}
    assert_equal(kernel, sizes, {"x": logits(dtype, M, N)})
    assert_close(kernel, sizes, {"x": numbers(dtype, M, N)}, ulp=1 if dtype == "bf16" else 8)


@pytest.mark.parametrize(
    ("M", "N", "K", "dtype"),
    [(1, 1, 1, "f32"), (7, 100, 31, "bf16"), (257, 100, 512, "bf16"), (33, 1023, 31, "f32"), (7, 5, 0, "bf16")],
)
def test_matmul(M: int, N: int, K: int, dtype: str) -> None:
    kernel, sizes = kernels.kernel(kernels.MATMUL, dtype), {"M": M, "N": N, "K": K}
    exact = {"a": integers(dtype, M, K), "b": integers(dtype, K, N, seed=1), "bias": integers(dtype, N, seed=2)}
    assert_equal(kernel, sizes, exact)
    generic = {"a": numbers(dtype, M, K), "b": numbers(dtype, K, N, seed=1), "bias": numbers(dtype, N, seed=2)}
    assert_close(kernel, sizes, generic, ulp=1 if dtype == "bf16" else 32, BM=32, BN=128, BK=16)


@pytest.mark.parametrize(("M", "N", "dtype"), [(1, 1, "f32"), (33, 100, "bf16"), (257, 1023, "f32")])
def test_layernorm(M: int, N: int, dtype: str) -> None:
    arguments = {
        "x": numbers(dtype, M, N),
        "weight": numbers(dtype, N, seed=1),
        "bias": numbers(dtype, N, seed=2),
        "eps": np.float32(1e-5),
    }
    assert_close(
        kernels.kernel(kernels.LAYERNORM, dtype), {"M": M, "N": N}, arguments, ulp=2 if dtype == "bf16" else 16
    )


@pytest.mark.parametrize("text", [kernels.ATTENTION, kernels.CAUSAL_ATTENTION], ids=["full", "causal"])
@pytest.mark.parametrize(
    ("shape", "dtype"), [((1, 1, 1, 1, 1), "f32"), ((1, 2, 100, 33, 16), "bf16"), ((2, 1, 33, 100, 8), "f32")]
)
def test_attention(text: str, shape: tuple[int, ...], dtype: str) -> None:
    sizes = dict(zip("BHLSD", shape, strict=True))
    B, H, L, S, D = shape
    kernel = kernels.kernel(text, dtype)
    one = np.float32(1)
    # q is (1, 0, ...) and k has the logits in its first column, so that the scores are the logits.
    q = np.zeros((B, H, L, D), kernels.NUMPY[dtype])
    q[..., 0] = 1
    k = np.repeat(logits(dtype, B, H, S)[..., None], D, axis=-1)
    assert_equal(kernel, sizes, {"q": q, "k": k, "v": integers(dtype, B, H, S, D), "scale": one}, BL=32, BS=16)
    q, k, v = (numbers(dtype, B, H, length, D, seed=i) for i, length in enumerate((L, S, S)))
    generic = {"q": q, "k": k, "v": v, "scale": np.float32(D**-0.5)}
    assert_close(kernel, sizes, generic, ulp=4 if dtype == "bf16" else 32)


# -- one thing each ------------------------------------------------------------------------------------------------


def test_argmax_takes_the_first_of_equal_lanes_and_the_first_nan() -> None:
    x = np.array([[1, 3, 3, 0, 0], [2, np.nan, 5, np.nan, -1], [0, 0, 0, 0, 0]], np.float32)
    assert_equal(kernels.kernel(kernels.ARGMAX_ROWS), {"M": 3, "N": 5}, {"x": x})
    assert_equal(kernels.kernel(kernels.ARGMAX_ROWS), {"M": 3, "N": 0}, {"x": x[:, :0]})


def test_reshape_keeps_the_order_of_rows() -> None:
    assert_equal(kernels.kernel(kernels.SPLIT_HALVES), {"M": 5}, {"x": integers("f32", 5, 12)})


def test_two_loops_of_which_one_updates_a_tensor() -> None:
    arguments = {"x": integers("f32", 33, 100), "total": integers("f32", 33)}
    assert_equal(kernels.kernel(kernels.ACCUMULATE), {"M": 33, "N": 100}, arguments)
    assert_equal(kernels.kernel(kernels.ACCUMULATE), {"M": 33, "N": 0}, {**arguments, "x": integers("f32", 33, 0)})


def test_a_nested_loop_whose_trip_count_depends_on_the_program() -> None:
    assert_equal(kernels.kernel(kernels.NESTED), {"M": 7, "N": 31}, {"x": integers("f32", 7, 31)})


@pytest.mark.parametrize("L", [1, 2, 33, 100])
def test_a_strided_window_that_leaves_the_tensor_at_both_ends(L: int) -> None:
    arguments = {"x": integers("f32", L), "w": integers("f32", 3, seed=1)}
    assert_equal(kernels.kernel(kernels.STRIDED_WINDOW), {"L": L}, arguments)


@pytest.mark.parametrize("N", [1, 16, 33])
def test_backward_loads_and_interleaved_stores(N: int) -> None:
    assert_equal(kernels.kernel(kernels.REVERSE), {"N": N}, {"x": integers("f32", N)})


@pytest.mark.parametrize("K", [0, 5, 40])
def test_a_store_leaves_what_is_outside_its_bounds(K: int) -> None:
    arguments = {"x": integers("f32", 9, 21), "y": integers("f32", 9, 21, seed=1), "S": np.int32(3)}
    assert_equal(kernels.kernel(kernels.PARTIAL_STORE), {"M": 9, "N": 21, "K": K}, arguments)


# -- the op table's exact ops --------------------------------------------------------------------------------------

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")


def corners(dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Every pair of the values where rules differ: ends of the range, around zero, around the width, NaN, infinity."""
    numpy = kernels.NUMPY[dtype]
    if dtype in FLOATS:
        values = np.array([0, -0.0, 1, -1, 1.5, -2.5, 3, 127.6, -128.7, 300, 6e4, np.inf, -np.inf, np.nan]).astype(
            numpy
        )
    else:
        limits = np.iinfo(numpy)
        low = [limits.min, limits.min + 1, -7, -2, -1] if limits.min else []
        values = np.array([*low, 0, 1, 2, 3, 7, 8, 31, 33, 64, 100, limits.max - 1, limits.max], dtype=numpy)
    x, y = np.meshgrid(values, values)
    return x.ravel(), y.ravel()


SLOW_INTEGERS = [pytest.param(dtype, marks=pytest.mark.slow) for dtype in ("i16", "u16", "u64")]


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "u8", "u32", *SLOW_INTEGERS])
def test_integer_ops_wrap_and_are_total(dtype: str) -> None:
    ops = [(op, dtype) for op in (*kernels.INTEGER_BINARY, "neg", "abs", "not")] + [
        (op, "bool") for op in kernels.COMPARISONS
    ]
    x, y = corners(dtype)
    assert_equal(kernels.each_op(dtype, ops), {"N": len(x)}, {"x": x, "y": y})


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_ops_round_once_and_keep_nan_and_infinity(dtype: str) -> None:
    unary = ("neg", "abs", "floor", "ceil")
    ops = [(op, dtype) for op in (*kernels.FLOAT_BINARY, *unary)] + [(op, "bool") for op in kernels.COMPARISONS]
    x, y = corners(dtype)
    assert_equal(kernels.each_op(dtype, ops), {"N": len(x)}, {"x": x, "y": y})


@pytest.mark.parametrize("dtype", ["i32", "u32", "f32", "f64", pytest.param("i64", marks=pytest.mark.slow), "bf16"])
def test_casts_round_to_even_wrap_and_saturate(dtype: str) -> None:
    x, _ = corners(dtype)
    rng = np.random.default_rng(0)
    if dtype in FLOATS:
        more = (rng.standard_normal(400) * 2.0 ** rng.integers(-10, 70, 400)).astype(kernels.NUMPY[dtype])
    else:
        limits = np.iinfo(kernels.NUMPY[dtype])
        more = rng.integers(limits.min, limits.max, 400, kernels.NUMPY[dtype], endpoint=True)
    x = np.concatenate([x, more])
    ops = [("cast", other) for other in (*INTEGERS, *FLOATS, "bool") if other != dtype]
    with np.errstate(over="ignore", invalid="ignore"):
        assert_equal(kernels.each_op(dtype, ops), {"N": len(x)}, {"x": x, "y": x})


# -- the protocol --------------------------------------------------------------------------------------------------


def test_check_gives_verified_stablehlo_text() -> None:
    source = TARGET.emit(kernels.kernel(kernels.MATMUL, "bf16"), {}, {"M": 33, "N": 20, "K": 40})
    report = TARGET.check(source, {"M": 33, "N": 20, "K": 40}, "x86")
    assert report.accepted, report.message
    module = report.artefacts[".mlir"]
    assert isinstance(module, str)
    assert "tensor<33x40xbf16>" in module
    assert "stablehlo.while" in module
    assert report.figures["stablehlo_lines"] == module.count("\n")


def test_check_reports_what_the_source_refuses() -> None:
    source = TARGET.emit(kernels.kernel(kernels.VECTOR_ADD), {}, {})
    broken = dataclasses.replace(source, text=source.text.replace("x_tile + y_tile", "x_tile + y_tile[:3]"))
    report = TARGET.check(broken, {"N": 9}, "x86")
    assert not report.accepted
    assert "line" in report.message or "incompatible shapes" in report.message
    with pytest.raises(KdslError, match="K0307"):
        TARGET.run(broken, {"N": 9}, {"x": np.zeros(9, np.float32), "y": np.zeros(9, np.float32)})


def test_code_that_does_not_end_is_stopped_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    source = TARGET.emit(kernels.kernel(kernels.VECTOR_ADD), {}, {})
    endless = "jax.lax.while_loop(lambda z: z[0] == z[0], lambda z: z + 1, x_tile) + y_tile"
    monkeypatch.setattr("kdsl.backends.stablehlo.target.TIMEOUT", 5)
    given = {"x": np.zeros(9, np.float32), "y": np.zeros(9, np.float32)}
    with pytest.raises(KdslError, match="K0310"):
        TARGET.run(dataclasses.replace(source, text=source.text.replace("x_tile + y_tile", endless)), {"N": 9}, given)
    monkeypatch.undo()
    assert TARGET.run(source, {"N": 9}, given)["z"].tolist() == [0] * 9


def test_without_jax_nothing_is_checked_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    source = TARGET.emit(kernels.kernel(kernels.VECTOR_ADD), {}, {})
    monkeypatch.setattr(importlib.metadata, "version", version)
    assert TARGET.toolchain().archs == {"x86": "jax is not installed"}
    with pytest.raises(KdslError, match="K0305"):
        TARGET.check(source, {"N": 9}, "x86")


def test_the_entry_point_finds_the_target() -> None:
    assert find_target("cpu") is TARGET
    assert TARGET.archs == ("x86",)


def test_a_cast_rounds_even_if_it_is_undone_at_once() -> None:
    """bf16 pieces of an f32 (hi, lo) depend on it, and XLA may keep excess precision."""
    kernel = kernels.kernel("""
    kernel low_part(x: in f32[N], y: out f32[N]) {
      size N
      axis n < N
      %x: f32[n] = load x[n]
      %b: bf16[n] = cast %x
      %hi: f32[n] = cast %b
      %lo: f32[n] = sub %x, %hi
      store y[n] = %lo
    }""")
    assert_equal(kernel, {"N": 100}, {"x": numbers("f32", 100)})
