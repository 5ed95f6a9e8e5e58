"""`kdsl debug` as a process: on a real pseudo-terminal, with Ctrl-C and Ctrl-D, and in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from kdsl.cli import USAGE, app
from kdsl.diagnostics import KdslError
from kdsl.equivalence.inputs import draw_inputs
from kdsl.ir.kernel import bind
from kdsl.kernels.matmul import matmul
from kdsl.runtime.examples import bound_examples, default_example
from tests.cli.test_process import KDSL, ROOT, environment

PROMPT = "(kdsl) "
PATIENCE = 40.0  # seconds until an answer counts as lost

ENDLESS = """
import kdsl

class N(kdsl.Dim): ...

@kdsl.kernel
@kdsl.example(N=2)
def endless(y: kdsl.Out[N, kdsl.i32]) -> None:
    for n in kdsl.grid(N):
        i = 0
        kdsl.print("it runs")
        while i >= 0:
            i = (i + 1) & 1023
        y[n] = i
"""


class Terminal:
    """The command on a terminal of its own, whose keyboard and screen are the test's."""

    def __init__(self, *arguments: str) -> None:
        self.owner, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (50, 120))
        self.process = subprocess.Popen(
            [*KDSL, "debug", *arguments],
            cwd=ROOT,
            env=environment(ROOT),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal to it
        )
        os.close(terminal)

    def until(self, text: str) -> str:
        """What appears up to the text and with it, without the codes for colours and the cursor."""
        shown, deadline = "", time.monotonic() + PATIENCE
        while text not in plain(shown):
            ready, _, _ = select.select([self.owner], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {text!r} after {plain(shown)!r}"
            try:
                shown += os.read(self.owner, 1 << 16).decode()
            except OSError:  # the other end has closed
                raise AssertionError(f"no {text!r} after {plain(shown)!r}") from None
        return plain(shown)

    def type(self, keys: str) -> None:
        os.write(self.owner, keys.encode())

    def interrupt(self) -> None:
        """Ctrl-C, again if nothing comes of it: CPython leaves one that arrives between two keys until the next key."""
        for _ in range(10):
            self.type("\x03")
            if select.select([self.owner], [], [], PATIENCE / 40)[0]:
                return

    def ask(self, command: str) -> str:
        """The answer to a command, up to the next prompt."""
        self.type(f"{command}\n")
        return self.until(PROMPT).removesuffix(PROMPT).strip().removeprefix(command).strip()

    def rest(self) -> tuple[int, str]:
        """The exit status, and what else appeared."""
        shown = b""
        while True:
            try:
                chunk = os.read(self.owner, 1 << 16)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
        return self.process.wait(timeout=PATIENCE), plain(shown.decode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.owner)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def lanes(answer: str) -> list[float | None]:
    """The lanes of one row, None for those that are not valid."""
    words = " ".join(answer.splitlines()[1:]).strip("[] ").split()
    return [None if word == "." else float(word) for word in words]


@pytest.fixture
def with_breakpoint(tmp_path: Path) -> tuple[Path, int]:
    """The ready-made matmul with a breakpoint after the product, and the breakpoint's line."""
    lines = (ROOT / "kernels" / "matmul.py").read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if "accumulator += kdsl.dot" in line) + 1
    lines.insert(at, " " * 12 + "breakpoint()")
    (tmp_path / "matmul.py").write_text("\n".join(lines) + "\n")
    return tmp_path / "matmul.py", at + 1


def test_a_session_on_a_terminal(terminals: list[Terminal], with_breakpoint: tuple[Path, int]) -> None:
    file, line = with_breakpoint
    binding = default_example(matmul)
    drawn = draw_inputs(bind(binding.kernel, binding.sizes, binding.tiles), "exact", (0, 0))
    a, b = drawn["a"].astype(np.float64), drawn["b"].astype(np.float64)

    terminal = Terminal(f"{file}::matmul", "--program", "3,0")
    terminals.append(terminal)
    opening = terminal.until(PROMPT)
    assert "M=256, N=1000, K=512, T=bf16; exact inputs, seed 0" in opening
    assert "program 3,0 (m_block 3, n_block 0) at" in opening and "accumulator = kdsl.zeros((m, n), f32)" in opening

    answer = terminal.ask("continue")
    assert f"k_block 0, at a breakpoint at {file}:{line}" in answer and f"{line} ->             breakpoint()" in answer
    assert lanes(terminal.ask("print accumulator[5, 0:8]")) == (a[192:256, :32] @ b[:32, :64])[5, :8].tolist()
    answer = terminal.ask("s")
    assert "k_block 1 at" in answer and "accumulator += kdsl.dot(a[m, k], b[k, n])" in answer
    assert f"k_block 1, at a breakpoint at {file}:{line}" in terminal.ask("s")
    assert lanes(terminal.ask("p accumulator[63, 56:64]")) == (a[192:256, :64] @ b[:64, :64])[63, 56:].tolist()

    assert f"there is no command dance\n  s  step {' ' * 5}" in terminal.ask("dance")
    assert "error[K0902]" in terminal.ask("print nothing")
    assert "error[K0901]: 4,0 is no program of matmul" in terminal.ask("program 4,0")

    assert "program 3,15 (m_block 3, n_block 15) at" in terminal.ask("program 3,15")
    terminal.ask("c")
    answer = terminal.ask("p accumulator[0]")
    assert "40 of 64 valid" in answer  # 1000 columns end in the 16th tile
    assert lanes(answer) == [*(a[192, :32] @ b[:32, 960:]).tolist(), *[None] * 24]

    terminal.type("quit\n")
    status, rest = terminal.rest()
    assert status == 0 and "Traceback" not in rest


