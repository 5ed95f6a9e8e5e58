"""Worker processes: tool-chain work under time and memory limits, where an abort is a failed check and nothing more.

    reply = worker("gpu").call("kdsl.backends.triton.toolchain:compile", {"source": text}, timeout=60)

A worker starts at its first call, serves one call at a time, and starts again after it died. It ends with its owner,
also when the owner is killed.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kdsl.diagnostics import KdslError, Location, fail
from kdsl.runtime.process import Process

if TYPE_CHECKING:
    import numpy as np

# libtpu compiling a 2048 x 2048 matmul for v5e and v6e: 0.4 GiB resident; Triton for three CUDA targets and one HIP
# target: 0.25 GiB. A limit on address space (RLIMIT_AS) would be of no use: libtpu maps 2 GiB to use that.
MEMORY_BYTES = 4 << 30
TICK_SECONDS = 0.05  # how often memory is looked at: a worker can overshoot its limit by what it fills in this time
NOTHING: Mapping[str, Any] = MappingProxyType({})


class WorkerFailure(Exception):
    """A call that gave no result. `detail` is for a log, not the user: a traceback, or the end of what was printed."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail


class WorkerTimeout(WorkerFailure):
    """The call took longer than allowed; the worker was killed."""


class WorkerDied(WorkerFailure):
    """The process ended during the call: an abort, a segmentation fault, an exit, the memory limit (see `message`)."""


class WorkerError(WorkerFailure):
    """The function raised. `kind` is the exception's type name, `message` its text, `detail` its traceback.

    `line` is the exception's own attribute of that name, which tool-chains use for the line in the emitted source.
    """

    def __init__(self, kind: str, message: str, detail: str, line: int | None = None) -> None:
        super().__init__(message, detail)
        self.kind = kind
        self.line = line


@dataclass(frozen=True)
class Reply:
    """What the function returned."""

    values: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]


def run_failure(failure: WorkerFailure, location: Location | None, target: str) -> KdslError:
    """The error for emitted code that gave no result: K0310 if it was stopped, else K0307."""
    code = "K0310" if isinstance(failure, WorkerTimeout) else "K0307"
    return fail(code, location, target=target, problem=failure.message)


class Worker:
    """One process that runs functions for its owner, one at a time. Safe to share between threads.

    `environment` is added to the owner's; `memory_bytes` limits the memory resident in the worker process itself, not
    in tools that it starts (Linux only: it is read from /proc).
    """

    def __init__(self, name: str, environment: Mapping[str, str] = NOTHING, memory_bytes: int = MEMORY_BYTES) -> None:
        self.name = name
        self._environment = dict(environment)
        self._memory_bytes = memory_bytes
        self._process: Process | None = None
        self._lock = threading.Lock()

    def call(
        self,
        function: str,
        payload: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray[Any, Any]] = NOTHING,
        timeout: float = 120,
    ) -> Reply:
        """Run `module:function` as `function(payload, arrays) -> (values, arrays)` in the worker.

        Payload and values are JSON objects; arrays are of any shape and any dtype of NumPy's or ml_dtypes'.
        `timeout` is in seconds and includes starting the process. Raises WorkerError, WorkerTimeout or WorkerDied;
        TypeError for arguments that cannot be sent.
        """
        from kdsl.runtime import exchange

        with self._lock:
            if self._process is None or self._process.ended:
                self._stop()
                self._process = Process.start(self._environment)
            process = self._process
            # Sent before anything is running, so a TypeError here leaves the worker as it was.
            exchange.put(process.folder, "request", {"function": function, "payload": dict(payload)}, arrays)
            try:
                self._converse(process, function, timeout)
                message, outputs = exchange.take(process.folder, "reply")
            except BaseException:  # a KeyboardInterrupt too: the worker would answer a question nobody asks any more
                self._stop()
                raise
        if "error" in message:
            raise WorkerError(**message["error"])
        return Reply(message["values"], outputs)

    def close(self) -> None:
        """End the process. A call in progress raises WorkerDied; a later call starts a new process."""
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._stop()

    def _converse(self, process: Process, function: str, timeout: float) -> None:
        """Hand over the request and wait for the reply."""
        what = f"{function}: the {self.name} worker"
        deadline = time.monotonic() + timeout
        process.hand_over()
        while True:
            ended = process.ended  # asked before looking for a reply: a reply may come between the two
            remaining = deadline - time.monotonic()
            if process.answered(min(remaining, TICK_SECONDS)):
                return
            if ended:
                raise WorkerDied(f"{what} {process.epitaph()}", process.last_words())
            if remaining <= 0:
                raise WorkerTimeout(f"{what} gave no answer in {timeout:g} s", process.last_words())
            if process.resident_bytes() > self._memory_bytes:
                limit = f"{self._memory_bytes / 2**30:.3g} GiB"
                raise WorkerDied(f"{what} met its memory limit ({limit})", process.last_words())

    def _stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None


_pool: dict[tuple[str, frozenset[tuple[str, str]]], Worker] = {}
_pool_lock = threading.Lock()


def worker(name: str, environment: Mapping[str, str] = NOTHING) -> Worker:
    """The shared worker of this name and environment; it is closed when the interpreter ends."""
    with _pool_lock:
        return _pool.setdefault((name, frozenset(environment.items())), Worker(name, environment))


def close_all() -> None:
    """Close every shared worker."""
    with _pool_lock:
        workers = list(_pool.values())
        _pool.clear()
    for each in workers:
        each.close()


atexit.register(close_all)
# A fork has the pool's memory but not its processes.
os.register_at_fork(after_in_child=_pool.clear)
