"""Hypothesis strategies over what a kernel is run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kdsl.diagnostics import KdslError
from kdsl.lang.dtypes import DType
from kdsl.lang.kernel import Kernel
from kdsl.testing.layouts import LAYOUTS, Layout, laid_out

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from kdsl.equivalence.inputs import Kind
    from kdsl.runtime.examples import Binding

TILES = (1, 2, 3, 8, 16, 64)


def examples(kernel: Kernel, *, sizes: int = 12, tiles: Sequence[int] = TILES) -> SearchStrategy[Binding]:
    """Examples of a kernel: sizes from 1 to `sizes` that its constraints allow, the float types that verify tries, and
    tile sizes; constants and scalars are those of its author's examples. They shrink to small sizes and tiles.

    Raises KdslError as `kdsl.runtime.examples.bound_examples` does.
    """
    from hypothesis import reject
    from hypothesis import strategies as st

    from kdsl.equivalence.trials import variants
    from kdsl.ir.kernel import bind

    bases = variants(kernel)

    @st.composite
    def example(draw: DrawFn) -> Binding:
        base = draw(st.sampled_from(bases))
        names = [size.name for size in base.kernel.sizes if size.value is None]
        chosen = {name: draw(st.integers(1, sizes)) for name in names}
        tile_sizes = {tile.name: draw(st.sampled_from(sorted(tiles))) for tile in base.kernel.tiles}
        try:
            bind(base.kernel, chosen, tile_sizes)
        except (KdslError, ZeroDivisionError):
            reject()
        return replace(base, sizes=chosen, tiles=tile_sizes)

    return example()


def arrays(
    dtype: type[DType],
    shape: tuple[int, ...],
    *,
    kinds: Sequence[Kind] = ("exact", "generic", "special", "cancelling", "shifted"),
    layouts: Sequence[Layout] = LAYOUTS,
) -> SearchStrategy[np.ndarray[Any, Any]]:
    """Arrays of a kdsl dtype: exact, generic, special or nearly cancelling values, in memory in several layouts.

    They shrink to exact values, contiguous.
    """
    from hypothesis import strategies as st

    from kdsl.equivalence.inputs import draw_values
    from kdsl.ir.dtypes import DTYPES
    from kdsl.lang.dtypes import NAMES

    def made(kind: Kind, seed: int, layout: Layout) -> np.ndarray[Any, Any]:
        return laid_out(draw_values(np.random.default_rng(seed), kind, DTYPES[NAMES[dtype]], shape), layout)

    return st.builds(made, st.sampled_from(kinds), st.integers(0, 2**31), st.sampled_from(layouts))


def arguments(
    example: Binding,
    *,
    kinds: Sequence[Kind] = ("exact", "generic", "special", "cancelling", "shifted"),
    layouts: Sequence[Layout] = LAYOUTS,
) -> SearchStrategy[dict[str, Any]]:
    """What to call the kernel of an example with, by name: arrays as `kdsl verify` draws them, integers in the ranges
    that their use demands, each array in a layout of its own; and the scalars.

    Integers keep their values, so a stride of zero is given to floats alone.
    """
    from hypothesis import strategies as st

    from kdsl.equivalence.inputs import draw_for

    @st.composite
    def drawn(draw: DrawFn) -> dict[str, Any]:
        values = draw_for(example, example.tiles, draw(st.sampled_from(kinds)), (draw(st.integers(0, 2**31)),))
        floats = {buffer.name for buffer in example.kernel.buffers if buffer.dtype.is_float}
        result = {}
        for name, value in values.items():
            allowed = [layout for layout in layouts if layout != "repeated" or name in floats]
            result[name] = laid_out(value, draw(st.sampled_from(allowed))) if np.ndim(value) else value
        return result

    return drawn()
