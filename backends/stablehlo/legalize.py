"""What this target can say: nearly everything, so legalisation is making edges explicit and cleaning up."""

from __future__ import annotations

from kdsl.diagnostics import fail
from kdsl.ir.kernel import Kernel, walk
from kdsl.ir.ops import is_pointwise
from kdsl.passes import run_passes

from .body import PRINTERS

PASSES = ("explicit_edges", "fold", "cse", "dce")

# Names that the emitted module itself uses: an argument of that name would hide what is meant.
MODULE_NAMES = frozenset(("jax", "jnp", "functools", "cdiv", "next_power_of_2", "check", "pad", "program", "programs"))


def legalize(kernel: Kernel) -> Kernel:
    """The kernel with explicit edges.

    Raises KdslError K0301 for an op that has no line in this target, and a name that the emitted module needs itself.
    """
    for op in walk(kernel.body):
        if not is_pointwise(op) and op.name not in PRINTERS and op.name != "yield":
            raise fail(
                "K0301", op.location, target="cpu", problem=f"the op {op.name}", instead="rewrite it with others"
            )
    names = [parameter.name for parameter in kernel.parameters] + [size.name for size in kernel.sizes] + [kernel.name]
    for name in sorted(MODULE_NAMES & set(names)):
        problem = f"{name} is what the emitted module calls a function of its own"
        raise fail("K0301", kernel.location, target="cpu", problem=problem, instead=f"rename {name}")
    return run_passes(kernel, PASSES)
