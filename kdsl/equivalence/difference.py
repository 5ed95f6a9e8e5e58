"""Two kernels compared by what they touch: which elements of the inputs each element of an output was computed from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdsl.diagnostics import fail
from kdsl.equivalence.inputs import draw_inputs
from kdsl.equivalence.sizes import fits
from kdsl.interpreter.provenance import Element, Provenance, provenance
from kdsl.ir.kernel import Buffer, Kernel, bind, size_values
from kdsl.runtime.examples import Binding

LARGEST = 1 << 12  # elements of all tensors together: a set of them is an integer of that many bits
_CAPS = (24, 16, 12, 8, 6, 4, 3, 2, 1)


@dataclass(frozen=True)
class Difference:
    """An element of an output, what only the first kernel reads for it, and what only the second does."""

    output: Element
    here: tuple[Element, ...]
    there: tuple[Element, ...]

    def __str__(self) -> str:
        said = [f"reads {_listed(self.here)} here and not there"] if self.here else []
        said += [f"reads {_listed(self.there)} there and not here"] if self.there else []
        return f"{named(self.output)} {', and '.join(said)}"


def named(element: Element) -> str:
    """An element as its author writes it: x[3, 7]."""
    name, index = element
    return f"{name}[{', '.join(map(str, index))}]"


def _listed(elements: tuple[Element, ...], most: int = 4) -> str:
    more = f" and {len(elements) - most} more" if len(elements) > most else ""
    return ", ".join(map(named, elements[:most])) + more


def differences(first: Kernel, second: Kernel, arguments: Mapping[str, Any]) -> Iterator[Difference]:
    """Where two bound kernels with the same tensors read different elements, on arguments for the first."""
    traced = [provenance(kernel, arguments) for kernel in (first, second)]
    for name, reads in traced[0].reads.items():
        others = traced[1].reads[name]
        for index in np.ndindex(reads.shape):
            one, other = int(reads[index]), int(others[index])
            if one != other:
                yield Difference((name, index), *(_only(traced[0], *pair) for pair in ((one, other), (other, one))))


def _only(traced: Provenance, one: int, other: int) -> tuple[Element, ...]:
    return tuple(traced.elements(one & ~other))


def bind_alike(first: Binding, second: Binding, given: Mapping[str, int]) -> tuple[Kernel, Kernel, dict[str, int]]:
    """Both kernels for the same sizes: those given, and the first's example's, made small. Raises KdslError K0803."""
    _check_alike(first.kernel, second.kernel)
    for cap in _CAPS:
        sizes = {name: min(size, cap) for name, size in first.sizes.items()} | dict(given)
        if not all(fits(binding.kernel, sizes) for binding in (first, second)):
            continue
        kernels = [bind(binding.kernel, sizes, binding.tiles) for binding in (first, second)]
        if all(sum(map(element_count, kernel.buffers)) <= LARGEST for kernel in kernels):
            return kernels[0], kernels[1], sizes
    raise fail("K0803", first.kernel.location, most=LARGEST)


def element_count(buffer: Buffer) -> int:
    """How many elements a tensor of a bound kernel has."""
    return math.prod(int(size.evaluate({})) for size in buffer.shape)


def _check_alike(first: Kernel, second: Kernel) -> None:
    def described(kernel: Kernel) -> dict[str, str]:
        kinds = {p.name: p.role if isinstance(p, Buffer) else "a scalar" for p in kernel.parameters}
        ranks = {p.name: f" of {len(p.shape)} dimensions" for p in kernel.parameters if isinstance(p, Buffer)}
        return {name: f"{p}{ranks.get(name, '')}" for name, p in kinds.items()}

    one, other = described(first), described(second)
    for name in [*one, *other]:
        if one.get(name) != other.get(name):
            got = {"here": one.get(name, "nothing"), "there": other.get(name, "nothing")}
            raise fail("K0802", second.location, name=name, **got)


def draw_arguments(kernel: Kernel, binding: Binding, seed: int) -> dict[str, Any]:
    """Generic inputs for a bound kernel."""
    sizes = size_values(binding.kernel, binding.sizes)
    return draw_inputs(kernel, "generic", (seed,), binding.scalars, binding.inputs, sizes)
