"""What this target can say: nearly everything, so legalisation is making edges explicit and cleaning up."""

from __future__ import annotations

from kdsl.diagnostics import fail
from kdsl.ir.dtypes import F64
from kdsl.ir.kernel import Kernel, walk
from kdsl.ir.ops import is_pointwise
from kdsl.passes import run_passes

from .body import PRINTERS

PASSES = ("explicit_edges", "fold", "cse", "dce")

REPORTS = {
    "assert": "check it on the oracle (target numpy), or store the condition to an output",
    "print": "print on the oracle (target numpy), or store the values to an output",
}

# Names that the emitted module itself uses: an argument of that name would hide what is meant.
MODULE_NAMES = frozenset(("jax", "jnp", "functools", "cdiv", "next_power_of_2", "check", "pad", "program", "programs"))


def legalize(kernel: Kernel) -> Kernel:
    """The kernel with explicit edges.

    Raises KdslError: K0301 for an op that has no line in this target, and a name that the emitted module needs itself;
    K0302 for a dtype that an op has no exact form in.
    """
    kernel = run_passes(kernel, ["drop_breakpoints"])
    for op in walk(kernel.body):
        if op.name in REPORTS:
            problem = f"{op.name}, as a StableHLO module cannot call its host"
            raise fail("K0301", op.location, target="cpu", problem=problem, instead=REPORTS[op.name])
        if not is_pointwise(op) and op.name not in PRINTERS and op.name != "yield":
            raise fail(
                "K0301", op.location, target="cpu", problem=f"the op {op.name}", instead="rewrite it with others"
            )
        if op.name == "let" and kernel.tile_axes(op.operands[0]):
            problem = f"the integer {op.attributes['integer']}, which varies over the lanes of a tile"
            instead = "name one for each program, or access memory at computed places"
            raise fail("K0301", op.location, target="cpu", problem=problem, instead=instead)
        if op.name == "cast" and op.attributes:
            problem = f"a cast with {', '.join(op.attributes)}: XLA rounds to nearest, and overflows as the dtype does"
            raise fail("K0301", op.location, target="cpu", problem=problem, instead="cast without it, after a clamp")
        if op.name == "fma" and op.result.dtype == F64:
            raise fail("K0302", op.location, target="cpu", dtype="f64", what="fma: no wider type holds the product")
    names = [parameter.name for parameter in kernel.parameters] + [size.name for size in kernel.sizes] + [kernel.name]
    for name in sorted(MODULE_NAMES & set(names)):
        problem = f"{name} is what the emitted module calls a function of its own"
        raise fail("K0301", kernel.location, target="cpu", problem=problem, instead=f"rename {name}")
    return run_passes(kernel, PASSES)
