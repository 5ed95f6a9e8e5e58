"""What kernels are run on: sizes for each example, and values for its arguments.

exact      small integers, so that sums and products are exact in f32 and do not depend on their order. Where an
           exponential follows, values that make each weight 0 or 1: a softmax then counts.
generic    standard normal
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from kdsl.equivalence.logits import Logit, logits
from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Buffer, Kernel, Scalar
from kdsl.ir.meaning import Array

Kind = Literal["exact", "generic"]
KINDS: tuple[Kind, ...] = ("exact", "generic")

LARGEST = 4  # of exact integers: a product of two summed over 1024 terms is 2**14
STEP = 256.0  # between exact logits: far enough for exp(-STEP / 2) to be 0 in f32


def draw_inputs(
    kernel: Kernel, kind: Kind, seed: Sequence[int], scalars: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Values for the arguments of a bound kernel, output buffers aside. `scalars` are those of the example.

    Exact inputs take the power of two that is nearest to a scalar, so that scaling rounds nothing.
    """
    generator = np.random.default_rng([*seed, KINDS.index(kind)])
    chosen = logits(kernel) if kind == "exact" else {}
    arguments: dict[str, Any] = {}
    for parameter in kernel.parameters:
        if isinstance(parameter, Scalar):
            given = (scalars or {}).get(parameter.name)
            arguments[parameter.name] = _scalar(generator, kind, parameter.dtype, given)
        elif parameter.role != "out":
            arguments[parameter.name] = _array(generator, kind, parameter, chosen.get(parameter.name))
    return arguments


def _scalar(generator: np.random.Generator, kind: Kind, dtype: DType, given: Any) -> Any:
    if given is None:
        drawn = _exact(generator, dtype, ()) if kind == "exact" else _generic(generator, dtype, ())
        return drawn.item()
    if kind == "exact" and dtype.is_float and given and math.isfinite(given):
        return math.copysign(2.0 ** round(math.log2(abs(given))), given)
    return given


def _array(generator: np.random.Generator, kind: Kind, buffer: Buffer, logit: Logit | None) -> Array:
    shape = tuple(int(size.evaluate({})) for size in buffer.shape)
    if logit is not None and buffer.dtype.is_float:
        drawn = np.where(generator.random(shape) < logit.density, STEP * logit.sign, 0.0)
    else:
        drawn = _exact(generator, buffer.dtype, shape) if kind == "exact" else _generic(generator, buffer.dtype, shape)
    return drawn.astype(buffer.dtype.numpy)


def _exact(generator: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Integers other than 0, so that no factor hides another."""
    if dtype.kind == "bool":
        return generator.integers(0, 2, shape)
    sizes = generator.integers(1, LARGEST + 1, shape)
    return np.asarray(sizes if dtype.kind == "uint" else sizes * generator.choice([-1, 1], shape))


def _generic(generator: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    if dtype.is_float:
        return np.asarray(generator.standard_normal(shape))
    lowest, highest = {"bool": (0, 1), "uint": (0, 100)}.get(dtype.kind, (-100, 100))
    return np.asarray(generator.integers(lowest, highest + 1, shape))
