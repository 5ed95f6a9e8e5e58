"""TTIR texts for tests: of the kernels in `kernels/`, by the Triton that is installed, and of some by Triton 3.8.

Those of `triton38/` are what `ttir_of` gives for the same kernels with Triton 3.8.0, paths shortened.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = ("rows", "products", "control", "lanes")
TRITON_38 = {path.stem: path.read_text() for path in sorted((HERE / "triton38").glob("*.ttir"))}


def source(file: str) -> Path:
    return HERE / "kernels" / f"{file}.py"


@functools.cache
def captured(file: str) -> dict[str, str]:
    """The TTIR of each kernel of a file."""
    pytest.importorskip("triton")
    from kdsl.integrations.triton.capture import loaded, ttir_of

    with loaded(source(file)) as module:
        return {
            name: ttir_of(getattr(module, name), *example, options={"debug": name == "checks"})
            for name, example in module.EXAMPLES.items()
        }


def texts(file: str) -> dict[str, str]:
    return TRITON_38 if file == "triton38" else captured(file)
