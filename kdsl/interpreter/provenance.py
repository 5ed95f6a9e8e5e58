"""Provenance: which elements of the arguments each element of an output was computed from.

An element is read if its value had a part in the result: through arithmetic, a condition of a select and the arm that
it chose, or an index. What a mask or a select leaves out is not, nor what only decided how often a loop runs. One
program at a time, for small sizes: a tag is a set of elements, as the bits of a Python integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdsl.interpreter.grid import points
from kdsl.interpreter.memory import take_arguments, worst
from kdsl.interpreter.shadow import Shadowed
from kdsl.ir.kernel import Kernel
from kdsl.ir.meaning import Array

Element = tuple[str, tuple[int, ...]]  # a tensor's name and an index


@dataclass(frozen=True)
class Provenance:
    """`reads` has, for each written tensor, an array of sets of elements: bit i stands for the i-th element of all
    tensors in order. `first` is the number of each tensor's first element."""

    reads: Mapping[str, Array]
    shapes: Mapping[str, tuple[int, ...]]
    first: Mapping[str, int]

    def elements(self, bits: int) -> Iterator[Element]:
        """The elements of a set, in order."""
        names = list(self.first)
        while bits:
            number = (bits & -bits).bit_length() - 1
            bits &= bits - 1
            name = max((name for name in names if self.first[name] <= number), key=lambda name: self.first[name])
            yield name, element_index(self.shapes[name], number - self.first[name])

    def read_by(self, output: str, index: Sequence[int]) -> list[Element]:
        """The elements that one element of an output was computed from."""
        return list(self.elements(int(self.reads[output][tuple(index)])))


def element_index(shape: tuple[int, ...], number: int) -> tuple[int, ...]:
    """The index of an element from its row-major number."""
    return tuple(int(place) for place in np.unravel_index(number, shape)) if shape else ()


class Traced(Shadowed):
    """A program whose values carry the sets of elements that they were computed from."""

    join = np.bitwise_or
    tag = np.dtype(object)


def provenance(kernel: Kernel, arguments: Mapping[str, Any]) -> Provenance:
    """Run a bound kernel on arguments as for `kdsl.interpreter.run`. Raises what that raises."""
    memory, scalars = take_arguments(kernel, arguments, worst)
    first: dict[str, int] = {}
    shadows: dict[str, Array] = {}
    count = 0
    for name, array in memory.items():
        given = kernel.buffer(name).role != "out"
        numbers = [1 << (count + place) if given else 0 for place in range(array.size)]
        shadows[name] = np.array([*numbers, None], dtype=object)[:-1].reshape(array.shape)
        first[name] = count
        count += array.size
    with np.errstate(all="ignore"):
        for point in points(kernel):
            Traced(kernel, memory, scalars, point, worst, shadows).run(kernel.body, [])
    shapes = {name: array.shape for name, array in memory.items()}
    # An empty tensor has no element, and the number of the next one's first.
    first = {name: number for name, number in first.items() if memory[name].size}
    return Provenance({buffer.name: shadows[buffer.name] for buffer in kernel.written}, shapes, first)
