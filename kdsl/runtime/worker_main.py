"""The worker's side of `kdsl.runtime.worker`: python -m kdsl.runtime.worker_main FOLDER REPLIES LIFELINE.

A byte on standard input says that FOLDER holds a request; a byte written to the descriptor REPLIES says that it holds
the reply. Standard output and error belong to the functions called.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import signal
import sys
import traceback
from pathlib import Path

from kdsl.runtime import exchange


def main() -> None:
    folder, replies, lifeline = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    _die_with_owner(lifeline)
    os.set_inheritable(replies, False)
    requests = os.dup(0)
    # A function that reads standard input must not eat a request.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while os.read(requests, 1):
        _answer(folder)
        os.write(replies, b"\n")


def _die_with_owner(lifeline: int) -> None:
    """Ask for SIGKILL when the other end of the pipe closes, which it does however the owner ends.

    Unlike a thread that waits for the end of the pipe it needs no interpreter lock; unlike PR_SET_PDEATHSIG it does
    not fire when only the thread that started the worker ends. Only Linux has it: elsewhere an orphan finishes its call
    and then meets the end of standard input.
    """
    os.set_inheritable(lifeline, False)
    if not hasattr(fcntl, "F_SETSIG"):
        return
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _answer(folder: Path) -> None:
    try:
        request, arrays = exchange.take(folder, "request")
        module, _, name = request["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        values, outputs = function(request["payload"], arrays)
        exchange.put(folder, "reply", {"values": values}, outputs)
    except (Exception, SystemExit) as error:
        failure = {"kind": type(error).__name__, "message": str(error), "detail": traceback.format_exc()}
        line = getattr(error, "line", None)
        exchange.put(folder, "reply", {"error": {**failure, "line": line if type(line) is int else None}}, {})


if __name__ == "__main__":
    main()
