"""Tile sizes that Mosaic takes: each tile parameter rounded up to what the places that it stands in need.

A block's last dimension (lanes) is a multiple of 128 or the whole dimension, the one before it (sublanes) a multiple of
8 or whole; a one-dimensional block a multiple of 1024 or whole. Emitted functions cut tiles down to the dimension, so a
tile that reaches it is always legal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kdsl.diagnostics import fail
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr, symbol
from kdsl.ir.kernel import Kernel, size_values

from .access import TARGET, Operand, refuse
from .plan import Plan

LANES, SUBLANES, FLAT = 128, 8, 1024
PLACES = {LANES: "the minor dimension", SUBLANES: "the second-minor dimension", FLAT: "a one-dimensional block"}

MIB = 2**20
LIMIT = 48 * MIB  # v7x has 64 MiB of VMEM to limit a kernel to (v5e and v6e 128); a quarter is added to the estimate
DEFAULT = 12 * MIB  # what fits every generation's default limit for a kernel, 16 MiB on v5e, with room to spare


@dataclass(frozen=True)
class Tile:
    """A tile parameter: its size, what that must be a multiple of unless it reaches `dimension`, and that dimension.

    `dimension` is None for a tile along no tensor or along dimensions of different extents, which is not cut down.
    """

    name: str
    size: int
    multiple: int
    dimension: Expr | None


@dataclass(frozen=True)
class Choice:
    """The tiles of a plan; `vmem_bytes` is what the example needs; `notes` say what was changed and why."""

    tiles: tuple[Tile, ...]
    vmem_bytes: int
    notes: tuple[str, ...]

    @property
    def sizes(self) -> dict[str, int]:
        return {tile.name: tile.size for tile in self.tiles}

    @property
    def vmem_limit(self) -> int | None:
        """The limit to ask for, in whole MiB, or None where the default does."""
        return None if self.vmem_bytes <= DEFAULT else math.ceil(self.vmem_bytes * 1.25 / MIB)


def choose_tiles(plan: Plan, wanted: Mapping[str, int], sizes: Mapping[str, int]) -> Choice:
    """Legal tile sizes near the wanted ones, that fit VMEM for the example's sizes.

    Raises KdslError: K0304 for a fixed block that Mosaic does not take, or if nothing fits.
    """
    kernel = plan.kernel
    needs = _multiples(plan)
    tiles, notes = [], []
    for parameter in kernel.tiles:
        asked = wanted.get(parameter.name, parameter.default)
        multiple = needs.get(parameter.name, 1)
        size = -(-asked // multiple) * multiple
        if size != asked:
            notes.append(
                f"{parameter.name} {asked} -> {size}: {PLACES[multiple]} of a block is a multiple of {multiple}"
            )
        extents = {
            dimension.extent
            for site in plan.operands
            for dimension in site.dimensions
            if dimension.size == symbol(parameter.name)
        }
        tiles.append(Tile(parameter.name, size, multiple, extents.pop() if len(extents) == 1 else None))
    for site in plan.operands:
        if not any(dimension.axis for dimension in site.dimensions):
            notes.append(f"{site.buffer.name}: one element a step takes a block of 4 KiB; tiles of it would not")
    values = size_values(kernel, sizes)
    return _fitted(plan, tiles, values, notes)


def _multiples(plan: Plan) -> dict[str, int]:
    """What each tile parameter must be a multiple of, unless it reaches its dimension."""
    kernel = plan.kernel
    names = {symbol(tile.name): tile.name for tile in kernel.tiles}
    needs: dict[str, int] = {}
    for site in plan.operands:
        places = (FLAT,) if len(site.dimensions) == 1 else (LANES, SUBLANES)
        for dimension, multiple in zip(reversed(site.dimensions), places, strict=False):
            if dimension.size is None or dimension.size == dimension.extent:
                continue
            if dimension.size in names:
                name = names[dimension.size]
                needs[name] = max(needs.get(name, 1), multiple)
            elif dimension.size.constant is None or dimension.size.constant % multiple:
                raise _illegal(kernel, site, dimension.size, multiple)
    return needs


def _illegal(kernel: Kernel, site: Operand, size: Expr, multiple: int) -> Exception:
    return refuse(
        None,
        f"blocks of {site.buffer.name} are {size} along {PLACES[multiple]}, which is no multiple of {multiple}",
        "make it a Tile parameter",
        kernel,
    )


# -- VMEM ----------------------------------------------------------------------------------------------------------


def _fitted(plan: Plan, tiles: list[Tile], sizes: Mapping[str, int], notes: list[str]) -> Choice:
    """The tiles, halved as long as the example does not fit VMEM. Raises KdslError K0304 where none can be halved."""
    while (need := vmem_bytes(plan, _cut(tiles, sizes))) > LIMIT:
        halves = [tile for tile in tiles if _cut([tile], sizes)[tile.name] > tile.multiple]
        if not halves:
            first = tiles[0] if tiles else None
            raise fail(
                "K0304",
                plan.kernel.location,
                target=TARGET,
                name=first.name if first else "(none)",
                value=first.size if first else 0,
                problem=f"blocks and scratch need {need / MIB:.0f} MiB of VMEM, which has {LIMIT / MIB:.0f} to give",
            )
        largest = max(halves, key=lambda tile: (_cut([tile], sizes)[tile.name] / tile.multiple, tile.size))
        half = -(-_cut([largest], sizes)[largest.name] // (2 * largest.multiple)) * largest.multiple
        notes.append(f"{largest.name} {largest.size} -> {half}: larger blocks do not fit VMEM")
        tiles = [Tile(t.name, half, t.multiple, t.dimension) if t is largest else t for t in tiles]
    return Choice(tuple(tiles), need, tuple(notes))


def _cut(tiles: list[Tile], sizes: Mapping[str, int]) -> dict[str, int]:
    """All sizes, with tiles cut down to their dimensions."""
    cut = {
        tile.name: tile.size if tile.dimension is None else min(tile.size, max(1, tile.dimension.evaluate(sizes)))
        for tile in tiles
    }
    return {**sizes, **cut}


def vmem_bytes(plan: Plan, sizes: Mapping[str, int]) -> int:
    """An estimate: two buffers for each block, the scratch, and two of the largest value for what is in between."""
    blocks = sum(2 * _bytes(site.block, site.dtype, sizes) for site in plan.operands)
    scratch = sum(_bytes(item.shape, item.dtype, sizes) for item in plan.scratch)
    shapes = [site.block for site in plan.operands] + [item.shape for item in plan.scratch]
    largest = max((_bytes(shape, None, sizes) for shape in shapes), default=0)
    return blocks + scratch + 2 * largest


def _bytes(shape: tuple[Expr, ...], dtype: DType | None, sizes: Mapping[str, int]) -> int:
    """Bytes of a block in VMEM, where the last two dimensions are padded to (8, 128); f32 if no dtype is given."""
    extents = [max(1, int(extent.evaluate(sizes))) for extent in shape]
    # One-dimensional blocks fill registers row by row.
    *outer, rows, lanes = extents if len(extents) > 1 else (-(-extents[0] // LANES), LANES)
    padded = -(-rows // SUBLANES) * SUBLANES * (-(-lanes // LANES) * LANES)
    return math.prod(outer) * padded * (32 if dtype is None else dtype.bits) // 8
