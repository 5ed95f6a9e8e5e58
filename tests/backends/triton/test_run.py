"""Emitted code under Triton's interpreter against the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kdsl.backends.triton import TARGET
from kdsl.diagnostics import KdslError
from kdsl.interpreter import run
from kdsl.ir.kernel import Kernel, bind
from kdsl.runtime.worker import Worker
from tests.backends.triton import kernels

pytest.importorskip("triton", reason="an extra; tests/test_extras.py fails without it")
pytest.importorskip("torch", reason="an extra; tests/test_extras.py fails without it")

Array = kernels.Array


def both(
    kernel: Kernel, sizes: Mapping[str, int], arguments: Mapping[str, Any], **tiles: int
) -> list[tuple[str, Array, Array]]:
    """Name, emitted and expected value of each result."""
    expected = run(bind(kernel, sizes, tiles), arguments)
    got = TARGET.run(TARGET.emit(kernel, tiles, sizes), sizes, arguments)
    assert list(got) == list(expected)
    return [(name, got[name], expected[name]) for name in expected]


def assert_close(kernel: Kernel, sizes: Mapping[str, int], arguments: Mapping[str, Any], tolerance: float) -> None:
    for name, got, expected in both(kernel, sizes, arguments):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got.astype(float), expected.astype(float), tolerance, tolerance, err_msg=name)


def assert_same(kernel: Kernel, sizes: Mapping[str, int], arguments: Mapping[str, Any], **tiles: int) -> None:
    for name, got, expected in both(kernel, sizes, arguments, **tiles):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected, err_msg=name)


def as_bf16(text: str) -> str:
    """A kernel on f32 tensors as one on bf16 tensors that computes in f32."""
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        if " = load " in line:
            value, loaded = line.strip().split(" = ", 1)
            name, kind = value.split(": ")
            lines += [f"{indent}{name}.16: b{kind[:1]}16{kind[3:]} = {loaded}", f"{indent}{value} = cast {name}.16"]
        elif line.strip().startswith("store "):
            place, name = line.strip().removeprefix("store ").split(" at ")[0].split(" = ")
            axes = next(other for other in text.splitlines() if f"{name}: f32[" in other).split(f"{name}: f32[")[1]
            lines.append(f"{indent}{name}.out: bf16[{axes.split(']')[0]}] = cast {name}")
            lines.append(f"{indent}store {place} = {name}.out")
        else:
            lines.append(line.replace(" in f32[", " in bf16[").replace(" out f32[", " out bf16["))
    return "\n".join(lines)


RAGGED = [(1, 1), (7, 100), (33, 31)]


@pytest.mark.parametrize(("m", "n"), RAGGED)
@pytest.mark.parametrize("text", [kernels.SOFTMAX, kernels.LAYERNORM], ids=["softmax", "layernorm"])
def test_ragged_rows(text: str, m: int, n: int) -> None:
    kernel, sizes = kernels.kernel(text), {"M": m, "N": n}
    assert_close(kernel, sizes, kernels.generic(kernel, sizes), 1e-5)


def test_rows_of_bf16_round_once_at_the_end() -> None:
    kernel, sizes = kernels.kernel(as_bf16(kernels.SOFTMAX)), {"M": 7, "N": 100}
    assert_close(kernel, sizes, kernels.generic(kernel, sizes), 2.0**-8)


def test_softmax_of_far_apart_logits_counts_exactly() -> None:
    kernel, sizes = kernels.kernel(kernels.SOFTMAX), {"M": 7, "N": 100}
    logits = np.where(np.random.default_rng(0).random((7, 100)) < 0.3, 0.0, -1e4).astype(np.float32)
    assert_same(kernel, sizes, {"x": logits})


def test_a_kernel_on_nothing_is_not_launched() -> None:
    for text, sizes in [(kernels.VECTOR_ADD, {"N": 0}), (kernels.SOFTMAX, {"M": 0, "N": 5})]:
        kernel = kernels.kernel(text)
        assert_same(kernel, sizes, kernels.generic(kernel, sizes))


def test_a_contraction_over_nothing_is_zero() -> None:
    kernel, sizes = kernels.kernel(kernels.MATMUL), {"M": 5, "N": 7, "K": 0}
    assert_same(kernel, sizes, kernels.generic(kernel, sizes) | {"bias": np.zeros(7, np.float32)})


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (33, 50, 31), (64, 32, 48)])
def test_matmul_of_small_integers_is_exact(m: int, n: int, k: int) -> None:
    kernel = kernels.kernel(kernels.MATMUL.replace("n] = %cast", "n] = %h").replace("out bf16", "out f32"))
    sizes = {"M": m, "N": n, "K": k}
    arguments = kernels.generic(kernel, sizes, integers=True)
    assert_same(kernel, sizes, arguments)
    assert_same(kernel, sizes, arguments, BM=16, BN=64, BK=32)


def test_matmul_with_activation() -> None:
    kernel, sizes = kernels.kernel(kernels.MATMUL), {"M": 33, "N": 50, "K": 31}
    assert_close(kernel, sizes, kernels.generic(kernel, sizes), 2.0**-7)


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1), (2, 3, 33, 40, 8), (1, 2, 20, 7, 17)])
def test_causal_attention_with_ragged_lengths_and_a_narrow_head(sizes: tuple[int, ...]) -> None:
    kernel, named = kernels.kernel(kernels.ATTENTION), dict(zip("BHLSD", sizes, strict=True))
    assert_close(kernel, named, kernels.generic(kernel, named), 1e-5)


def test_argmax_takes_the_lowest_lane_and_nan_as_the_largest() -> None:
    kernel = kernels.kernel(kernels.ARGMAX)
    inf, nan = np.inf, np.nan
    rows = np.array([[1, 3, 3, 2, 0], [1, nan, 9, nan, 0], [-inf] * 5, [nan] * 5, [0, -0.0, 0, 0, -0.0]], np.float32)
    ((_, got, expected),) = both(kernel, {"M": 5, "N": 5}, {"x": rows})
    assert got.tolist() == expected.tolist() == [1, 1, 0, 0, 0]


def test_a_reshape_keeps_row_major_order() -> None:
    kernel, sizes = kernels.kernel(kernels.RESHAPE), {"M": 7}
    assert_same(kernel, sizes, kernels.generic(kernel, sizes))


def test_a_loop_whose_values_trade_places() -> None:
    kernel = kernels.kernel(kernels.FIBONACCI)
    ((_, got, _),) = both(kernel, {}, {})
    assert got.tolist() == [55, 89]


def test_an_access_out_of_bounds_is_reported() -> None:
    kernel = kernels.kernel("""
