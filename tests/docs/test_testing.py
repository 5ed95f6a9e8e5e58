"""docs/testing.md: its code runs as one file."""

from __future__ import annotations

import re
from pathlib import Path

from tests.frontends.python.sources import load

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()


def test_every_block_runs(tmp_path: Path) -> None:
    code = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(code) == 3 and PAGE.count("```") == 2 * len(code)
    load(tmp_path, "\n".join(code))
