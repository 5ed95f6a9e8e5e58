"""The command as a process: start-up, pipes, terminals, signals."""

from __future__ import annotations

import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
KDSL = [sys.executable, "-m", "kdsl"]
TOOL_CHAINS = {"torch", "jax", "jaxlib", "libtpu", "triton"}


def environment(site: Path, **added: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR", "COLUMNS")}
    return {**plain, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "TERM": "xterm-256color", **added}


def run(site: Path, *arguments: str, **added: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*KDSL, *arguments], cwd=ROOT, env=environment(site, **added), capture_output=True, text=True, timeout=60
    )


def on_terminal(site: Path, *arguments: str, **added: str) -> tuple[int, str]:
    """Status, and what appeared on a terminal that was both standard output and standard error."""
    owner, terminal = pty.openpty()
    process = subprocess.Popen(
        [*KDSL, *arguments], cwd=ROOT, env=environment(site, **added), stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            chunk = os.read(owner, 1 << 16)
        except OSError:  # the other end has closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(owner)
    return process.wait(timeout=60), shown.decode()


def test_piped_output_is_plain_lines(fake: Path, tmp_path: Path) -> None:
    build = ["build", "kernels/softmax.py", "--target", "fake", "--out", str(tmp_path)]
    for behaviour, status in (("", 0), ("refuse", 1), ("crash", 4)):
        done = run(fake, *build, FAKE_TARGET=behaviour)
        assert done.returncode == status
        assert "\x1b" not in done.stdout + done.stderr and "\r" not in done.stdout + done.stderr
        assert done.stdout.split()[:4] == ["kernel", "target", "arch", "form"]
        assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []


def test_a_long_message_is_one_line_in_a_pipe(fake: Path, tmp_path: Path) -> None:
    done = run(
        fake, "build", "kernels/softmax.py", "--target", "fake,numpy", "--out", str(tmp_path), FAKE_TARGET="crash"
    )
    assert len(done.stdout.splitlines()) == 3


def test_a_terminal_has_colour(fake: Path, tmp_path: Path) -> None:
    build = ["build", "kernels/softmax.py", "--target", "fake", "--out", str(tmp_path)]
    status, shown = on_terminal(fake, *build)
    assert status == 0 and "\x1b[" in shown and "built" in shown
    status, shown = on_terminal(fake, *build, FAKE_TARGET="refuse")
    assert status == 1 and re.search(r"\x1b\[1;31merror\[K0301\]", shown)


def test_no_tracebacks(fake: Path, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import kdsl\nkdsl.kernel(3)\n")
    for arguments in (["show", "nowhere.py"], ["show", str(tmp_path / "a.py")], ["show", "no.such.module"], ["build"]):
        done = run(fake, *arguments)
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr


def test_an_interrupted_build_is_status_130_and_leaves_what_was_there(fake: Path, tmp_path: Path) -> None:
    out, started = tmp_path / "out", tmp_path / "started"
    build = ["build", "kernels/softmax.py", "--target", "fake", "--check", "--out", str(out)]
    assert run(fake, *build).returncode == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    process = subprocess.Popen(
        [*KDSL, *build, "--set", "BM=2"],
        cwd=ROOT,
        env=environment(fake, FAKE_TARGET="hang", FAKE_TARGET_STARTED=str(started)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background of a shell inherits an ignored SIGINT, and Python then leaves it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 20
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 130
    assert error.endswith("kdsl: interrupted\n") and "Traceback" not in error
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


START = """
import sys
from kdsl.cli import main
status = main(sys.argv[1:])
print(status, *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_building_for_gpu_and_tpu_is_quick_and_loads_no_tool_chain(fake: Path, tmp_path: Path) -> None:
    build = ["build", "kernels/softmax.py", "--target", "gpu,tpu", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", START, *build],
        cwd=ROOT,
        env=environment(fake),
        capture_output=True,
        text=True,
        timeout=60,
    )
    status, *modules = done.stdout.splitlines()[-1].split()
    assert (status, TOOL_CHAINS & set(modules)) == ("0", set())
    # Processor time: the same as wall time on an idle machine, and the same again on a busy one.
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run(fake, *build).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 1.2, f"kdsl build took {seconds} s"