kernel k(x: in f32[N], y: out f32[N]) at "k.py":1:1 {
  size N
  axis n < N
  %x: f32[n] = load x[n + 1]
  store y[n] = %x
}
""")
    source = TARGET.emit(kernel, {}, {"N": 8})
    with pytest.raises(KdslError) as error:
        TARGET.run(source, {"N": 8}, {"x": np.zeros(8, np.float32)})
    assert error.value.code == "K0307"
    assert "out of bounds" in error.value.message


ALONE = """
import sys, importlib.util
sys.modules["kdsl"] = None  # importing it raises ImportError
import torch
spec = importlib.util.spec_from_file_location("softmax", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
x = torch.randn(7, 200)[:, ::2]  # not contiguous
torch.testing.assert_close(module.softmax(x, BM=2), torch.softmax(x, 1))
for bad in [lambda: module.softmax(x.double()), lambda: module.softmax(x[0]), lambda: module.softmax(x, BM=3),
            lambda: module.softmax(torch.empty_strided((2, 2), (2**31, 1), device="meta"))]:
    try:
        bad()
    except ValueError as error:
        print(str(error).split()[0])
"""


def test_an_emitted_file_runs_alone_on_strided_tensors_and_rejects_what_it_must(tmp_path: Path) -> None:
    path = tmp_path / "softmax.py"
    path.write_text(TARGET.emit(kernels.kernel(kernels.SOFTMAX), {}, {"M": 7, "N": 100}).text)
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", ALONE, str(path)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["x", "x", "BM", "a"]


@pytest.mark.parametrize("arch", ["cuda:90", "hip:gfx942"])
@pytest.mark.parametrize("name", ["VECTOR_ADD", "SOFTMAX", "MATMUL", "LAYERNORM", "ATTENTION", "ARGMAX", "RESHAPE"])
def test_it_compiles(name: str, arch: str) -> None:
    kernel = kernels.kernel(getattr(kernels, name))
    sizes = {size.name: 64 for size in kernel.sizes}
    report = TARGET.check(TARGET.emit(kernel, {}, sizes), sizes, arch)
    assert report.accepted, report.message
    assert report.figures["registers"] > 0
    assert set(report.artefacts) == {".ptx" if arch.startswith("cuda") else ".amdgcn"}


def test_sizes_of_one_compile_although_triton_makes_them_constants() -> None:
    kernel = kernels.kernel(kernels.LAYERNORM)
    sizes = {"M": 1, "N": 1}
    assert TARGET.check(TARGET.emit(kernel, {}, sizes), sizes, "cuda:90").accepted


def test_what_the_compiler_rejects_is_reported_with_its_line() -> None:
    from dataclasses import replace

    kernel = kernels.kernel(kernels.ARGMAX)
    sizes = {"M": 8, "N": 8}
    source = TARGET.emit(kernel, {}, sizes)
    broken = replace(source, text=source.text.replace("tl.arange(0, BLOCK_N)", "tl.arange(0, BLOCK_N + 1)"))
    report = TARGET.check(broken, sizes, "cuda:90")
    assert not report.accepted
    assert "power of 2" in report.message
    assert report.line == 1 + broken.text.splitlines().index("    offs_n = tl.arange(0, BLOCK_N + 1)")


def test_a_missing_tool_chain_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    source = TARGET.emit(kernels.kernel(kernels.ARGMAX), {}, {"M": 8, "N": 8})
    with pytest.raises(KdslError) as error:
        TARGET.check(source, {"M": 8, "N": 8}, "cuda:90")
    assert error.value.code == "K0305"
    assert set(TARGET.toolchain().archs.values()) == {"triton is not installed"}


def test_a_worker_that_dies_is_a_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Worker("gpu-compile", {"TRITON_INTERPRET": ""}, memory_bytes=1 << 20)
    monkeypatch.setattr("kdsl.backends.triton.target._compiler", lambda: small)
    source = TARGET.emit(kernels.kernel(kernels.ARGMAX), {}, {"M": 8, "N": 8})
    report = TARGET.check(source, {"M": 8, "N": 8}, "cuda:90")
    small.close()
    assert not report.accepted
    assert "memory limit" in report.message
