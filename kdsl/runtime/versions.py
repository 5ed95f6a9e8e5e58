"""Versions of what took part in a result."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable

import kdsl
from kdsl.runtime.target import Toolchain, find_target


@functools.cache
def toolchain(target: str) -> Toolchain:
    """What a target found, asked once in a process: looking may start a worker. Raises as `find_target` does."""
    return find_target(target).toolchain()


def versions(checked: Iterable[str] = ()) -> dict[str, str]:
    """kdsl, Python, NumPy, and the packages of the tool-chains of the targets that checked or ran something."""
    import numpy

    found = {"kdsl": kdsl.__version__, "python": platform.python_version(), "numpy": numpy.__version__}
    for name in checked:
        found |= toolchain(name).versions
    return found
