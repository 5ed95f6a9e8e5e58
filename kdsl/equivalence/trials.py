"""What a kernel is judged on: its author's examples first, then drawn ones, with other sizes and float types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kdsl.diagnostics import KdslError
from kdsl.equivalence.sizes import draw_sizes
from kdsl.frontends.python import scalar_annotations
from kdsl.lang import dtypes
from kdsl.lang.kernel import Example, Kernel
from kdsl.runtime.examples import Binding, bind_example, bound_examples

FLOATS = (dtypes.f32, dtypes.bf16)
_ALL_FLOATS = (dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.f64)


def draw_trials(kernel: Kernel, count: int, seed: int, authors: int | None = None) -> list[Binding]:
    """`count` bound examples: the first `authors` (default: all) of the author's, then drawn ones, whose constants,
    scalars and tile sizes are those of the author's examples in turn.

    A float dtype variable is drawn from f32 and bf16, unless the kernel does not elaborate for those, or a scalar has
    it: whoever calls with a number of that type has chosen it, and not every target passes such numbers. Raises
    KdslError K0406 where there is no example, and what elaboration raises.
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


def variants(kernel: Kernel) -> list[Binding]:
    """The author's examples, each in the float types that are tried. Raises as `draw_trials` does."""
    given = bound_examples(kernel)
    others = [
        _variant(kernel, example, bound, turn)
        for example, bound in zip(kernel.examples, given, strict=True)
        for turn in range(len(FLOATS))
    ]
    return [*given, *(other for other in others if other not in given)]


def _variant(kernel: Kernel, example: Example, bound: Binding, turn: int) -> Binding:
    """The example with its float dtype variables set to the float types whose turn it is."""
    fixed = {dtype.__name__ for dtype in scalar_annotations(kernel).values()}
    variables = [name for name, value in example.values.items() if value in _ALL_FLOATS and name not in fixed]
    values: Mapping[str, Any] = {name: FLOATS[(turn + place) % len(FLOATS)] for place, name in enumerate(variables)}
    try:
        return bind_example(kernel, Example({**example.values, **values}, example.inputs))
    except KdslError:
        return bound  # written for the author's types alone
