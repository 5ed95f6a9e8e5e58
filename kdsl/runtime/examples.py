"""Examples: what an author gives to run a kernel with, told apart by the kernel's signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kdsl.diagnostics import fail
from kdsl.frontends.python import elaborate, signature
from kdsl.frontends.python.source import read
from kdsl.ir.kernel import Kernel, Scalar
from kdsl.lang.kernel import Example
from kdsl.lang.kernel import Kernel as KernelFunction


@dataclass(frozen=True)
class Binding:
    """An example of a kernel: its IR (dtypes and constants bound), and values for what is still free.

    `bindings` are the dtypes and constants by name, `sizes` every size that is not computed, `tiles` the tile sizes
    that the example chooses, `scalars` values for scalar arguments, `inputs` how to draw tensors.
    """

    kernel: Kernel
    bindings: Mapping[str, Any]
    sizes: Mapping[str, int]
    tiles: Mapping[str, int] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)


def bind_example(kernel: KernelFunction, example: Example) -> Binding:
    """The example as the kernel's signature reads it.

    Raises KdslError: K0407 for names that are missing or that the kernel does not have, K0411 for inputs that are no
    tensors of it, and what elaboration raises.
    """
    values = dict(example.values)
    # Dtype variables and constants come first: the signature cannot be read without them.
    bindings = {name: value for name, value in values.items() if isinstance(value, type)}
    bindings |= {name: values[name] for name in signature(kernel, values).constants if name in values}
    elaborated = elaborate(kernel, bindings)
    free = {size.name for size in elaborated.sizes if size.value is None}
    tiles = {tile.name for tile in elaborated.tiles}
    scalars = {parameter.name for parameter in elaborated.parameters if isinstance(parameter, Scalar)}
    unknown = values.keys() - bindings.keys() - free - tiles - scalars
    missing = (free | scalars) - values.keys()
    if unknown or missing:
        parts = [f"{', '.join(sorted(missing))} missing"] if missing else []
        parts += [f"{', '.join(sorted(unknown))} unknown"] if unknown else []
        raise fail("K0407", elaborated.location, kernel=kernel.name, problem="; ".join(parts))
    for name in free | tiles & values.keys():
        if not isinstance(values[name], int) or values[name] < (1 if name in tiles else 0):
            raise fail(
                "K0407", elaborated.location, kernel=kernel.name, problem=f"{name} = {values[name]!r} is no size"
            )

    def of(names: set[str]) -> dict[str, Any]:
        return {name: values[name] for name in values if name in names}

    taken = {buffer.name for buffer in elaborated.buffers if buffer.role != "out"}
    for name in example.inputs.keys() - taken:
        problem = f"it is no input; those are {', '.join(sorted(taken)) or 'none'}"
        raise fail("K0411", elaborated.location, kernel=kernel.name, name=name, problem=problem)
    return Binding(elaborated, bindings, of(free), of(tiles), of(scalars), example.inputs)


def examples_of(kernel: KernelFunction) -> tuple[Example, ...]:
    """All examples of a kernel as they were given, the default first. Raises KdslError K0406 where there is none."""
    if not kernel.examples:
        raise fail("K0406", read(kernel.function).name_location, kernel=kernel.name)
    return kernel.examples


def bound_examples(kernel: KernelFunction) -> list[Binding]:
    """All examples of a kernel, bound. Raises KdslError K0406 where there is none, and what `bind_example` raises."""
    return [bind_example(kernel, example) for example in examples_of(kernel)]


def default_example(kernel: KernelFunction) -> Binding:
    """The first example, bound. Raises as `bound_examples` does."""
    return bind_example(kernel, examples_of(kernel)[0])
