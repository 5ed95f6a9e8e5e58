"""`manifest.json`: what lies in a folder of emitted files, and how it came about (docs/schema/manifest.json).

What it says is true at any moment: an entry is dropped before one of its files changes, and added once all are written.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from kdsl.diagnostics import fail
from kdsl.runtime.files import write_atomically

NAME, FORMAT = "manifest.json", 1
Entry = dict[str, Any]


@dataclass(frozen=True)
class Manifest:
    """The manifest of one folder. Several processes may build into a folder at once."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / NAME

    def entries(self) -> list[Entry]:
        """One for each kernel and target. Raises KdslError K0409 for a file that is no manifest."""
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
            if document["format"] != FORMAT:
                raise ValueError(f"its format is {document['format']!r}, not {FORMAT}")
            entries: list[Entry] = document["entries"]
            for entry in entries:
                _check(entry)
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            problem = f"it is there and is no manifest that this version can read ({error})"
            raise fail("K0409", None, path=self.path, problem=problem) from None
        return entries

    def replace(self, kernel: str, target: str, files: Mapping[str, str | bytes], entry: Entry | None) -> list[str]:
        """Write the files of one kernel and target, and an entry that lists them; remove what it had before.

        `files` maps names in the folder to contents; `entry` has all but `kernel`, `target` and `files`, and None means
        that there is nothing. Another kernel's entry goes if one of its files is overwritten. Returns the names of the
        files that were removed. Raises OSError; then, and when interrupted, files that no entry lists are gone.
        """
        with self._locked():
            gone = [old for old in self.entries() if _is(old, kernel, target) or _overlaps(old, files)]
            unlisted = {file["path"] for old in gone for file in old["files"]} | files.keys()
            self._write([old for old in self.entries() if old not in gone])
            try:
                removed = _remove(self.folder, unlisted - files.keys())
                for name, content in files.items():
                    write_atomically(self.folder / name, content)
                if entry is not None:
                    listed = [{"path": name, "sha256": sha256(content)} for name, content in files.items()]
                    self._write([*self.entries(), {"kernel": kernel, "target": target, "files": listed, **entry}])
            except BaseException:
                _remove(self.folder, unlisted)
                raise
        return removed

    def _write(self, entries: list[Entry]) -> None:
        entries = sorted(entries, key=lambda entry: (entry["kernel"], entry["target"]))
        if entries or self.path.exists():
            document = {"format": FORMAT, "entries": entries}
            write_atomically(self.path, json.dumps(document, indent=2, allow_nan=False) + "\n")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Between reading and writing nobody else writes. The lock is on the folder itself: no lock file to leave."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def sha256(content: str | bytes) -> str:
    """The hash of a file's content, in hexadecimal; text as UTF-8."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _check(entry: Any) -> None:
    """What is relied on; above all, that no file of an entry lies outside the folder: they get removed."""
    if not isinstance(entry["kernel"], str) or not isinstance(entry["target"], str):
        raise ValueError("an entry names no kernel and target")
    for file in entry["files"]:
        path = PurePosixPath(file["path"])
        if path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
            raise ValueError(f"{path} is no file of a target's folder")


def _is(entry: Entry, kernel: str, target: str) -> bool:
    return bool(entry["kernel"] == kernel and entry["target"] == target)


def _overlaps(entry: Entry, files: Collection[str]) -> bool:
    return any(file["path"] in files for file in entry["files"])


def _remove(folder: Path, names: Collection[str]) -> list[str]:
    removed = []
    for name in sorted(names):
        with contextlib.suppress(FileNotFoundError):
            (folder / name).unlink()
            removed.append(name)
    return removed
