from __future__ import annotations

import importlib

import pytest

from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.passes import PASSES, run_passes


@pytest.mark.parametrize("name", [*PASSES, "batch(m, 4)"])
def test_a_pass_does_what_its_docstring_shows(name: str) -> None:
    documentation = importlib.import_module(f"kdsl.passes.{name.split('(')[0]}").__doc__ or ""
    before, after = documentation.split("before:\n")[1].split("after:\n")
    assert print_kernel(run_passes(parse_kernel(before), [name])) == print_kernel(parse_kernel(after))
