"""Sizes of several tiles, the last of which is ragged: those at which a target's choice of tiles shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kdsl.ir.expr import Expr, Function
from kdsl.ir.kernel import Kernel


def past_tiles(kernel: Kernel, tiles: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes, but for each dimension of an unbound kernel that is cut into tiles two of them and one element.

    The first has a tile more, so that two dimensions whose limits meet (causal attention's) differ.
    """
    longest: dict[str, int] = {}
    for dimension, tile in _cuts(kernel):
        length = max((tiles[name] for name in tile.symbols if name in tiles), default=0)
        for name in dimension.symbols & sizes.keys() if length else ():
            longest[name] = max(longest.get(name, 0), length)
    cut = [name for name in sizes if name in longest]
    return {**sizes, **{name: (3 if name == cut[0] else 2) * longest[name] + 1 for name in cut}}


def _cuts(kernel: Kernel) -> Iterator[tuple[Expr, Expr]]:
    """What is divided by what to count the blocks of a grid or a loop."""
    for axis in kernel.axes:
        for monomial, _ in axis.extent.terms:
            for atom in monomial:
                if isinstance(atom, Function) and atom.name == "cdiv":
                    dimension, tile = atom.arguments
                    yield dimension, tile
