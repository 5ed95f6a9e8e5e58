"""docs/debugging.md shows what `kdsl debug` says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kdsl.cli import app
from kdsl.debugger.commands import COMMANDS, SHORT

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "debugging.md").read_text()


def test_the_session_is_what_the_command_says(monkeypatch: pytest.MonkeyPatch) -> None:
    (shown,) = re.findall(r"```text\n\$ kdsl (.*?)```", TEXT, re.DOTALL)
    arguments, *lines = shown.splitlines()
    commands = [line.removeprefix("(kdsl) ") for line in lines if line.startswith("(kdsl) ")]
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, arguments.split(), input="\n".join([*commands, "quit", ""]))
    assert done.exit_code == 0 and len(commands) > 4
    assert done.output.splitlines() == [line for line in lines if not line.startswith("(kdsl) ")]


def test_every_command_is_explained() -> None:
    words = set(re.findall(r"`(\w+)[^`]*`", TEXT))
    assert set(COMMANDS) <= words and {letter for letter in "snfc" if letter in SHORT} <= words
