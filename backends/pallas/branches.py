"""flatten_branches: both arms of an `if` are computed, and a select takes the results of the one that holds.

Pure ops are total, so an arm that is not taken does no harm; one that stores has no such form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kdsl.ir.kernel import Kernel, Op, Region, walk
from kdsl.ir.ops import OPS

from .access import refuse


def flatten_branches(kernel: Kernel) -> Kernel:
    """The kernel without `if`. Raises KdslError K0308 for an arm with an effect."""
    return replace(kernel, body=_region(kernel.body))


def _region(region: Region) -> Region:
    return replace(region, ops=tuple(_flat(region.ops)))


def _flat(ops: Iterable[Op]) -> Iterator[Op]:
    for op in ops:
        if op.name != "if":
            yield replace(op, regions=tuple(_region(region) for region in op.regions))
            continue
        for inner in (inner for region in op.regions for inner in walk(region)):
            if OPS[inner.name].effect not in ("none", "read"):
                raise refuse(
                    inner, f"a {inner.name} in a branch", "join the values with `kdsl.where`, and store once, after it"
                )
        (condition,) = op.operands
        arms = [_region(region).ops for region in op.regions]
        for arm in arms:
            yield from arm[:-1]
        for result, yes, no in zip(op.results, arms[0][-1].operands, arms[1][-1].operands, strict=True):
            yield Op("select", (condition, yes, no), (result,), location=op.location)
