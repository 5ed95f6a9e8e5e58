"""What lanes that mean nothing may hold: a result must not depend on which."""

from __future__ import annotations

import math

import numpy as np

from kdsl.interpreter.stepped import Poison, worst
from kdsl.ir.dtypes import DType
from kdsl.ir.meaning import Array


def constant(value: float) -> Poison:
    """Floats hold the value, all else the oracle's default poison."""

    def poison(dtype: DType, shape: tuple[int, ...]) -> Array:
        return np.full(shape, value).astype(dtype.numpy) if dtype.is_float else worst(dtype, shape)

    return poison


def garbage(dtype: DType, shape: tuple[int, ...]) -> Array:
    """Random bytes, the same for the same shape; bools stay bools."""
    size = math.prod(shape)
    random = np.random.default_rng(size).integers(0, 256, size * dtype.numpy.itemsize, dtype=np.uint8)
    if dtype.kind == "bool" or dtype.bits == 4:
        random %= 2 if dtype.kind == "bool" else 16
    return random.view(dtype.numpy).reshape(shape)


POISONS: dict[str, Poison] = {
    "NaN": worst,
    "infinity": constant(np.inf),
    "-3e38": constant(-3e38),
    "random bytes": garbage,
}
