"""Stepping through one program of a kernel at a time, by the author's lines. `kdsl debug` is this at a prompt.

`stepping.py` is the interpreter's program that tells when a statement begins, `session.py` decides where to stop,
`names.py` finds what the author's names stand for, `showing.py` prints it, `commands.py` reads commands.
"""

from kdsl.debugger.commands import Commands
from kdsl.debugger.session import Session, Stop

__all__ = ["Commands", "Session", "Stop"]
