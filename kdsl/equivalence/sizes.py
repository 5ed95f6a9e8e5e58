"""Sizes that a kernel is tried at: awkward ones, each for each dimension, within a budget of work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from kdsl.analysis.ranges import interval
from kdsl.diagnostics import KdslError
from kdsl.ir.kernel import Kernel, Op, bind, walk

# One, around powers of two, far from them. Dimensions take turns, so that what is drawn together differs.
POOLS = (
    (7, 33, 1, 257, 1023, 100, 31, 512),
    (1023, 1, 100, 31, 512, 33, 257, 7),
    (100, 1023, 1, 512, 31, 7, 33, 257),
)
BATCHES = (2, 1, 3, 7)  # for dimensions that only count programs
LARGEST_TENSOR = 2**19  # elements
LARGEST_STEPS = 2000  # ops that are evaluated: programs times iterations of their loops times ops
LARGEST_WORK = 2**20  # elements of the largest value, over all programs and iterations
TERMS = 32  # of a dot, that take as long as one element of a value
_TRIES, _CHOICES = 100, 3


def draw_sizes(kernels: Sequence[Kernel], example: Mapping[str, int], seed: int, count: int) -> list[dict[str, int]]:
    """`count` choices of all free sizes of a kernel, the later ones of values that no earlier one had.

    `kernels` are its unbound forms for several constants: their constraints all hold, and none exceeds the budget.
    Where nothing is found the sizes are the example's.
    """
    kernel = kernels[0]
    names = [size.name for size in kernel.sizes if size.value is None]
    generator = np.random.default_rng([seed, 0x51235])
    batches = {str(axis.extent) for axis in kernel.program_axes}
    pools = {name: BATCHES if name in batches else POOLS[i % len(POOLS)] for i, name in enumerate(names)}
    unseen = {name: list(pool) for name, pool in pools.items()}
    drawn: list[dict[str, int]] = []
    for place in range(count):
        first = names[place % len(names) :] + names[: place % len(names)] if names else []
        candidates = [_grown(kernels, first, pools, unseen, generator)]
        if kernel.constraints:  # sizes that hang together cannot grow one by one
            candidates += [_tried(kernels, pools, generator) for _ in range(_CHOICES)]
        sizes = max(filter(None, candidates), key=lambda chosen: _new(chosen, unseen), default=dict(example))
        for name in names:
            unseen[name] = [value for value in unseen[name] if value != sizes[name]]
        drawn.append({name: sizes[name] for name in names})
    return drawn


def _new(sizes: Mapping[str, int], unseen: Mapping[str, Sequence[int]]) -> int:
    """How many of the values have not been drawn yet."""
    return sum(sizes[name] in values for name, values in unseen.items())


def fits(kernel: Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether the kernel takes the sizes and they are within the budget."""
    try:
        bound = bind(kernel, sizes)
    except (KdslError, ZeroDivisionError):
        return False
    elements = [math.prod(int(size.evaluate({})) for size in buffer.shape) for buffer in bound.buffers]
    # An integer that data gives limits loops over a dimension, of which the longest is as long as it can be.
    longest = max((int(size.evaluate({})) for buffer in bound.buffers for size in buffer.shape), default=0)
    data = {integer.name: (0, longest) for integer in bound.integers}
    # A causal loop is longest in the last program.
    ends = {axis.name: interval(bound, axis.extent, data) for axis in bound.axes}
    extents = {name: 0 if end is None else max(0, end[1]) for name, end in ends.items()}
    steps = math.prod(extents[axis.name] for axis in bound.axes if axis.kind != "tile")
    ops = list(walk(bound.body))
    widest = max((_work(bound, op, extents) for op in ops), default=0)
    return (
        max(elements, default=0) <= LARGEST_TENSOR
        and steps * len(ops) <= LARGEST_STEPS
        and steps * widest <= LARGEST_WORK
    )


def _fit(kernels: Sequence[Kernel], sizes: Mapping[str, int]) -> bool:
    return all(fits(kernel, sizes) for kernel in kernels)


def _work(kernel: Kernel, op: Op, extents: Mapping[str, int]) -> int:
    """Elements of an op's result in one program, or for a dot its terms, weighted."""
    if op.name == "dot":
        lanes = {name for value in op.operands for name in kernel.tile_axes(value)}
        return math.prod(extents[name] for name in lanes) // TERMS
    return max((math.prod(extents[name] for name in kernel.tile_axes(value)) for value in op.results), default=0)


def _grown(
    kernels: Sequence[Kernel],
    names: Sequence[str],
    pools: Mapping[str, Sequence[int]],
    unseen: Mapping[str, Sequence[int]],
    generator: np.random.Generator,
) -> dict[str, int] | None:
    """All sizes 1, then one after the other the first that fits: a value not seen yet, or else any."""
    sizes = dict.fromkeys(names, 1)
    if not _fit(kernels, sizes):
        return None
    for name in names:
        candidates = [*unseen[name], *(int(value) for value in generator.permutation(pools[name]))]
        sizes[name] = next((value for value in candidates if _fit(kernels, {**sizes, name: value})), 1)
    return sizes


def _tried(
    kernels: Sequence[Kernel], pools: Mapping[str, Sequence[int]], generator: np.random.Generator
) -> dict[str, int] | None:
    """All sizes at random until they fit."""
    for _ in range(_TRIES):
        sizes = {name: int(generator.choice(pool)) for name, pool in pools.items()}
        if _fit(kernels, sizes):
            return sizes
    return None
