"""The oracle: a bound kernel evaluated with NumPy, as the op table says. Every claim kdsl makes is measured by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from kdsl.analysis.parallel import is_parallel
from kdsl.interpreter import batched, stepped
from kdsl.interpreter.grid import Order
from kdsl.interpreter.memory import Poison, worst
from kdsl.ir.kernel import Kernel
from kdsl.ir.meaning import Array

__all__ = ["Mode", "mode_of", "run"]

Mode = Literal["batched", "stepped"]


def run(
    kernel: Kernel,
    arguments: Mapping[str, Any],
    poison: Poison = worst,
    order: Order = "forward",
    mode: Mode = "batched",
) -> dict[str, Array]:
    """Run a bound kernel and return its written buffers by name, in argument order.

    `arguments` gives arrays (dtypes and shapes as the kernel says) and numbers by parameter name; output buffers may be
    left out and then start as poison. Nothing given is changed. `order` "reverse" runs the programs backwards, which
    changes nothing where they are independent of each other. `mode` "batched" evaluates many programs at once if
    `mode_of` says so; the bits are those of "stepped", one program at a time.

    Raises KdslError: K0505 an argument is missing or has the wrong shape or dtype, K0601 an access out of bounds.
    """
    chosen = mode_of(kernel) if mode == "batched" else mode
    evaluate = batched.run if chosen == "batched" else stepped.run
    return evaluate(kernel, arguments, poison, order)


def mode_of(kernel: Kernel) -> Mode:
    """How `run` evaluates a bound kernel: "batched" where its grid is seen to be parallel, else "stepped"."""
    return "batched" if is_parallel(kernel) else "stepped"
