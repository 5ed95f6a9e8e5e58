"""Properties that a kernel has on the oracle, whatever it computes.

tile sizes       no choice changes the result beyond rounding
program order    the programs of a grid may run in any order: the same bits
poison           what lies beyond the edges, and in outputs before they are written, is never used: the same bits
passes           a pass preserves the result: the same bits; one that adds lanes to a sum, within rounding
algebra          each pass, whatever order of sums it leaves, preserves the meaning over a finite field
IR text          printing and parsing gives an equal kernel
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kdsl.diagnostics import KdslError
from kdsl.equivalence.algebra import check_passes, small_case
from kdsl.equivalence.bounds import Bounded, hard_bounds
from kdsl.equivalence.compare import Comparison, compare, identical, merge
from kdsl.equivalence.poisons import POISONS
from kdsl.interpreter import run
from kdsl.interpreter.accuracy import ACCURACY
from kdsl.ir.kernel import Kernel, bind
from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.passes import PASSES, run_passes
from kdsl.runtime.examples import Binding

# In the order in which targets run them. Each gives the bits that it was given; all other passes may not.
EXACT_PASSES = ("explicit_edges", "fold", "cse", "dce")
REFUSED_BY_A_PASS = ("K0303",)
TILE_CHOICES = 2
# One tile size shrinks (three quarters are no power of two) and the others may grow: all smaller would take too long.
_SHRINK, _GROW = (0.5, 0.75), (1.0, 2.0)


class Violation(Exception):
    """A claim that does not hold, and where it shows."""

    def __init__(self, claim: str, shown: str) -> None:
        super().__init__(f"{claim}: {shown}")


def check_text(kernel: Kernel) -> None:
    """Raises Violation if the kernel's text does not parse to the kernel."""
    if parse_kernel(print_kernel(kernel)) != kernel:
        raise Violation("the IR text does not parse back to the kernel", kernel.name)


def check_algebra(example: Binding, seed: int) -> tuple[str, ...]:
    """The passes that preserve the meaning of the example's kernel over a finite field, at small sizes.

    Those that refuse the kernel, or that the field does not decide, are left out. Raises Violation for one that changes
    the meaning.
    """
    case = small_case(example.kernel, example.sizes)
    answers = check_passes(example.kernel, *case, draws=1, seed=seed) if case is not None else {}
    for name, answer in answers.items():
        if answer.verdict == "different":
            raise Violation(f"the pass {name} changes the meaning over a finite field", answer.reason)
    decided = (name.split("(")[0] for name, answer in answers.items() if answer.verdict == "equal")
    return tuple(dict.fromkeys(name for name in decided if "," not in name))


def check_properties(example: Binding, arguments: Mapping[str, Any], seed: int) -> Comparison:
    """Check all properties of one example; gives how much of the bounds other tile sizes and passes used.

    Raises Violation, and KdslError if the oracle does not run.
    """
    bound = bind(example.kernel, example.sizes, example.tiles)
    reference = hard_bounds(bound, arguments, ACCURACY, same_casts=False)
    _check_order_and_poison(bound, arguments, reference, seed)
    used = [_check_tiles(example, arguments, reference, seed), _check_passes(example, arguments, reference)]
    return merge(used)


def _check_order_and_poison(bound: Kernel, arguments: Mapping[str, Any], reference: Bounded, seed: int) -> None:
    """Both at once, because together they cost half; the culprit is looked for when they fail."""
    name = list(POISONS)[1 + seed % (len(POISONS) - 1)]
    difference = identical(run(bound, arguments, POISONS[name], "reverse"), reference.values).worst
    if difference is None:
        return
    alone = identical(run(bound, arguments, order="reverse"), reference.values).worst
    if alone is not None:
        raise Violation("the result depends on the order of the programs", f"backwards, {alone}")
    claim = "the result depends on what lies beyond an edge, or in an output before it is written"
    raise Violation(claim, f"with {name} there instead of NaN, {difference}")


def _check_tiles(example: Binding, arguments: Mapping[str, Any], reference: Bounded, seed: int) -> Comparison:
    generator = np.random.default_rng([seed, 0x711E])
    defaults = {tile.name: tile.default for tile in example.kernel.tiles} | dict(example.tiles)
    used = []
    for _ in range(TILE_CHOICES if defaults else 0):
        tiles = {name: int(size * generator.choice(_GROW)) for name, size in defaults.items()}
        shrunk = generator.choice(list(defaults))
        tiles[shrunk] = max(1, int(defaults[shrunk] * generator.choice(_SHRINK)))
        used.append(_check_other_tiles(bind(example.kernel, example.sizes, tiles), arguments, reference, tiles))
    return merge(used)


def _check_other_tiles(
    other: Kernel, arguments: Mapping[str, Any], reference: Bounded, tiles: Mapping[str, int]
) -> Comparison:
    claim = f"the result depends on tile sizes ({_listed(tiles)})"
    try:
        return _within_rounding(claim, run(other, arguments), reference)
    except Violation:
        # Other tiles may round where these do not, as one tile that covers all does not: then their bound counts, too.
        own = hard_bounds(other, arguments, ACCURACY, same_casts=False)
        both = {name: bound + own.bounds[name] for name, bound in reference.bounds.items()}
        comparison = compare(own.values, reference.values, both)
        if comparison.worst is not None:
            raise Violation(claim, str(comparison.worst)) from None
        return comparison


def _check_passes(example: Binding, arguments: Mapping[str, Any], reference: Bounded) -> Comparison:
    def result(names: tuple[str, ...]) -> dict[str, Any]:
        return run(bind(run_passes(example.kernel, names), example.sizes, example.tiles), arguments)

    if identical(result(EXACT_PASSES), reference.values).worst is not None:
        _blame(result, reference)
    used = []
    for name in (name for name in PASSES if name not in EXACT_PASSES):
        try:
            values = result((name,))
        except KdslError as error:
            if error.code not in REFUSED_BY_A_PASS:
                raise
            continue  # a limit of some targets, which the oracle does not share
        used.append(_within_rounding(f"the pass {name} changes the result", values, reference))
    return merge(used)


def _blame(result: Callable[[tuple[str, ...]], dict[str, Any]], reference: Bounded) -> None:
    for count in range(1, len(EXACT_PASSES) + 1):
        difference = identical(result(EXACT_PASSES[:count]), reference.values).worst
        if difference is not None:
            raise Violation(f"the pass {EXACT_PASSES[count - 1]} changes the result", str(difference))


def _within_rounding(claim: str, values: Mapping[str, Any], reference: Bounded) -> Comparison:
    """Compare under twice the bound, for the other order of summation has other partial sums."""
    doubled = {name: 2 * bound for name, bound in reference.bounds.items()}
    comparison = compare(values, reference.values, doubled)
    if comparison.worst is not None:
        raise Violation(claim, str(comparison.worst))
    return comparison


def _listed(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
