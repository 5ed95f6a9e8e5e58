"""From a kernel and one of its examples to a session."""

from __future__ import annotations

from collections.abc import Mapping

from kdsl.debugger.running import read_place
from kdsl.debugger.session import Session
from kdsl.equivalence.inputs import Kind, draw_for
from kdsl.frontends.python import elaborate
from kdsl.ir.kernel import bind, size_values
from kdsl.lang.kernel import Example, Kernel
from kdsl.runtime.examples import bind_example


def start(
    kernel: Kernel,
    example: Example,
    tiles: Mapping[str, int],
    inputs: Kind = "exact",
    seed: tuple[int, ...] = (0, 0),
    program: str = "",
) -> Session:
    """A session on an example of a kernel, other tile sizes in place of its own; `program` is as `3,0`.

    Raises KdslError: what binding and drawing raise (K0407, K0410, K05xx), and K0901, K0905 where the grid has no such
    program.
    """
    binding = bind_example(kernel, example)
    traced = elaborate(kernel, binding.bindings, statements=True)
    chosen = {tile.name: tile.default for tile in traced.tiles} | {**binding.tiles, **tiles}
    bound = bind(traced, binding.sizes, chosen)
    arguments = draw_for(binding, chosen, inputs, seed)
    place = read_place(bound, program) if program else ()
    return Session(bound, arguments, {**size_values(traced, binding.sizes), **chosen}, place)
