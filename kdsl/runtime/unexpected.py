"""Exceptions that should not have happened: a short message for the user, a traceback for whoever sets KDSL_DEBUG=1."""

from __future__ import annotations

import os
import sys
import traceback

VARIABLE = "KDSL_DEBUG"


def summary(error: BaseException) -> str:
    """One line about a fault of kdsl's own; with KDSL_DEBUG=1 its traceback goes to standard error."""
    if os.environ.get(VARIABLE) == "1":
        traceback.print_exception(error, file=sys.stderr)
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text} (a bug in kdsl; {VARIABLE}=1 shows where)"
