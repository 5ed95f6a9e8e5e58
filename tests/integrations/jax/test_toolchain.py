"""The JAX tool-chain: emitted sources run on x86, compile for each TPU generation, export and point at their errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kdsl.integrations.jax import emitted, toolchain

os.environ.update(toolchain.ENVIRONMENT)  # jax reads it when imported: these tests run in this process
pytest.importorskip("jax", reason="an extra; tests/test_extras.py fails without it")

SOURCES = Path(__file__).parent / "sources"
BF16 = np.dtype(ml_dtypes.bfloat16)
ARCHS = ("v5e", "v6e", "v7x")
MATMULS = [(257, 100, 31), (33, 1023, 512), (1, 1, 1), (1024, 1000, 512)]
ATTENTIONS = [(1, 1, 1, 1, 1), (1, 2, 100, 33, 80), (1, 1, 33, 300, 128), (2, 2, 257, 257, 64)]


def payload(source: str, function: str, arrays: dict[str, np.ndarray], **keywords: Any) -> dict[str, Any]:
    text = (SOURCES / f"{source}.py").read_text() if source.isidentifier() else source
    arguments = [
        {"name": name, "kind": "array", "shape": list(array.shape), "dtype": array.dtype.name}
        for name, array in arrays.items()
    ]
    return {"source": text, "function": function, "arguments": arguments, "keywords": keywords}


def random(*shape: int, dtype: np.dtype = BF16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def matmul_inputs(M: int, N: int, K: int) -> dict[str, np.ndarray]:
    return {"a": random(M, K, seed=1), "b": random(K, N, seed=2), "bias": random(N, seed=3)}


def attention_inputs(B: int, H: int, L: int, S: int, D: int) -> dict[str, np.ndarray]:
    shapes = {"q": (B, H, L, D), "k": (B, H, S, D), "v": (B, H, S, D)}
    return {name: random(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())}


def matmul_reference(a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64) + bias.astype(np.float64)


def attention_reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = scale * q @ k.swapaxes(2, 3)
    rows, columns = np.indices(s.shape[2:])
    s = np.where(columns <= rows, s, -np.inf)
    e = np.exp(s - s.max(axis=3, keepdims=True))
    return e / e.sum(axis=3, keepdims=True) @ v


def assert_rounded(result: np.ndarray, reference: np.ndarray, absolute: float) -> None:
    """One rounding to bfloat16 (half a unit in its 8th bit) and `absolute` for what happened before it."""
    assert result.dtype == BF16
    assert result.shape == reference.shape
    excess = np.abs(result.astype(np.float64) - reference) - 2**-8 * np.abs(reference)
    assert excess.max() <= absolute


@pytest.mark.parametrize(("M", "N", "K"), MATMULS)
@pytest.mark.parametrize("source", ["pallas_matmul_bias", "xla_sequential"])
def test_matmul_is_right_for_ragged_sizes(source: str, M: int, N: int, K: int) -> None:
    arrays = matmul_inputs(M, N, K)
    keywords = {"interpret": True} if source.startswith("pallas") else {}
    values, results = toolchain.run(payload(source, "matmul_bias", arrays, **keywords), arrays)
    assert values == {"x64": False}
    assert_rounded(results["0"], matmul_reference(**arrays), absolute=1e-4)


@pytest.mark.parametrize(("B", "H", "L", "S", "D"), ATTENTIONS)
def test_attention_is_right_for_ragged_sizes(B: int, H: int, L: int, S: int, D: int) -> None:
    arrays = attention_inputs(B, H, L, S, D)
    _, results = toolchain.run(payload("pallas_attention", "attention", arrays, scale=0.125, interpret=True), arrays)
    # The weights are rounded to bfloat16 before they meet v; they sum to one.
    absolute = 2**-8 * np.abs(arrays["v"].astype(np.float64)).max()
    assert_rounded(results["0"], attention_reference(**arrays, scale=0.125), absolute)


def test_softmax_is_right_for_ragged_rows() -> None:
    arrays = {"x": random(33, 1023)}
    _, results = toolchain.run(payload("xla_sequential", "softmax", arrays), arrays)
    e = np.exp(arrays["x"].astype(np.float64))
    assert_rounded(results["0"], e / e.sum(axis=1, keepdims=True), absolute=1e-7)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("M", "N", "K"), MATMULS)
def test_matmul_compiles_for_every_generation(arch: str, M: int, N: int, K: int) -> None:
    request = payload("pallas_matmul_bias", "matmul_bias", matmul_inputs(M, N, K)) | {"arch": arch}
    values, _ = toolchain.compile_tpu(request, {})
    assert values["custom_calls"] == 1
    assert values["hlo_bytes"] > 0
    assert values["memory"]["output"] >= M * N * BF16.itemsize


@pytest.mark.parametrize("arch", ARCHS)
def test_attention_compiles_for_every_generation(arch: str) -> None:
    for sizes in ATTENTIONS:
        request = payload("pallas_attention", "attention", attention_inputs(*sizes), scale=0.125) | {"arch": arch}
        assert toolchain.compile_tpu(request, {})[0]["custom_calls"] == 1


@pytest.mark.parametrize("arch", ARCHS)
def test_sequential_form_compiles_for_tpu_without_a_pallas_kernel(arch: str) -> None:
    request = payload("xla_sequential", "matmul_bias", matmul_inputs(257, 100, 31)) | {"arch": arch}
    values, _ = toolchain.compile_tpu(request, {})
    assert values["custom_calls"] == 0
    assert values["flops"] > 0


@pytest.mark.parametrize("arch", ARCHS)
def test_compiler_rejects_a_bfloat16_select_on_a_block_taller_than_its_array(arch: str) -> None:
    """Why the sources cut tiles down to the dimension; and a case where the compiler's word comes through."""
    text = (SOURCES / "pallas_matmul_bias.py").read_text()
    request = payload(
        text.replace("min(BM, M), min(BN, N), min(BK, K)", "BM, BN, BK"), "matmul_bias", matmul_inputs(4, 1, 31)
    )
    with pytest.raises(emitted.ToolchainError, match="Not implemented: Sublane broadcast") as caught:
        toolchain.compile_tpu(request | {"arch": arch}, {})
    assert "a = jnp.where(" in text.splitlines()[caught.value.line - 1]
    assert "report a bug" not in str(caught.value)


