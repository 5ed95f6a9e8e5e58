"""TTIR by Triton's own front end, in this process: no GPU is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("triton")

from kdsl.diagnostics import KdslError
from kdsl.integrations.triton.capture import loaded, ttir_of, ttir_of_file

KERNELS = '''"""Two kernels."""
import triton
import triton.language as tl


@triton.jit
def scale(x, out, factor, n, BLOCK: tl.constexpr = 32):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n) * factor, mask=offsets < n)


@triton.jit
def wrong(x, n):
    tl.store(x + tl.arange(0, n), 0)


def plain(x):
    return x
'''
SIGNATURE = {"x": "*fp32", "out": "*fp32", "factor": "fp32", "n": "i32"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def test_defaults_are_taken_and_lines_are_the_authors(file: Path) -> None:
    text = ttir_of_file(file, {"scale": (SIGNATURE, {})})["scale"]
    assert "tt.func public @scale(%x: !tt.ptr<f32>" in text
    assert "end = 32 : i32" in text
    assert f'loc("{file}":8:' in text


def test_constexprs_and_hints_specialise(file: Path) -> None:
    hinted = SIGNATURE | {"x": "*fp32:16", "n": "i32:1"}
    text = ttir_of_file(file, {"scale": (hinted, {"BLOCK": 64})})["scale"]
    assert "end = 64 : i32" in text
    assert "%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}" in text
    assert "%n: i32" not in text


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90", "cuda:100", "hip:gfx942"])
def test_every_target_has_a_front_end(file: Path, target: str) -> None:
    assert "tt.store" in ttir_of_file(file, {"scale": (SIGNATURE, {})}, target)["scale"]


@pytest.mark.parametrize(
    ("name", "signature", "problem"),
    [
        ("wrong", {"x": "*fp32", "n": "i32"}, "arguments must be of type tl.constexpr"),
        ("scale", {"x": "*fp32", "out": "*fp32", "factor": "fp32"}, "its parameter n is not given"),
        ("scale", SIGNATURE | {"m": "i32"}, "it has no parameter m"),
        ("scale", SIGNATURE | {"x": "*float"}, "float"),
        ("plain", {"x": "i32"}, "it is no @triton.jit function"),
    ],
)
def test_what_triton_does_not_take_is_refused(file: Path, name: str, signature: dict[str, str], problem: str) -> None:
    with loaded(file) as module, pytest.raises(KdslError, match=problem) as caught:
        ttir_of(getattr(module, name), signature)
    assert caught.value.code == "K0912"


def test_an_unknown_target_is_refused(file: Path) -> None:
    with pytest.raises(KdslError, match="there is no target 'metal:1'"):
        ttir_of_file(file, {"scale": (SIGNATURE, {})}, "metal:1")
