"""Running kernels given as text: bound, under every poison, which must all give the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdsl.equivalence.poisons import POISONS
from kdsl.interpreter import run
from kdsl.ir.kernel import bind
from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.ir.verify import verify
from tests.ir.arithmetic import Array, bits


def run_text(text: str, sizes: dict[str, int] | None = None, **arguments: Any) -> dict[str, Array]:
    """What a kernel leaves in its written buffers, whatever invalid lanes hold."""
    kernel = verify(parse_kernel(text))
    assert parse_kernel(print_kernel(kernel)) == kernel
    results = {name: run(bind(kernel, sizes or {}), arguments, poison) for name, poison in POISONS.items()}
    first, *others = results
    for other in others:
        for buffer, array in results[first].items():
            same = np.array_equal(bits(array), bits(results[other][buffer]))
            assert same, f"{buffer} differs with {other} in invalid lanes:\n{array}\n{results[other][buffer]}"
    return results[first]