def test_a_block_shape_that_tpus_lack_is_blamed_on_its_line() -> None:
    request = payload("pallas_matmul_bias", "matmul_bias", matmul_inputs(33, 100, 31), BM=12) | {"arch": "v6e"}
    with pytest.raises(emitted.ToolchainError, match="divisible by 8 and 128") as caught:
        toolchain.compile_tpu(request, {})
    assert "pl.pallas_call(" in request["source"].splitlines()[caught.value.line - 1]
    assert "in pallas_call matmul_bias at line 18 " in str(caught.value)  # the kernel, not a temporary file


def test_an_operation_without_a_tpu_lowering_is_blamed_on_its_line() -> None:
    source = """\
import jax
from jax import lax
from jax.experimental import pallas as pl

def kernel(x_ref, y_ref):
    x = x_ref[...]
    y_ref[...] = lax.cumsum(x, axis=1)

def scan(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""
    request = payload(source, "scan", {"x": random(8, 128)}) | {"arch": "v5e"}
    with pytest.raises(emitted.ToolchainError, match="cumsum") as caught:
        toolchain.compile_tpu(request, {})
    assert caught.value.line == 7


def test_an_error_while_running_is_blamed_on_its_line() -> None:
    source = "import jax.numpy as jnp\n\n\ndef double(x):\n    return x + jnp.zeros((3, 5))\n"
    arrays = {"x": random(8, 128)}
    with pytest.raises(emitted.ToolchainError, match="incompatible shapes") as caught:
        toolchain.run(payload(source, "double", arrays), arrays)
    assert caught.value.line == 5


def test_source_that_does_not_parse_is_blamed_on_its_line() -> None:
    with pytest.raises(emitted.ToolchainError, match="SyntaxError") as caught:
        emitted.load("import math\n\ndef f(:\n")
    assert caught.value.line == 3


def test_a_source_is_imported_once() -> None:
    assert emitted.load("ONE = [1]\n") is emitted.load("ONE = [1]\n")
    assert emitted.load("ONE = [1]\n") is not emitted.load("ONE = [2]\n")


def test_64_bit_types_are_enabled_for_64_bit_arrays_only() -> None:
    source = "import jax.numpy as jnp\n\n\ndef double(x):\n    return x + x, jnp.arange(2)\n"
    for dtype, index, x64 in (("float64", "int64", True), ("float32", "int32", False)):
        arrays = {"x": random(3, dtype=np.dtype(dtype))}
        values, results = toolchain.run(payload(source, "double", arrays), arrays)
        assert values == {"x64": x64}
        assert (results["0"].dtype.name, results["1"].dtype.name) == (dtype, index)
        np.testing.assert_array_equal(results["0"], 2 * arrays["x"])


def test_64_bit_arrays_do_not_compile_for_tpu() -> None:
    source = "def negate(x):\n    return -x\n"
    request = payload(source, "negate", {"x": random(3, dtype=np.dtype("float64"))}) | {"arch": "v5e"}
    with pytest.raises(emitted.ToolchainError, match="TPUs have no 64-bit types: x"):
        toolchain.compile_tpu(request, {})


def test_scalars_are_positional_constants() -> None:
    source = "def scale(x, factor, y):\n    return factor * x - y\n"
    arrays = {"x": random(8, 128, dtype=np.dtype("float32")), "y": np.ones((8, 128), np.float32)}
    request = payload(source, "scale", arrays)
    request["arguments"].insert(1, {"kind": "scalar", "value": 0.5})
    _, results = toolchain.run(request, arrays)
    np.testing.assert_array_equal(results["0"], arrays["x"] / 2 - 1)
    assert toolchain.compile_tpu(request | {"arch": "v5e"}, {})[0]["memory"]["argument"] == 2 * 8 * 128 * 4


def test_exported_stablehlo_gives_what_the_source_gives() -> None:
    arrays = matmul_inputs(257, 100, 31)
    request = payload("xla_sequential", "matmul_bias", arrays)
    values, _ = toolchain.export_stablehlo(request, {})
    assert "stablehlo.while" in values["text"]
    assert values["bytes"] > 0
    assert values["platforms"] == ["cpu", "tpu"]
    _, results = toolchain.run_stablehlo({"text": values["text"], "names": ["a", "b", "bias"]}, arrays)
    np.testing.assert_array_equal(results["0"], toolchain.run(request, arrays)[1]["0"])


def test_exported_stablehlo_keeps_unused_arguments_and_64_bit_types() -> None:
    source = "def first(x, y):\n    return x + x\n"
    arrays = {"x": np.array([2**40, 3]), "y": np.zeros(5, np.float32)}
    values, _ = toolchain.export_stablehlo(payload(source, "first", arrays), {})
    assert values["x64"]
    _, results = toolchain.run_stablehlo({"text": values["text"], "names": ["x", "y"]}, arrays)
    np.testing.assert_array_equal(results["0"], [2**41, 6])
    assert results["0"].dtype == np.int64


def test_a_function_for_one_platform_says_why_not_the_other() -> None:
    arrays = matmul_inputs(8, 128, 128)
    values, _ = toolchain.export_stablehlo(payload("pallas_matmul_bias", "matmul_bias", arrays, interpret=True), {})
    assert values["platforms"] == ["cpu", "tpu"]
    with pytest.raises(emitted.ToolchainError, match="interpret mode"):
        toolchain.export_stablehlo(payload("pallas_matmul_bias", "matmul_bias", arrays), {})


@pytest.mark.parametrize(
    "text",
    [
        "func.func public @main() {",
        "func.func public @main(%x: tensor<2xf32>) -> tensor<3xf32> { return %x : tensor<2xf32> }",
    ],
)
def test_broken_stablehlo_is_an_error(text: str) -> None:
    with pytest.raises(emitted.ToolchainError):
        toolchain.run_stablehlo({"text": text, "names": []}, {})


def test_probe_finds_every_generation() -> None:
    values, _ = toolchain.probe({}, {})
    assert values["archs"] == list(ARCHS), values["missing"]
    assert values["missing"] == {}
    assert values["versions"]["jax"] == "0.10.2"
    assert values["versions"]["libtpu"]


def test_an_unknown_generation_is_an_error() -> None:
    request = payload("def negate(x):\n    return -x\n", "negate", {"x": random(8, 128)}) | {"arch": "v99"}
    with pytest.raises(emitted.ToolchainError, match="no TPU generation 'v99'"):
        toolchain.compile_tpu(request, {})
