"""Writing files that other processes may be reading or writing."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file (text as UTF-8), making its folder. A reader sees the old content or the new, never a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, for a rename cannot cross file systems; opened plainly, so that the umask is obeyed.
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{threading.get_ident()}")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
