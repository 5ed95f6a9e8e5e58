"""What kernels are run on: values for the arguments of an example.

exact       small integers, so that sums and products are exact in f32 and do not depend on their order. Where an
            exponential follows, values that make each weight 0 or 1: a softmax then counts.
generic     standard normal
special     standard normal, a few per cent of them NaN, an infinity, a zero of either sign, a subnormal number, the
            smallest normal number or the largest one
cancelling  pairs that nearly sum to zero, and large numbers beside small ones
shifted     standard normal, each row far from zero, more of them below: no lane that is left out is near the others

Integers that become places or limits are drawn between ends that `roles.py` tells, or as the example declares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import ml_dtypes
import numpy as np

from kdsl.analysis.ranges import Interval
from kdsl.diagnostics import fail
from kdsl.equivalence.draws import between, rising, without_repeats
from kdsl.equivalence.logits import Logit, logits
from kdsl.equivalence.roles import Role, find_roles
from kdsl.ir.dtypes import DType, from_numpy
from kdsl.ir.kernel import Buffer, Kernel, Scalar, bind, size_values
from kdsl.ir.meaning import Array
from kdsl.runtime.examples import Binding

Kind = Literal["exact", "generic", "special", "cancelling", "shifted"]
KINDS: tuple[Kind, ...] = ("exact", "generic", "special", "cancelling", "shifted")
BASE_KINDS: tuple[Kind, ...] = ("exact", "generic")  # those that a verdict's error and undecided share are of
OTHER_KINDS: tuple[Kind, ...] = ("special", "cancelling", "shifted")
# In turn on the oracle: examples and dtypes take turns with a period of 4, and each meets exact and generic inputs.
SCHEDULE: tuple[Kind, ...] = ("exact", "generic", "special", "exact", "generic", "cancelling", "shifted")

LARGEST = 4  # of exact integers: a product of two summed over 1024 terms is 2**14
STEP = 256.0  # between exact logits: far enough for exp(-STEP / 2) to be 0 in f32
SPECIAL = 0.04  # the share of special numbers
LARGER = 16.0  # how much larger the large numbers are: their exponentials are still finite
SHIFTS = (-1e5, -1e4, -100.0, -32.0, 0.0, 32.0, 1e4)
NEARLY = 2.0**-6  # relative difference of most pairs that nearly cancel


def draw_inputs(
    kernel: Kernel,
    kind: Kind,
    seed: Sequence[int],
    scalars: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Values for the arguments of a bound kernel, output buffers aside. `scalars` are those of the example, `inputs`
    what it declares of tensors, and `sizes` what all sizes are, for those declarations.

    Exact inputs take the power of two that is nearest to a scalar, so that scaling rounds nothing. Raises KdslError:
    K0410 where it cannot be told what an integer input may hold, K0411 for declared inputs that do not fit.
    """
    generator = np.random.default_rng([*seed, KINDS.index(kind)])
    declared = {
        name: _declared(generator, kernel, kernel.buffer(name), draw, sizes or {})
        for name, draw in (inputs or {}).items()
    }
    roles = find_roles(kernel, _settled(kernel, declared, scalars or {}))
    chosen = logits(kernel) if kind == "exact" else {}
    arguments: dict[str, Any] = {}
    for parameter in kernel.parameters:
        name, role = parameter.name, roles.get(parameter.name)
        if isinstance(parameter, Scalar):
            arguments[name] = _scalar(generator, kind, parameter.dtype, (scalars or {}).get(name), role)
        elif name in declared:
            arguments[name] = declared[name]
        elif parameter.role != "out":
            arguments[name] = _array(generator, kind, parameter, chosen.get(name), role)
    return arguments


def draw_for(example: Binding, tiles: Mapping[str, int], kind: Kind, seed: Sequence[int]) -> dict[str, Any]:
    """Values for the arguments of an example, at its sizes and given tile sizes; as `draw_inputs`."""
    bound = bind(example.kernel, example.sizes, tiles)
    sizes = size_values(example.kernel, example.sizes)
    return draw_inputs(bound, kind, seed, example.scalars, example.inputs, sizes)


