"""Properties that a kernel has on the oracle, whatever it computes.

tile sizes       no choice changes the result beyond rounding
program order    the programs of a grid may run in any order: the same bits, or within rounding where they add in memory
poison           what lies beyond the edges, and in outputs before they are written, is never used: the same bits
passes           a pass preserves the result: the same bits; one that adds lanes to a sum, within rounding
algebra          each pass, whatever order of sums it leaves, preserves the meaning over a finite field
rows             where rows are seen to be independent, permuted ones give permuted results, within rounding
IR text          printing and parsing gives an equal kernel
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from kdsl.diagnostics import KdslError
from kdsl.equivalence.algebra import check_passes, small_case
from kdsl.equivalence.bounds import Bounded, hard_bounds
from kdsl.equivalence.compare import Comparison, compare, identical, merge
from kdsl.equivalence.poisons import POISONS
from kdsl.equivalence.rows import find_rows
from kdsl.interpreter import run
from kdsl.interpreter.accuracy import ACCURACY
from kdsl.interpreter.grid import Order
from kdsl.ir.kernel import Kernel, bind, walk
from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.passes import PASSES, run_passes
from kdsl.runtime.examples import Binding

# In the order in which targets run them. Each gives the bits that it was given; all other passes may not.
EXACT_PASSES = ("drop_breakpoints", "explicit_edges", "fold", "cse", "dce")
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
    used = [
        _check_order_and_poison(bound, arguments, reference, seed),
        _check_tiles(example, arguments, reference, seed),
        _check_passes(example, arguments, reference),
        _check_rows(bound, arguments, reference, seed),
    ]
    return merge(used)


def check_bits(example: Binding, arguments: Mapping[str, Any], seed: int) -> None:
    """Check those properties of one example that need no error bounds, for inputs that these say nothing of.

    Raises Violation, and KdslError if the oracle does not run.
    """
    bound = bind(example.kernel, example.sizes, example.tiles)
    values = run(bound, arguments)
    reference = Bounded(values, {name: np.full(array.shape, np.inf) for name, array in values.items()})
    _check_order_and_poison(bound, arguments, reference, seed)
    _check_exact_passes(_after_passes(example, arguments), reference)


def _check_order_and_poison(bound: Kernel, arguments: Mapping[str, Any], reference: Bounded, seed: int) -> Comparison:
    """Both at once, because together they cost half; the culprit is looked for when they fail."""
    name = list(POISONS)[1 + seed % (len(POISONS) - 1)]
    freedom = freedom_of_order(bound)
    order: Order = "forward" if freedom == "any" else "reverse"
    difference = identical(run(bound, arguments, POISONS[name], order), reference.values).worst
    if difference is None:
        return Comparison()
    alone = run(bound, arguments, order=order)
    if identical(alone, reference.values).worst is not None:
        claim = "the result depends on the order of the programs"
        if freedom == "rounding":
            used = _within_rounding(claim, alone, reference)
            difference = identical(run(bound, arguments, POISONS[name], order), alone).worst
            if difference is None:
                return used
        else:
            raise Violation(claim, f"backwards, {identical(alone, reference.values).worst}")
    claim = "the result depends on what lies beyond an edge, or in an output before it is written"
    raise Violation(claim, f"with {name} there instead of NaN, {difference}")


def freedom_of_order(kernel: Kernel) -> Literal["none", "rounding", "any"]:
    """How the order of its programs may show in a result: not at all; in rounding, where they add up floats in memory;
    or in any way, where what an atomic found goes into it, as with a place that each program takes in turn."""
    atomics = [op for op in walk(kernel.body) if op.name in ("atomic", "atomic_cas")]
    if any(op.results or op.name == "atomic_cas" or op.attributes["combine"] == "exchange" for op in atomics):
        return "any"
    added = any(kernel.buffer(op.attributes["buffer"]).dtype.is_float for op in atomics)
    return "rounding" if added else "none"


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
    result = _after_passes(example, arguments)
    _check_exact_passes(result, reference)
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


def _check_rows(kernel: Kernel, arguments: Mapping[str, Any], reference: Bounded, seed: int) -> Comparison:
    """Of the rows that a kernel has, those whose turn it is are permuted: in other blocks they may round otherwise."""
    found = find_rows(kernel)
    if not found:
        return Comparison()
    rows = found[seed % len(found)]
    order = np.random.default_rng([seed, 0x905]).permutation(rows.count)

    def permuted(arrays: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: np.take(array, order, axis=rows.dimensions[name]) if name in rows.dimensions else array
            for name, array in arrays.items()
        }

    expected = Bounded(permuted(reference.values), permuted(reference.bounds))
    return _within_rounding("permuted rows do not give permuted rows", run(kernel, permuted(arguments)), expected)


Result = Callable[[tuple[str, ...]], dict[str, Any]]


def _after_passes(example: Binding, arguments: Mapping[str, Any]) -> Result:
    return lambda names: run(bind(run_passes(example.kernel, names), example.sizes, example.tiles), arguments)


def _check_exact_passes(result: Result, reference: Bounded) -> None:
    if identical(result(EXACT_PASSES), reference.values).worst is not None:
        _blame(result, reference)


def _blame(result: Result, reference: Bounded) -> None:
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
