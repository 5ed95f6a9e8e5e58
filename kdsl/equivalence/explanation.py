"""What an error bound is made of: for the element with the largest one, how much each source line contributes.

The bounds are computed once for each line, with no op rounding but those of that line. To first order these parts add
up to the whole; where a cast takes an error to the next number of a narrower type they need not, so each is given as a
share of their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdsl.equivalence.bounds import bounds_of
from kdsl.equivalence.inputs import draw_inputs
from kdsl.equivalence.model import Model
from kdsl.equivalence.rounding import likely_gamma
from kdsl.ir.kernel import Kernel, Op, bind, walk
from kdsl.lang.kernel import Kernel as KernelFunction
from kdsl.runtime.description import in_words
from kdsl.runtime.examples import default_example
from kdsl.runtime.target import AccuracyTable, find_target

Place = tuple[str, int]  # file and line; ops without a location go by their name


@dataclass(frozen=True)
class Part:
    """What the ops of one line contribute to a bound: a share of all parts, 0 to 1."""

    file: str
    line: int
    ops: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class Explanation:
    """The element of an output with the largest finite hard bound, its bounds, and what they are made of, largest
    first. `element` is None where no bound is finite."""

    kernel: str
    target: str
    inputs: str  # in words
    element: str | None
    value: float
    hard: float
    expected: float
    parts: tuple[Part, ...]


def explain_bound(kernel: KernelFunction, source: str, target: str, seed: int = 0) -> Explanation:
    """Explain the hard bound of a kernel on a target, on generic inputs of its default example.

    `source` is the kernel's label. Raises KdslError as `Target.emit` and `interpreter.run` do.
    """
    found, example = find_target(target), default_example(kernel)
    tiles = found.emit(example.kernel, example.tiles, example.sizes).tiles
    bound = bind(example.kernel, example.sizes, tiles)
    arguments = draw_inputs(bound, "generic", (seed,), example.scalars)
    inputs = f"{in_words(example)}, generic inputs (seed {seed})"
    return explain(bound, arguments, found.accuracy, source, target, inputs)


def explain(
    kernel: Kernel, arguments: Mapping[str, Any], accuracy: AccuracyTable, source: str, target: str, inputs: str
) -> Explanation:
    """Explain the largest hard bound of a bound kernel's outputs."""
    whole = bounds_of(kernel, arguments, Model(accuracy))
    finite = {name: np.where(np.isfinite(bound), bound, -1.0) for name, bound in whole.bounds.items() if bound.size}
    output = max(finite, key=lambda name: float(finite[name].max()), default=None)
    if output is None or finite[output].max() < 0:
        return Explanation(source, target, inputs, None, np.nan, np.inf, np.inf, ())
    index = tuple(int(place) for place in np.unravel_index(int(np.argmax(finite[output])), finite[output].shape))
    expected = bounds_of(kernel, arguments, Model(accuracy, gamma=likely_gamma)).bounds[output][index]
    ops = lines(kernel)
    alone = {
        place: float(bounds_of(kernel, arguments, Model(accuracy, heard=_only(place))).bounds[output][index])
        for place in ops
    }
    total = sum(alone.values())
    parts = [Part(*place, ops[place], amount / total) for place, amount in alone.items() if amount > 0]
    return Explanation(
        source,
        target,
        inputs,
        f"{output}[{', '.join(map(str, index))}]",
        float(whole.values[output][index]),
        float(whole.bounds[output][index]),
        float(expected),
        tuple(sorted(parts, key=lambda part: -part.share)),
    )


def lines(kernel: Kernel) -> dict[Place, tuple[str, ...]]:
    """The ops of each line of the author's source, by name, in the order of the text."""
    found: dict[Place, dict[str, None]] = {}
    for op in walk(kernel.body):
        found.setdefault(_place(op), {})[op.name] = None
    return {place: tuple(names) for place, names in found.items()}


def _place(op: Op) -> Place:
    return (op.location.file, op.location.line) if op.location is not None else (op.name, 0)


def _only(place: Place) -> Callable[[Op], bool]:
    return lambda op: _place(op) == place
