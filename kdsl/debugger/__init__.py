"""Stepping through one program of a kernel at a time, by the author's lines. `kdsl debug` is this at a prompt.

stepping    the oracle's checked program, which tells when a statement begins
running     runs such programs, one after the other, in a thread that can be stopped
session     what a user can ask for: steps, breakpoints, names
names       what the author's names stand for
showing     numbers as text
commands    command lines in, text out
"""

from kdsl.debugger.commands import Commands
from kdsl.debugger.running import Stop
from kdsl.debugger.session import Session

__all__ = ["Commands", "Session", "Stop"]
