"""Emitted source text as importable modules, and errors that point into it."""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import re
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

MESSAGE_LIMIT = 2000  # characters; XLA's memory reports run to many pages


class ToolchainError(RuntimeError):
    """An emitted source that the tool-chain did not take.

    `line` is the line of the emitted source that is to blame, or None where the tool-chain does not say.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@functools.cache
def load(source: str) -> ModuleType:
    """Import emitted `source`, once per process and text.

    It becomes a real file, so that tracebacks, `inspect` and compiler messages can show its lines.
    Raises ToolchainError if the source does not import.
    """
    name = "emitted_" + hashlib.sha256(source.encode()).hexdigest()[:16]
    path = _folder() / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with blame(path):
            spec.loader.exec_module(module)
    except ToolchainError:
        del sys.modules[name]
        raise
    return module


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="kdsl-emitted-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def blame(path: Path | None = None) -> Iterator[None]:
    """Turn any error inside into a ToolchainError, with its line where it went through the emitted file `path`."""
    try:
        yield
    except ToolchainError:
        raise
    except Exception as error:
        raise ToolchainError(_message(error, path), _line(error, path) if path else None) from error


def _message(error: Exception, path: Path | None) -> str:
    """What a person needs of a compiler's message: no bug-report advice, links, temporary paths or empty lines."""
    text = re.sub(r"Please (report a bug|file an issue|file a bug) at:? \S+", "", str(error))
    text = re.sub(r" with MLIR module name `.*?` HLO name", "", text)
    if path:
        text = re.sub(rf"{re.escape(str(path))}:(\d+)", r"line \1", text)
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and "See details at http" not in line]
    text = "\n".join(lines)
    if len(text) > MESSAGE_LIMIT:
        text = text[:MESSAGE_LIMIT] + " ..."
    return f"{type(error).__name__}: {text}"


def _line(error: BaseException, path: Path) -> int | None:
    """The innermost line of `path` that the error, or what caused it, went through."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(path) else None
    link: BaseException | None = error
    while link is not None:  # JAX hangs the place where an operation was traced on as the cause
        frames = [f.lineno for f in traceback.extract_tb(link.__traceback__) if f.filename == str(path)]
        line = frames[-1] if frames else line
        link = link.__cause__ or link.__context__
    if line is None and (named := re.search(re.escape(str(path)) + r":(\d+)", str(error))):
        line = int(named[1])
    return line
