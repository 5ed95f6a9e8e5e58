"""Every kernel of the samples and of the package, over each of its axes: batched with equal results, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.diagnostics import KdslError
from kdsl.interpreter import run
from kdsl.ir.kernel import Kernel, bind, walk
from kdsl.passes import run_passes
from tests.frontends.python.test_samples import KERNELS, argument, bound_example
from tests.passes.batched_kernels import ready_made
from tests.passes.checking import bits

SIZES = {
    "attention": {"B": 2, "H": 2, "L": 19, "S": 19, "D": 8},
    "layernorm": {"M": 19, "N": 21},
    "matmul": {"M": 19, "N": 21, "K": 18},
    "softmax": {"M": 19, "N": 21},
    "vector_add": {"N": 50},
}
CASES = [*KERNELS, *SIZES, "causal attention"]
# Why each refusal is one. All other axes of all kernels are batched.
REFUSED = {
    ("features:conv1d", "t"): "does not only gather",  # the loop inside goes on with the sum
    ("features:update", "n_block"): "meet at element 0",
    ("features:statistics", "n_block"): "does not only gather",
    ("places:pack", "n_block"): "depends on the order of the programs",
    ("places:claim", "n"): "depends on the order of the programs",
    ("ragged:paged_attention", "j"): "does not only gather",
    ("ragged:paged_attention", "n_block"): "does not only gather",
    ("ragged:varlen_attention", "b"): "not proven from the index forms",  # sequences might overlap
    ("ragged:varlen_attention", "n_block"): "does not only gather",
    ("ragged:grouped_matmul", "e"): "not proven from the index forms",
    ("rows:cumsum", "n_block"): "does not only gather",
    ("rows:recurrence", "n_block"): "does not only gather",
    ("attention", "n_block"): "does not only gather",
    ("causal attention", "n_block"): "does not only gather",
}


def case(name: str) -> tuple[Kernel, dict[str, Any]]:
    """A bound kernel, and arguments for it."""
    if name in KERNELS:
        kernel, arguments = bound_example(KERNELS[name])
    else:
        base = name.removeprefix("causal ")
        unbound = ready_made(base, 1 if name == "attention" else 0)
        kernel = bind(unbound, SIZES[base], {tile.name: 4 for tile in unbound.tiles})
        arguments = {"scale": 0.5, "epsilon": 1e-5}
    arguments = {parameter.name: arguments.get(parameter.name) for parameter in kernel.parameters}
    return kernel, arguments | {buffer.name: argument(buffer, seed) for seed, buffer in enumerate(kernel.buffers)}


def check(name: str, factor: int) -> None:
    kernel, arguments = case(name)
    expected = run(kernel, arguments)
    for axis in kernel.axes:
        if axis.kind == "tile":
            continue
        reason = REFUSED.get((name, axis.name))
        if reason is not None:
            with pytest.raises(KdslError, match=reason) as refusal:
                run_passes(kernel, [f"batch({axis.name}, {factor})"])
            assert refusal.value.code == "K0801"
            assert refusal.value.location is not None
            continue
        got = run(run_passes(kernel, [f"batch({axis.name}, {factor})"]), arguments)
        for buffer, array in expected.items():
            # BLAS may sum a longer matrix in another order; where sums are exact, test_batch.py asks for the bits.
            if axis.kind == "program" and not any(op.name == "dot" for op in walk(kernel.body)):
                assert bits(got[buffer]) == bits(array), (axis.name, buffer)
            else:
                wide = (each.astype(np.float64) for each in (got[buffer], array))
                np.testing.assert_allclose(*wide, rtol=1e-5, atol=1e-5, err_msg=f"{axis.name}: {buffer}")


@pytest.mark.parametrize("name", CASES)
def test_each_axis_is_batched_by_three_or_refused_with_its_reason(name: str) -> None:
    check(name, 3)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2, 5])
@pytest.mark.parametrize("name", CASES)
def test_each_axis_is_batched_by_others_or_refused_with_its_reason(name: str, factor: int) -> None:
    check(name, factor)
