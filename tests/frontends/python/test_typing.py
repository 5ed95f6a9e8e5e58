"""Files that users write pass `mypy --strict` and ruff with nothing ignored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
USER_FILES = [*sorted((ROOT / "kernels").glob("*.py")), *sorted((Path(__file__).parent / "samples").glob("*.py"))]


def run(*command: str) -> str:
    """What a checker says; empty if it accepts."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_user_files_ignore_nothing() -> None:
    assert len(USER_FILES) > 5
    for path in USER_FILES:
        assert "type: ignore" not in path.read_text() and "noqa" not in path.read_text(), path


def test_user_files_pass_mypy_strict() -> None:
    assert run("mypy", "--strict", *map(str, USER_FILES)) == ""


def test_user_files_pass_ruff() -> None:
    assert run("ruff", "check", *map(str, USER_FILES)) == ""


def test_mypy_rejects_what_has_no_meaning(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(
        "import kdsl\n"
        "class M(kdsl.Dim): ...\n"
        "@kdsl.kernel\n"
        "def kernel(x: kdsl.Tensor[M, kdsl.f32], y: kdsl.Out[M, kdsl.f32]) -> None:\n"
        "    for m in kdsl.grid(M):\n"
        "        x[m] = 1.0\n"
        "        y[m] = y[m]\n"
        "        y[m] = kdsl.exp('one')\n"
        "        y[m] = kdsl.sum(x[m], over=0)\n"
    )
    said = run("mypy", "--strict", str(path))
    assert [line.split(":")[1] for line in said.splitlines() if ": error:" in line] == ["6", "7", "8", "9"], said