def test_ctrl_d_leaves_and_ctrl_c_drops_the_line(terminals: list[Terminal]) -> None:
    terminal = Terminal("kernels/softmax.py")
    terminals.append(terminal)
    terminal.until(PROMPT)
    terminal.type("print something")
    terminal.until("something")
    terminal.interrupt()
    assert "`quit` or Ctrl-D leaves" in terminal.until(f"leaves\n{PROMPT}")
    assert "row = x[m, :].to(f32)" in terminal.ask("where")
    terminal.type("\x04")
    status, rest = terminal.rest()
    assert status == 0 and "Traceback" not in rest


def test_ctrl_c_stops_a_program_that_runs(terminals: list[Terminal], tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    terminal = Terminal(str(tmp_path / "endless.py"))
    terminals.append(terminal)
    terminal.until(PROMPT)
    terminal.type("continue\n")
    terminal.until("it runs")
    terminal.type("\x03")
    answer = terminal.until(PROMPT)
    assert ", interrupted at" in answer and "while" in answer
    assert " = " in terminal.ask("print i")
    assert "while i >= 0" in terminal.ask("step") + terminal.ask("step")
    terminal.type("\x04")
    assert terminal.rest()[0] == 0


def test_the_tab_key_completes(terminals: list[Terminal]) -> None:
    terminal = Terminal("kernels/softmax.py")
    terminals.append(terminal)
    terminal.until(PROMPT)
    terminal.type("whe\t")
    terminal.until("where")
    terminal.type("\n")
    assert "program 0 (m_block 0)" in terminal.until(PROMPT)


def test_commands_from_a_pipe_are_answered_in_plain_lines() -> None:
    done = subprocess.run(
        [*KDSL, "debug", "kernels/softmax.py", "--program", "2", "--set", "BM=4"],
        cwd=ROOT,
        env=environment(ROOT),
        input="step\nprint m\nnonsense\nprint nothing\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert "m = 8:12 of" in done.stdout and "there is no command nonsense" in done.stdout
    assert PROMPT not in done.stdout and "\x1b" not in done.stdout + done.stderr
    assert "error[K0902]" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["kernels"], "error[K0907]: kernels has 5 kernels"),
        (["kernels/matmul.py", "--program", "9,9"], "error[K0901]: 9,9 is no program of matmul"),
        (["kernels/matmul.py", "--program", "first"], "error[K0901]"),
        (["kernels/matmul.py", "--example", "3"], "matmul has 2 examples"),
        (["kernels/matmul.py", "--set", "BX=3"], "error[K0503]"),
        (["kernels/matmul.py", "--inputs", "odd"], "--inputs"),
        (["nowhere.py"], "error[K0401]"),
    ],
)
def test_usage(arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, ["debug", *arguments])
    refusal = done.exception
    if isinstance(refusal, KdslError):
        assert said in refusal.render() and refusal.code in USAGE
    else:
        assert done.exit_code == 2 and said in done.output


def test_examples_and_inputs_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    given = "debug", "kernels/matmul.py", "--example", "2", "--inputs", "generic", "--seed", "7"
    said = CliRunner().invoke(app, given, input="p M\np activation\nmemory a[0, 0]\n").output
    assert "M = 33 (" in said and "activation = 'gelu'" in said
    example = bound_examples(matmul)[1]
    drawn = draw_inputs(bind(example.kernel, example.sizes, example.tiles), "generic", (7, 1))
    shown = re.search(r"a\[0, 0\] = (\S+) \(f32", said)
    assert shown is not None and np.float32(shown[1]) == drawn["a"][0, 0]
