"""docs/language.md: its code runs as one file, and shows the message that it says it shows."""

from __future__ import annotations

import re
from pathlib import Path

from kdsl.diagnostic_codes import CODES
from tests.frontends.python.sources import load

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def place_free(message: str) -> str:
    """A message without the file, line and column numbers, which depend on where the page's code was put."""
    return re.sub(r"--> \S+:\d+:\d+|^ +\d* \|", "", message, flags=re.MULTILINE)


def test_every_block_runs_and_the_message_is_as_shown(tmp_path: Path) -> None:
    code = blocks("python")
    assert len(code) > 8 and PAGE.count("```") == 2 * (len(code) + len(blocks("text")))
    module = load(tmp_path, "\n".join(code))
    (shown,) = blocks("text")
    assert place_free(module.message) == place_free(shown.rstrip("\n"))


def test_the_codes_that_the_page_names_exist() -> None:
    named = set(re.findall(r"K\d{4}", PAGE))
    assert named and named <= CODES.keys()
