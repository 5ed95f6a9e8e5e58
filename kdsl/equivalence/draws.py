"""How to draw the elements of an integer tensor: what an author declares, and what `inputs.py` makes of a role.

A draw is a function of a NumPy generator, a shape, and the sizes by name; it returns an array of that shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kdsl.ir.meaning import Array
from kdsl.lang.dims import Size, as_expr

Sizes = Mapping[str, int]
Draw = Callable[[np.random.Generator, tuple[int, ...], Sizes], Any]

_ENDS = 0.25  # how often an element is one of the ends
_EMPTY = 0.25  # how often a group is empty
_SHUFFLED = 0.5  # how often numbers are a shuffle, if there are enough of them


def integers(low: Size, high: Size) -> Draw:
    """Integers from `low` to below `high`, which may be dimensions: both ends often, and repeats or a shuffle."""

    def draw(generator: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> Array:
        return between(generator, shape, _value(low, sizes), _value(high, sizes) - 1)

    return draw


def distinct(low: Size, high: Size) -> Draw:
    """Integers from `low` to below `high` of which none comes twice. There must be as many as the tensor has elements.

    Drawing raises ValueError where there are not.
    """

    def draw(generator: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> Array:
        return without_repeats(generator, shape, _value(low, sizes), _value(high, sizes) - 1)

    return draw


def offsets(total: Size, along: int = -1) -> Draw:
    """Integers that never fall along a dimension, the first 0 and the last `total`: where groups start and end.

    Some of the groups are empty.
    """

    def draw(generator: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> Array:
        return rising(generator, shape, 0, _value(total, sizes), along)

    return draw


def _value(size: Size, sizes: Sizes) -> int:
    return int(as_expr(size).evaluate(sizes))


def between(generator: np.random.Generator, shape: tuple[int, ...], low: int, high: int) -> Array:
    """Integers in [low, high]. Raises ValueError where there are none but the shape has elements."""
    count = math.prod(shape)
    if low > high and count:
        raise ValueError(f"there is no integer from {low} to {high}")
    if 0 < count <= high - low + 1 and generator.random() < _SHUFFLED:
        return without_repeats(generator, shape, low, high)
    numbers = generator.integers(low, max(low, high), shape, endpoint=True)
    chance = generator.random(shape)
    return np.where(chance < _ENDS / 2, low, np.where(chance < _ENDS, high, numbers))


def without_repeats(generator: np.random.Generator, shape: tuple[int, ...], low: int, high: int) -> Array:
    """Different integers in [low, high]. Raises ValueError where there are too few."""
    if math.prod(shape) > high - low + 1:
        raise ValueError(f"{math.prod(shape)} different integers from {low} to {high} do not exist")
    return np.asarray(generator.permutation(high - low + 1)[: math.prod(shape)] + low).reshape(shape)


def rising(generator: np.random.Generator, shape: tuple[int, ...], low: int, high: int, along: int) -> Array:
    """Integers that never fall along a dimension, from `low` to `high`."""
    limits = np.moveaxis(np.sort(generator.integers(low, max(low, high), shape, endpoint=True), axis=along), along, -1)
    if limits.shape[-1]:
        again = generator.random(limits.shape[:-1]) < _EMPTY
        limits[..., -2:-1] = np.where(again[..., np.newaxis], high, limits[..., -2:-1])
        for place in range(1, limits.shape[-1]):
            same = generator.random(limits.shape[:-1]) < _EMPTY
            limits[..., place] = np.where(same, limits[..., place - 1], limits[..., place])
        limits[..., -1], limits[..., 0] = high, low
    return np.moveaxis(limits, -1, along)


__all__ = ["Draw", "between", "distinct", "integers", "offsets", "rising", "without_repeats"]
