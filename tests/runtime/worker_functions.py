"""What the tests of the worker run inside it."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

Result = tuple[dict[str, Any], dict[str, Any]]


def echo(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    return {**payload, "dtypes": {name: array.dtype.name for name, array in arrays.items()}}, arrays


def process_id(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    return {"pid": os.getpid(), "flavour": os.environ.get("FLAVOUR"), "folder": os.getcwd()}, {}


def fail(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    raise ValueError(payload["message"])


class PlacedError(Exception):
    def __init__(self, message: str, line: object) -> None:
        super().__init__(message)
        self.line = line


def fail_at(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    raise PlacedError("bad layout", payload["line"])


def leave_files(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    """Leave what a tool-chain leaves that is killed: a file and a folder where temporary ones go."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        folder = tempfile.mkdtemp()
    return {"left": [file.name, folder], "scratch": os.environ["TMPDIR"]}, {}


def unsendable(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    return {"result": object()}, {}


def leave(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    raise SystemExit(3)


def abort(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    os.write(2, b"Check failed: something fatal\n")
    os.abort()


def segfault(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    os.kill(os.getpid(), signal.SIGSEGV)
    return {}, {}


def exit_at_once(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    os._exit(7)


def close_every_pipe(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    os.closerange(0, 256)
    time.sleep(60)
    return {}, {}


def sleep(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    if "pid_file" in payload:
        Path(payload["pid_file"]).write_text(str(os.getpid()))
    time.sleep(payload["seconds"])
    return {}, {}


def chatter(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    while True:
        os.write(1, b"x" * 4096)


def hog(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    kept = []
    while True:
        kept.append(np.ones(4 << 20, np.uint8))
        time.sleep(0.002)


def print_much(payload: dict[str, Any], arrays: dict[str, Any]) -> Result:
    print("noise {}\n" * 20_000)
    os.write(1, b'{"values": {"forged": true}}\n')
    return {"answer": 42, "input": os.read(0, 1).decode()}, {}
