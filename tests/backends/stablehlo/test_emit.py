"""What the cpu target writes: golden files, formatted as this repository is, written without any tool-chain."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kdsl.backends.stablehlo import TARGET
from kdsl.diagnostics import KdslError
from kdsl.ir.kernel import Kernel
from tests.backends.stablehlo import kernels

ROOT = Path(__file__).parents[3]
KERNELS = {
    "vector_add": (kernels.VECTOR_ADD, "f32"),
    "softmax": (kernels.SOFTMAX, "bf16"),
    "matmul": (kernels.MATMUL, "bf16"),
    "layernorm": (kernels.LAYERNORM, "f32"),
    "attention_causal": (kernels.CAUSAL_ATTENTION, "bf16"),
    "argmax_rows": (kernels.ARGMAX_ROWS, "f32"),
    "strided_window": (kernels.STRIDED_WINDOW, "f32"),
    "accumulate": (kernels.ACCUMULATE, "f32"),
    "partial_store": (kernels.PARTIAL_STORE, "f32"),
    "reverse": (kernels.REVERSE, "f32"),
    "nested": (kernels.NESTED, "f32"),
}


def emitted(name: str) -> str:
    text, dtype = KERNELS[name]
    return TARGET.emit(kernels.kernel(text, dtype), {}, {}).text


@pytest.mark.parametrize("name", KERNELS)
def test_emitted_source_is_the_golden_one(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.py", emitted(name))


def test_emitted_sources_need_no_formatting_and_have_no_dead_code(tmp_path: Path) -> None:
    for name in KERNELS:
        (tmp_path / f"{name}.py").write_text(emitted(name))
    every_op = [(op, "i32") for op in (*kernels.INTEGER_BINARY, "neg", "abs", "not")]
    (tmp_path / "each_op.py").write_text(TARGET.emit(kernels.each_op("i32", every_op), {}, {}).text)
    options = ["--config", str(ROOT / "pyproject.toml"), str(tmp_path)]
    for command in (["format", "--diff"], ["check", "--select", "E,F"]):
        run = subprocess.run([sys.executable, "-m", "ruff", *command, *options], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr


def test_emitting_imports_no_tool_chain() -> None:
    program = (
        "import sys\n"
        "from kdsl.backends.stablehlo import TARGET\n"
        "assert 'jinja2' not in sys.modules\n"
        "from tests.backends.stablehlo.kernels import MATMUL, kernel\n"
        "assert 'fori_loop' in TARGET.emit(kernel(MATMUL), {}, {}).text\n"
        "print(*{name.partition('.')[0] for name in sys.modules} & {'jax', 'jaxlib', 'triton', 'torch'})\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (run.stdout.strip(), run.returncode) == ("", 0), run.stderr


def test_tile_sizes_become_the_defaults() -> None:
    source = TARGET.emit(kernels.kernel(kernels.MATMUL), {"BM": 16}, {})
    assert "*, BM=16, BN=64, BK=32)" in source.text
    assert source.tiles == {"BM": 16, "BN": 64, "BK": 32}
    assert source.form == "sequential"


def test_the_sliced_tensors_are_padded_to_whole_tiles_and_no_others() -> None:
    text = emitted("matmul")
    assert "a = pad(a, (0, BM * m_blocks), (0, BK * max(1, k_blocks)))" in text
    assert "where(" not in text  # zeros in the padding are what the dot wants
    assert "weight = pad" not in emitted("layernorm")


# -- refusals ------------------------------------------------------------------------------------------------------


def refusal(act: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(KdslError) as caught:
        act()
    return caught.value.code, caught.value.message


def test_a_name_that_the_module_needs_is_refused() -> None:
    kernel = kernels.kernel(kernels.VECTOR_ADD.replace("y: in", "pad: in").replace("load y", "load pad"))
    code, message = refusal(lambda: TARGET.emit(kernel, {}, {}))
    assert code == "K0301"
    assert "pad" in message


def test_a_tile_size_must_exist_and_be_positive() -> None:
    kernel = kernels.kernel(kernels.MATMUL)
    assert refusal(lambda: TARGET.emit(kernel, {"BX": 4}, {}))[0] == "K0503"
    assert refusal(lambda: TARGET.emit(kernel, {"BM": 0}, {}))[0] == "K0504"


# -- what an emitted function says to its caller -------------------------------------------------------------------


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Kernel], ModuleType]:
    pytest.importorskip("jax", reason="an extra; tests/test_extras.py fails without it")

    def load(kernel: Kernel) -> ModuleType:
        path = tmp_path_factory.mktemp("emitted") / f"{kernel.name}.py"
        path.write_text(TARGET.emit(kernel, {}, {}).text)
        spec = importlib.util.spec_from_file_location(f"emitted_{kernel.name}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_a_wrong_call_of_an_emitted_function_is_a_clear_error(load: Callable[[Kernel], ModuleType]) -> None:
    module = load(kernels.kernel(kernels.LAYERNORM))
    x, row = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    with pytest.raises(ValueError, match=r"x: expected 2 dimensions of float32, got int32\[2, 3\]"):
        module.layernorm(x.astype(np.int32), row, row, 1e-5)
    with pytest.raises(ValueError, match=r"x: expected 2 dimensions of float32, got float32\[3\]"):
        module.layernorm(row, row, row, 1e-5)
    with pytest.raises(ValueError, match=r"bias\[N\]: expected shape \(3,\), got \(2,\)"):
        module.layernorm(x, row, row[:2], 1e-5)
    with pytest.raises(ValueError, match="layernorm requires N > 0"):
        module.layernorm(x[:, :0], row[:0], row[:0], 1e-5)
    with pytest.raises(ValueError, match="tile sizes are at least 1"):
        module.layernorm(x, row, row, 1e-5, BM=0)


def test_64_bit_kernels_ask_for_64_bit_types(load: Callable[[Kernel], ModuleType]) -> None:
    kernel = kernels.kernel(kernels.VECTOR_ADD, "i64")
    assert TARGET.emit(kernel, {}, {}).notes == ("uses 64-bit types, which JAX has only under jax_enable_x64",)
    with pytest.raises(ValueError, match="vector_add computes in 64 bits: set jax"):
        load(kernel).vector_add(np.ones(3, np.int64), np.ones(3, np.int64))


@pytest.mark.parametrize("name", ["attention_causal", "argmax_rows", "reverse"])
def test_32_bit_kernels_do_not_care_whether_64_bit_types_are_on(
    name: str, load: Callable[[Kernel], ModuleType]
) -> None:
    import jax

    text, _ = KERNELS[name]
    kernel = kernels.kernel(text)
    function = getattr(load(kernel), kernel.name)
    shapes = {"attention_causal": [(1, 2, 9, 4)] * 3 + [()], "reverse": [(9,)]}
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes.get(name, [(5, 9)])]
    narrow = jax.tree.leaves(function(*arrays))
    with jax.enable_x64(True):
        wide = jax.tree.leaves(function(*arrays))
    for one, other in zip(narrow, wide, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_a_kernel_without_a_grid_is_one_program(load: Callable[[Kernel], ModuleType]) -> None:
    kernel = kernels.kernel("""
    kernel total(x: in f32[N], y: out f32[]) {
      size N
      axis n < N
      %x: f32[n] = load x[n]
      %sum: f32 = reduce %x {axis = n, combine = add}
      store y[] = %sum
    }""")
    assert load(kernel).total(np.arange(5, dtype=np.float32)) == 10