def without_extremes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments whose subnormal numbers are 0 and whose largest ones are 1.

    Some targets flush the one, and whether the other overflow depends on how operations are fused: there is nothing
    to decide there.
    """

    def tamed(array: Any) -> Any:
        dtype = from_numpy(array.dtype) if np.ndim(array) else None
        if dtype is None or not dtype.is_float:
            return array
        limits, numbers = ml_dtypes.finfo(array.dtype), array.astype(np.float64)
        numbers = np.where(np.abs(numbers) < float(limits.smallest_normal), 0.0, numbers)
        return np.where(np.abs(numbers) == float(limits.max), np.sign(numbers), numbers).astype(array.dtype)

    return {name: tamed(array) for name, array in arguments.items()}


def _declared(
    generator: np.random.Generator, kernel: Kernel, buffer: Buffer, draw: Any, sizes: Mapping[str, int]
) -> Array:
    shape = _shape(buffer)
    try:
        drawn = np.asarray(draw(generator, shape, sizes) if callable(draw) else np.full(shape, draw))
        if drawn.shape != shape:
            raise ValueError(f"an array of shape {drawn.shape}, expected {shape}")
    except (ValueError, TypeError, KeyError) as error:
        problem = str(error) or type(error).__name__
        raise fail("K0411", kernel.location, kernel=kernel.name, name=buffer.name, problem=problem) from None
    return drawn.astype(buffer.dtype.numpy)


def _settled(kernel: Kernel, declared: Mapping[str, Array], scalars: Mapping[str, Any]) -> dict[str, Interval]:
    """The ends of integers that are given."""
    integers = {parameter.name for parameter in kernel.parameters if parameter.dtype.is_integer}
    arrays = {name: np.asarray(array) for name, array in {**declared, **scalars}.items()}
    return {
        name: (int(array.min()), int(array.max())) if name in integers and array.size else (0, 0)
        for name, array in arrays.items()
    }


def _scalar(generator: np.random.Generator, kind: Kind, dtype: DType, given: Any, role: Role | None) -> Any:
    if role is not None:
        return between(generator, (), role.low, role.high).item()
    if given is None:
        drawn = _exact(generator, dtype, ()) if kind == "exact" else _generic(generator, dtype, ())
        return drawn.item()
    if kind == "exact" and dtype.is_float and given and math.isfinite(given):
        return math.copysign(2.0 ** round(math.log2(abs(given))), given)
    return given


def _shape(buffer: Buffer) -> tuple[int, ...]:
    return tuple(int(size.evaluate({})) for size in buffer.shape)


def _array(generator: np.random.Generator, kind: Kind, buffer: Buffer, logit: Logit | None, role: Role | None) -> Array:
    shape, dtype = _shape(buffer), buffer.dtype
    if role is not None:
        return _in_role(generator, shape, role).astype(dtype.numpy)
    if logit is not None and dtype.is_float:
        return np.where(generator.random(shape) < logit.density, STEP * logit.sign, 0.0).astype(dtype.numpy)
    return draw_values(generator, kind, dtype, shape)


def draw_values(generator: np.random.Generator, kind: Kind, dtype: DType, shape: tuple[int, ...]) -> Array:
    """An array of a dtype, of that kind of values; integers that are no places are small."""
    if kind == "exact":
        return _exact(generator, dtype, shape).astype(dtype.numpy)
    if kind == "cancelling" and dtype.is_float:
        return _cancelling(generator, shape).astype(dtype.numpy)
    if kind == "shifted" and dtype.is_float:
        return _shifted(generator, dtype, shape).astype(dtype.numpy)
    array = _generic(generator, dtype, shape).astype(dtype.numpy)
    return _with_specials(generator, dtype, array) if kind == "special" and dtype.is_float else array


def _in_role(generator: np.random.Generator, shape: tuple[int, ...], role: Role) -> Array:
    if role.pattern == "offsets":
        return rising(generator, shape, role.low, role.high, role.along)
    if role.pattern == "distinct":
        return without_repeats(generator, shape, role.low, role.high)
    return between(generator, shape, role.low, role.high)


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


def _shifted(generator: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """One shift for each row along the last dimension, a quarter of the largest number at most."""
    most = float(ml_dtypes.finfo(dtype.numpy).max) / 4
    shifts = np.clip(generator.choice(SHIFTS, (*shape[:-1], 1)[-len(shape) :] if shape else ()), -most, most)
    return np.asarray(generator.standard_normal(shape) + shifts)


def _cancelling(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Neighbours along one dimension, drawn for each tensor, are opposite up to a little, a few of them large."""
    numbers = np.asarray(generator.standard_normal(shape))
    numbers = np.where(generator.random(shape) < 0.1, LARGER * numbers, numbers)
    if not shape:
        return numbers
    along = int(generator.integers(len(shape)))
    lanes = np.moveaxis(numbers, along, -1)
    pairs = lanes.shape[-1] // 2
    off = NEARLY * generator.standard_normal((*lanes.shape[:-1], pairs))
    lanes[..., 1 : 2 * pairs : 2] = -lanes[..., 0 : 2 * pairs : 2] * (
        1 + np.where(generator.random(off.shape) < 0.5, off, 0)
    )
    return np.moveaxis(lanes, -1, along)


def _with_specials(generator: np.random.Generator, dtype: DType, array: Array) -> Array:
    """The array with some of its elements replaced; a dtype without infinity or NaN has what they round to."""
    limits = ml_dtypes.finfo(dtype.numpy)
    largest, smallest, least = (float(limits.max), float(limits.smallest_normal), float(limits.smallest_subnormal))
    numbers = [math.nan, math.inf, -math.inf, 0.0, -0.0, largest, -largest, smallest, -smallest, least, -least]
    with np.errstate(all="ignore"):
        specials = np.array(numbers).astype(dtype.numpy)
    chosen = generator.integers(0, len(specials), array.shape)
    return np.where(generator.random(array.shape) < SPECIAL, specials[chosen], array)
