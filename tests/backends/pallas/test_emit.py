"""Emitted modules: golden files that a person can read, formatted as they are, made without any tool-chain."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from kdsl.backends.pallas import TARGET
from kdsl.runtime.target import Source
from tests.backends.pallas import kernels
from tests.backends.pallas.kernels import kernel
from tests.conftest import Golden

ROWS = {"M": 257, "N": 1000}
HEADS = {"B": 2, "H": 2, "L": 256, "S": 256, "D": 64}
EMITTED = {
    "vector_add": (kernel(kernels.VECTOR_ADD), {"N": 5000}),
    "softmax": (kernel(kernels.SOFTMAX), ROWS),
    "matmul": (kernel(kernels.MATMUL, "bf16"), {**ROWS, "K": 512}),
    "layernorm": (kernel(kernels.LAYERNORM, "bf16"), ROWS),
    "attention": (kernel(kernels.ATTENTION, "bf16", **kernels.FULL), HEADS),
    "causal_attention": (kernel(kernels.ATTENTION, "bf16", **kernels.CAUSAL), HEADS),
    "statistics": (kernel(kernels.STATISTICS), ROWS),
    "row_sum": (kernel(kernels.ROW_SUM), ROWS),
    "column_sum": (kernel(kernels.COLUMN_SUM), ROWS),
    "axpy": (kernel(kernels.AXPY), {**ROWS, "S": 500}),
    "bools": (kernel(kernels.BOOLS), ROWS),
    "transpose": (kernel(kernels.TRANSPOSE), ROWS),
    "integers": (kernel(kernels.INTEGERS), ROWS),
}


def emit(name: str) -> Source:
    each, sizes = EMITTED[name]
    return TARGET.emit(each, {}, sizes)


@pytest.mark.parametrize("name", EMITTED)
def test_emitted_source_is_the_golden_file(name: str, golden: Golden) -> None:
    golden(f"{name}.py", emit(name).text)


def test_emitted_source_is_formatted_and_lints_clean(tmp_path: Path) -> None:
    for name in EMITTED:
        (tmp_path / f"{name}.py").write_text(emit(name).text)
    ruff = [sys.executable, "-m", "ruff"]
    formatted = [*ruff, "format", "--isolated", "--line-length=120", "--diff", str(tmp_path)]
    linted = [*ruff, "check", "--isolated", "--line-length=120", "--select=E,F", str(tmp_path)]
    for command in (formatted, linted):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", EMITTED)
def test_emitted_source_imports_only_its_targets_libraries(name: str) -> None:
    tree = ast.parse(emit(name).text)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module.split(".")[0] for module in imported} == {"functools", "jax"}


def test_emitting_twice_gives_the_same_text() -> None:
    assert emit("causal_attention").text == emit("causal_attention").text


def test_the_authors_file_lines_and_names_are_in_the_source() -> None:
    text = emit("matmul").text
    assert "Made by kdsl from matmul.py, line 3." in text
    for part in (
        "# line 8",
        "def matmul(a, b, bias, *, BM=128, BN=128, BK=128, interpret=False):",
        "acc_ref[...] += dot",
    ):
        assert part in text


def test_chosen_tiles_are_the_defaults_of_the_function() -> None:
    each, sizes = EMITTED["matmul"]
    source = TARGET.emit(each, {"BM": 200}, sizes)
    assert source.tiles == {"BM": 200, "BN": 128, "BK": 128}
    assert "BM=200, BN=128, BK=128" in source.text


def test_emitting_imports_no_tool_chain() -> None:
    code = """
import sys
from tests.backends.pallas.test_emit import EMITTED, TARGET
for kernel, sizes in EMITTED.values():
    TARGET.emit(kernel, {}, sizes)
print(sorted({"jax", "jaxlib", "libtpu", "torch", "triton"} & sys.modules.keys()))
"""
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == "[]"
