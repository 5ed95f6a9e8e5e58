"""Every kernel of the samples: its IR prints and parses back, and the passes change no bit of what it gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.ir.kernel import Buffer, Kernel, bind
from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.lang.dtypes import DType
from kdsl.lang.kernel import Kernel as KernelFunction
from kdsl.passes.pipeline import run_passes
from tests.frontends.python.numbers import Array
from tests.frontends.python.samples import features, places, ragged, rows
from tests.passes.checking import assert_same_results

KERNELS = {
    f"{module.__name__.rpartition('.')[2]}:{name}": thing
    for module in (features, places, ragged, rows)
    for name, thing in vars(module).items()
    if isinstance(thing, KernelFunction)
}


def bound_example(function: KernelFunction) -> tuple[Kernel, dict[str, Any]]:
    """The kernel bound to its first example, and the example's scalars."""
    values = dict(function.examples[0].values)
    parameters = function.function.__annotations__
    constants = {name for name in values if "Const[" in parameters.get(name, "")}
    dtypes = {name for name, value in values.items() if isinstance(value, type) and issubclass(value, DType)}
    kernel = function.elaborate(**{name: values.pop(name) for name in constants | dtypes})
    sizes = {size.name: values.pop(size.name) for size in kernel.sizes if size.name in values}
    return bind(kernel, sizes), values


def argument(buffer: Buffer, seed: int) -> Array:
    """Numbers that are valid places, too: 0 and 1 where they are integers."""
    random = np.random.default_rng(seed)
    shape = [extent.constant or 0 for extent in buffer.shape]
    drawn = random.standard_normal(shape) if buffer.dtype.is_float else random.integers(0, 2, shape)
    return drawn.astype(buffer.dtype.numpy)


@pytest.mark.parametrize("name", KERNELS)
def test_a_sample_survives_text_and_passes(name: str) -> None:
    kernel, scalars = bound_example(KERNELS[name])
    assert parse_kernel(print_kernel(kernel)) == kernel
    arguments = scalars | {buffer.name: argument(buffer, seed) for seed, buffer in enumerate(kernel.buffers)}
    assert_same_results(kernel, run_passes(kernel, ["explicit_edges", "fold", "cse", "dce"]), arguments)
