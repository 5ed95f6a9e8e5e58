"""What a debugger stops at is nothing to a target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kdsl.ir.kernel import Kernel, Op, Region, walk
from kdsl.ir.verify import verify
from kdsl.kernels.attention import attention
from kdsl.kernels.matmul import matmul
from kdsl.lang.kernel import Kernel as KernelFunction
from kdsl.passes import run_passes
from kdsl.runtime.examples import default_example
from kdsl.runtime.target import target_names, targets


def with_breakpoints(kernel: Kernel) -> Kernel:
    """The kernel with a breakpoint before each op, those in loops included."""

    def region(old: Region) -> Region:
        ops: list[Op] = []
        for op in old.ops:
            ops += [Op("breakpoint", location=op.location), replace(op, regions=tuple(map(region, op.regions)))]
        return replace(old, ops=tuple(ops))

    return verify(replace(kernel, body=region(kernel.body)))


@pytest.mark.parametrize("kernel", [matmul, attention], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("name", target_names())
def test_the_source_is_the_same_with_breakpoints(name: str, kernel: KernelFunction) -> None:
    example, target = default_example(kernel), targets()[name]
    stopping = with_breakpoints(example.kernel)
    assert sum(op.name == "breakpoint" for op in walk(stopping.body)) > 10
    texts = [target.emit(each, example.tiles, example.sizes).text for each in (example.kernel, stopping)]
    assert texts[0] == texts[1]
    assert run_passes(stopping, ["drop_breakpoints"]) == example.kernel
