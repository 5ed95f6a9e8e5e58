"""Long lines are broken as the formatter breaks them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kdsl.codegen.wrap import wrap

ARGUMENTS = ", ".join(f"argument_{i}" for i in range(7))
MORE = ", ".join(f"argument_{i}" for i in range(12))
LINES = [
    "x = f(a, b)",
    f"result = function({ARGUMENTS}, name='a, (string')".replace("'", '"'),
    f"result = function({MORE})",
    f"result = function(({ARGUMENTS}), ({MORE}))[0, 0]",
    f"def function({MORE}):",
    f"def function(a, *, b=4) -> tuple[{MORE[:-34]}]:",
    f"return {MORE}",
    f"{MORE} = carried",
    f"{MORE} = function({MORE})",
    f"{ARGUMENTS} = function(0, {ARGUMENTS})",
]


@pytest.mark.parametrize("line", LINES)
def test_a_wrapped_line_is_as_the_formatter_has_it(line: str) -> None:
    head = line.startswith("def ")
    text = "\n".join(wrap("    " + line))
    source = f"class A:\n{text}\n        pass\n" if head else f"def f():\n{text}\n"
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "-"]
    assert subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout == source
    assert all(len(each) <= 120 for each in text.split("\n"))
