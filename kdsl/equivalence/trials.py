"""What a kernel is judged on: its author's examples first, then drawn ones, with other sizes and float types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kdsl.diagnostics import KdslError
from kdsl.equivalence.sizes import draw_sizes
from kdsl.lang import dtypes
from kdsl.lang.kernel import Example, Kernel
from kdsl.runtime.examples import Binding, bind_example, bound_examples

FLOATS = (dtypes.f32, dtypes.bf16)
_ALL_FLOATS = (dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.f64)


def draw_trials(kernel: Kernel, count: int, seed: int, authors: int | None = None) -> list[Binding]:
    """`count` bound examples: the first `authors` (default: all) of the author's, then drawn ones, whose constants,
    scalars and tile sizes are those of the author's examples in turn.

    A float dtype variable is drawn from f32 and bf16, unless the kernel does not elaborate for those. Raises KdslError
    K0406 where there is no example, and what elaboration raises.
    """
    given = bound_examples(kernel)
    trials = given[:authors][:count]
    sizes = draw_sizes([bound.kernel for bound in given], given[0].sizes, seed, count - len(trials))
    variants: dict[tuple[int, int], Binding] = {}
    for place, chosen in enumerate(sizes):
        base = place % len(given)
        turn = (place // len(given) + base) % len(FLOATS)
        if (base, turn) not in variants:
            variants[base, turn] = _variant(kernel, kernel.examples[base], given[base], turn)
        trials.append(replace(variants[base, turn], sizes=chosen))
    return trials


def _variant(kernel: Kernel, example: Example, bound: Binding, turn: int) -> Binding:
    """The example with its float dtype variables set to the float types whose turn it is."""
    variables = [name for name, value in example.values.items() if value in _ALL_FLOATS]
    values: Mapping[str, Any] = {name: FLOATS[(turn + place) % len(FLOATS)] for place, name in enumerate(variables)}
    try:
        return bind_example(kernel, Example({**example.values, **values}))
    except KdslError:
        return bound  # written for the author's types alone
