from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kdsl.backends.triton import TARGET
from kdsl.diagnostics import KdslError
from tests.backends.triton import kernels
from tests.conftest import Golden

ALL = {
    "vector_add": kernels.VECTOR_ADD,
    "softmax": kernels.SOFTMAX,
    "matmul": kernels.MATMUL,
    "layernorm": kernels.LAYERNORM,
    "attention": kernels.ATTENTION,
    "argmax_rows": kernels.ARGMAX,
    "halves": kernels.RESHAPE,
}


def emitted(name: str, **tiles: int) -> str:
    kernel = kernels.kernel(ALL[name])
    return TARGET.emit(kernel, tiles, {size.name: 100 for size in kernel.sizes}).text


@pytest.mark.parametrize("name", ["softmax", "matmul", "attention"])
def test_the_text_is_what_a_reader_has_approved(name: str, golden: Golden) -> None:
    golden(f"{name}.py", emitted(name))


@pytest.mark.parametrize("name", ALL)
def test_the_text_names_no_other_library_and_is_formatted(name: str, tmp_path: Path) -> None:
    text = emitted(name)
    assert "kdsl" not in text
    assert [line for line in text.splitlines() if line.startswith(("import", "from"))] == [
        "import torch",
        "import triton",
        "import triton.language as tl",
    ]
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    ruff = [sys.executable, "-m", "ruff"]
    options = ["--isolated", "--line-length", "120", str(path)]
    formatted = subprocess.run([*ruff, "format", "--diff", *options], capture_output=True, text=True)
    assert formatted.returncode == 0, formatted.stdout
    checked = subprocess.run([*ruff, "check", "--select", "E,F", *options], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_requirements_and_computed_sizes_are_written_in_python() -> None:
    sizes = "size N\n  size H = floordiv(N, 2) + 1\n  require mod(N, 4) == 0"
    kernel = kernels.kernel(kernels.VECTOR_ADD.replace("size N", sizes))
    text = TARGET.emit(kernel, {}, {"N": 100}).text
    assert "\nRequires (N % 4) == 0.\n\nWhere H = (N // 2) + 1.\n" in text


def test_emitting_imports_no_tool_chain() -> None:
    program = f"""
import sys
from kdsl.backends.triton import TARGET
from kdsl.ir.text import parse_kernel
TARGET.emit(parse_kernel({kernels.SOFTMAX!r}), {{}}, {{"M": 7, "N": 100}})
print(sorted({{"triton", "torch", "jax"}} & sys.modules.keys()))
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_wide_tiles_get_more_warps() -> None:
    kernel = kernels.kernel(kernels.MATMUL)
    sizes = {"M": 512, "N": 512, "K": 512}
    assert "num_warps: int = 4" in TARGET.emit(kernel, {}, sizes).text
    assert "num_warps: int = 8" in TARGET.emit(kernel, {"BM": 128, "BN": 128}, sizes).text


@pytest.mark.parametrize(("name", "value"), [("BM", 24), ("BK", 8), ("BN", 0)])
def test_a_tile_size_that_triton_cannot_have_is_refused(name: str, value: int) -> None:
    with pytest.raises(KdslError) as refusal:
        TARGET.emit(kernels.kernel(kernels.MATMUL), {name: value}, {"M": 64, "N": 64, "K": 64})
    assert refusal.value.code == "K0304"
    assert f"{name} = {value}" in refusal.value.message


def refusal(text: str) -> KdslError:
    kernel = kernels.kernel(text)
    with pytest.raises(KdslError) as caught:
        TARGET.emit(kernel, {}, {size.name: 64 for size in kernel.sizes})
    return caught.value


def test_a_dot_of_three_free_axes_is_refused_where_it_stands() -> None:
    error = refusal("""
kernel k(x: in f32[16, 16, 16], y: in f32[16, 16], z: out f32[16, 16, 16]) at "k.py":1:1 {
  axis i < 16
  axis j < 16
  axis t < 16
  axis n < 16
  %x: f32[i, j, t] = load x[i, j, t]
  %y: f32[t, n] = load y[t, n]
  %z: f32[i, j, n] = dot %x, %y {axis = t, precision = ieee} at 7:11
  store z[i, j, n] = %z
}
""")
    assert (error.code, error.location and (error.location.line, error.location.column)) == ("K0301", (7, 11))


def test_dots_of_wide_integers_and_scalars_of_f64_are_refused() -> None:
    dot = refusal("""
kernel k(a: in i32[16, 16], c: out i32[16, 16]) {
  axis i < 16
  axis t < 16
  axis n < 16
  %a: i32[i, t] = load a[i, t]
  %b: i32[t, n] = load a[t, n]
  %c: i32[i, n] = dot %a, %b {axis = t, precision = ieee}
  store c[i, n] = %c
}
""")
    assert (dot.code, dot.message) == ("K0302", "gpu has no i32 dot")
    scalar = refusal("""
kernel k(c: out f64[1], s: f64) {
  %s: f64 = argument {scalar = s}
  store c[0] = %s
}
""")
    assert (scalar.code, scalar.message) == ("K0302", "gpu has no f64 scalar arguments")


def test_a_reshape_of_padded_lanes_is_refused() -> None:
    error = refusal("""
kernel k(x: in f32[12], y: out f32[2, 6]) {
  axis n < 12
  axis half < 2
  axis j < 6
  %x: f32[n] = load x[n]
  %y: f32[half, j] = reshape %x {source = [n], target = [half, j]}
  store y[half, j] = %y
}
""")
    assert error.code == "K0303"


def test_four_program_axes_are_taken_apart_from_one_number() -> None:
    text = TARGET.emit(
        kernels.kernel("""
kernel copy(x: in f32[A, B, C, D], y: out f32[A, B, C, D]) {
  size A
  size B
  size C
  size D
  program a < A
  program b < B
  program c < C
  program d < D
  %x: f32[a, b, c, d] = load x[a, b, c, d]
  store y[a, b, c, d] = %x
}
"""),
        {},
        {"A": 2, "B": 3, "C": 4, "D": 5},
    ).text
    assert "    a = pid // D // C // B\n" in text
    assert "    programs = A * B * C * D\n" in text


def test_what_a_kernel_reads_after_it_wrote_waits_for_the_other_threads() -> None:
    text = TARGET.emit(
        kernels.kernel("""
kernel twice(x: inout f32[N]) {
  size N
  axis n < N
  %x: f32[n] = load x[n]
  %y: f32[n] = add %x, %x
  store x[n] = %y
  %z: f32[n] = load x[n]
  %w: f32[n] = add %z, %z
  store x[n] = %w
}
"""),
        {},
        {"N": 100},
    ).text
    assert text.count("tl.debug_barrier()") == 3


def test_loop_carried_values_that_trade_places_are_assigned_together() -> None:
    assert "        a, b = b, sum_1\n" in TARGET.emit(kernels.kernel(kernels.FIBONACCI), {}, {}).text
