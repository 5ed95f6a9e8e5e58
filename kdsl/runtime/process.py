"""A worker process and its owner's ends of its pipes; `kdsl.runtime.worker_main` is the other side."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# -P: nothing is imported from the folder it runs in, where tool-chains drop their dumps.
COMMAND = [sys.executable, "-P", "-u", "-m", "kdsl.runtime.worker_main"]
PRINTED_BYTES = 8 << 10  # what is kept of its output


@dataclass
class Process:
    """A started worker process: its folder, and the owner's ends of its pipes."""

    popen: subprocess.Popen[bytes]
    folder: Path
    replies: int
    lifeline: int  # nothing is ever written: its closing is the message
    printed: bytearray = field(default_factory=bytearray)
    prints: bool = True  # until it closes its standard output

    @classmethod
    def start(cls, environment: Mapping[str, str]) -> Process:
        folder = Path(tempfile.mkdtemp(prefix="kdsl-worker-"))
        scratch = folder / "tmp"
        scratch.mkdir()
        replies, replies_end = os.pipe()
        lifeline_end, lifeline = os.pipe()
        try:
            popen = subprocess.Popen(
                [*COMMAND, folder, str(replies_end), str(lifeline_end)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                pass_fds=(replies_end, lifeline_end),
                # What tools leave in TMPDIR goes with the folder, however the process ends.
                env={**os.environ, **environment, "PYTHONPATH": _search_path(environment), "TMPDIR": str(scratch)},
                cwd=folder,
                start_new_session=True,  # one signal then reaches the tools that it starts
            )
        except BaseException:
            for descriptor in (replies, lifeline):
                os.close(descriptor)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            for descriptor in (replies_end, lifeline_end):
                os.close(descriptor)
        assert popen.stdout is not None
        os.set_blocking(popen.stdout.fileno(), False)
        return cls(popen, folder, replies, lifeline)

    @property
    def ended(self) -> bool:
        return self.popen.poll() is not None

    def hand_over(self) -> None:
        """Say that the folder holds a request. That the worker is dead already is found by whoever awaits the reply."""
        assert self.popen.stdin is not None
        self.printed.clear()
        try:
            self.popen.stdin.write(b"\n")
        except BrokenPipeError:
            self.kill()

    def answered(self, seconds: float) -> bool:
        """Wait for a reply at most so long, keeping the end of what the worker prints meanwhile."""
        assert self.popen.stdout is not None
        poll = select.poll()
        poll.register(self.replies, select.POLLIN)
        if self.prints:
            poll.register(self.popen.stdout, select.POLLIN)
        readable = {descriptor for descriptor, _ in poll.poll(max(seconds, 0) * 1000)}
        if self.popen.stdout.fileno() in readable:
            self._drain()
        if self.replies not in readable:
            return False
        if os.read(self.replies, 1):
            return True
        self.epitaph()  # the pipe closed, so the process is ending: wait here, not in a busy loop
        return False

    def epitaph(self) -> str:
        """How the process ended. One that closed its pipes and lives on is killed."""
        try:
            status = self.popen.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self.popen.wait()
        return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"

    def last_words(self) -> str:
        """Kill it, and return the end of what it printed."""
        self.kill()
        self._drain()
        return self.printed.decode(errors="replace")

    def resident_bytes(self) -> int:
        try:
            pages = Path(f"/proc/{self.popen.pid}/statm").read_text(encoding="ascii").split()[1]
        except OSError:  # it just ended
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def kill(self) -> None:
        """Kill it and what it started."""
        if not self.ended:
            with contextlib.suppress(ProcessLookupError):  # it ended since
                os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()

    def stop(self) -> None:
        """Kill it and give back everything that it held. Once only."""
        self.kill()
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.close()
        self.popen.stdout.close()
        os.close(self.replies)
        os.close(self.lifeline)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _drain(self) -> None:
        assert self.popen.stdout is not None
        for _ in range(16):  # 1 MiB at a time: one who never stops printing still meets the time limit
            chunk = self.popen.stdout.read(1 << 16)
            if not chunk:
                self.prints = chunk is None  # None: nothing now; empty: never again
                return
            self.printed += chunk
            del self.printed[:-PRINTED_BYTES]


def _search_path(environment: Mapping[str, str]) -> str:
    """What the owner can import, the worker can: the owner may have been started with -m, or in a checkout."""
    given = environment.get("PYTHONPATH")
    return os.pathsep.join([*([given] if given else []), *map(os.path.abspath, sys.path)])
