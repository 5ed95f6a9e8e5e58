"""The passes by name, and the one way to run several: verified after each.

A pass that takes arguments is named with them, as in `batch(m_block, 4)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from kdsl.ir.kernel import Kernel
from kdsl.ir.verify import verify
from kdsl.passes.batch import batch
from kdsl.passes.cse import cse
from kdsl.passes.dce import dce
from kdsl.passes.drop_breakpoints import drop_breakpoints
from kdsl.passes.explicit_edges import explicit_edges
from kdsl.passes.fold import fold
from kdsl.passes.pad_extents import pad_extents

PASSES: dict[str, Callable[[Kernel], Kernel]] = {
    "pad_extents": pad_extents,
    "drop_breakpoints": drop_breakpoints,
    "explicit_edges": explicit_edges,
    "fold": fold,
    "cse": cse,
    "dce": dce,
}

# Passes that take arguments, with calls worth a check on a kernel.
CALLS: dict[str, Callable[[Kernel], Iterable[str]]] = {
    "batch": lambda kernel: [
        f"batch({axis.name}, {factor})" for axis in kernel.axes if axis.kind != "tile" for factor in (2, 3)
    ],
}


def calls(kernel: Kernel) -> list[str]:
    """Every pass as it may be called on a kernel, which it may refuse. What checks passes checks these."""
    return [*PASSES, *(call for some in CALLS.values() for call in some(kernel))]


def find_pass(name: str) -> Callable[[Kernel], Kernel]:
    """The pass of that name, with its arguments if it takes any. Raises KeyError for a name that is none."""
    called = re.fullmatch(r"batch\((\w+), *(\d+)\)", name)
    if called is not None:
        axis, factor = called.groups()
        return lambda kernel: batch(kernel, axis, int(factor))
    return PASSES[name]


def run_passes(kernel: Kernel, names: Sequence[str]) -> Kernel:
    """The kernel after the passes, in that order.

    Raises KeyError for an unknown name, KdslError for what a pass refuses, IRError if a pass breaks the kernel (a bug).
    """
    verify(kernel)
    for name in names:
        kernel = verify(find_pass(name)(kernel))
    return kernel
