"""Every pass on a kernel, in the field. A pass comes under this check by being named in `kdsl.passes.pipeline`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kdsl.diagnostics import KdslError
from kdsl.equivalence.algebra.equal import Answer, compare_in_field
from kdsl.ir.kernel import Kernel, bind
from kdsl.passes import PASSES, calls, run_passes

# Sizes in turn, no two of them and no tile alike, or if constraints want so all alike, or else the example's own.
_SIZES, _TILE = (5, 7, 6, 9, 3), 4
_LARGEST = 2**12  # elements of a tensor


def small_case(kernel: Kernel, example: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]] | None:
    """Sizes and tile sizes for a quick check, given those of an example; None where there are none that are small."""
    tiles = {tile.name: min(_TILE, tile.default) for tile in kernel.tiles}
    mixed = {name: _SIZES[place % len(_SIZES)] for place, name in enumerate(example)}
    for sizes in (mixed, dict.fromkeys(example, 8), dict.fromkeys(example, 16), dict(example)):
        try:
            bound = bind(kernel, sizes, tiles)
        except (KdslError, ZeroDivisionError):
            continue
        shapes = [[int(size.evaluate({})) for size in buffer.shape] for buffer in bound.buffers]
        if max(map(math.prod, shapes), default=0) <= _LARGEST:
            return sizes, tiles
    return None


def check_passes(
    kernel: Kernel,
    sizes: Mapping[str, int],
    tiles: Mapping[str, int] | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    draws: int = 2,
    seed: int = 0,
) -> dict[str, Answer]:
    """The answer for each pass alone, and for those without arguments one after the other, named as a list.

    The passes see the kernel before it is bound. What a pass refuses is left out. `arguments` as `equal_in_field`.
    """
    after: dict[str, Kernel] = {}
    for names in [*([call] for call in calls(kernel)), *_in_a_row()]:
        try:
            after[", ".join(names)] = bind(run_passes(kernel, names), sizes, tiles)
        except KdslError:
            continue
    return compare_in_field(bind(kernel, sizes, tiles), after, arguments, draws=draws, seed=seed)


def _in_a_row() -> list[list[str]]:
    """All in their order, and without the first of them, which only some targets want."""
    names = list(PASSES)
    return [names, names[1:]]
