"""Random numbers that depend on a seed and a place only: Philox4x32-10 (Salmon et al., SC 2011).

`seed` is one integer (its 64 bits are the key), `offset` an integer tile (the low counter words): equal arguments give
equal numbers, in every program and on every target.
"""

from __future__ import annotations

from kdsl.lang.tiles import Operand, OutsideKernelError, TileValue


def random_bits(seed: Operand, offset: Operand) -> tuple[TileValue, TileValue, TileValue, TileValue]:
    """Four independent u32 tiles over the axes of the offset."""
    raise OutsideKernelError("kdsl.random_bits")


def uniform(seed: Operand, offset: Operand) -> TileValue:
    """f32 in [0, 1), evenly spaced: (bits >> 8) * 2**-24 of the first of `random_bits`."""
    raise OutsideKernelError("kdsl.uniform")


def normal(seed: Operand, offset: Operand) -> TileValue:
    """f32 of the standard normal distribution, by Box and Muller's transform of the first two of `random_bits`.

    The logarithm's argument is at least 2**-24, so no number is larger than sqrt(48 * log(2)), about 5.77.
    """
    raise OutsideKernelError("kdsl.normal")
