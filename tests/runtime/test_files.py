from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kdsl.runtime.files import write_atomically


def test_it_makes_the_folder_and_obeys_the_umask(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a/b/text", "h\u00e9\n")
    finally:
        os.umask(previous)
    assert (tmp_path / "a/b/text").read_bytes() == b"h\xc3\xa9\n"
    assert (tmp_path / "a/b/text").stat().st_mode & 0o777 == 0o640


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([number]) * (1 << 20) for number in range(2)]
    write_atomically(path, contents[0])
    writers = [
        threading.Thread(target=lambda content=content: [write_atomically(path, content) for _ in range(20)])
        for content in contents
    ]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        seen.add(path.read_bytes())
    assert seen <= set(contents)
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "folder", b"")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
