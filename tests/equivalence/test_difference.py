"""kdsl diff says which elements one kernel reads and another does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """import kdsl
from kdsl import Out, Tensor, Tile, f32


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


@kdsl.kernel
@kdsl.example(M=4, N=1024)
def whole(x: Tensor[M, N, f32], y: Out[M, f32], *, B: Tile = 4) -> None:
    for m in kdsl.grid(M.tiles(B)):
        y[m] = kdsl.sum(x[m, :], over=N)


@kdsl.kernel
@kdsl.example(M=4, N=1024)
def short(x: Tensor[M, N, f32], y: Out[M, f32], *, B: Tile = 4) -> None:
    for m in kdsl.grid(M.tiles(B)):
        total = kdsl.zeros((m,), f32)
        for n in kdsl.range(0, N - 1, 1):
            total += x[m, n]
        y[m] = total


@kdsl.kernel
@kdsl.example(M=4, N=1024)
def other(x: Tensor[M, N, f32], z: Out[M, f32], *, B: Tile = 4) -> None:
    for m in kdsl.grid(M.tiles(B)):
        z[m] = kdsl.sum(x[m, :], over=N)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("diff") / "sums.py"
    path.write_text(KERNELS)
    return path


def diff(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-m", "kdsl", "diff", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_the_last_column_is_missed(file: Path) -> None:
    status, out, err = diff(f"{file}::whole", f"{file}::short", "--size", "N=7")
    assert status == 3
    assert out.splitlines() == [f"y[{m}] reads x[{m}, 6] here and not there" for m in range(4)]
    assert "4 of 4 elements differ in what they read (M = 4, N = 7)" in err
    status, out, _ = diff(f"{file}::short", f"{file}::whole", "--size", "N=7")
    assert status == 3
    assert out.startswith("y[0] reads x[0, 6] there and not here")


def test_kernels_that_read_the_same(file: Path) -> None:
    status, out, err = diff(f"{file}::whole", f"{file}::whole")
    assert (status, out) == (0, "")
    assert "0 of 4 elements differ" in err


def test_what_cannot_be_compared(file: Path) -> None:
    status, _, err = diff(f"{file}::whole", f"{file}::other")
    assert status == 1
    assert "K0802" in err
    assert "y is out of 1 dimensions in the first and nothing in the second" in err
    status, _, err = diff(f"{file}::whole", f"{file}::short", "--size", "N=100000")
    assert status == 1
    assert "K0803" in err
    for wrong in (["--size", "N"], ["--size", "=3"]):
        assert diff(f"{file}::whole", f"{file}::short", *wrong)[0] == 2
    assert diff(str(file), f"{file}::short")[0] == 2
