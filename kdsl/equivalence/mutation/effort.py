"""What a mutant is run on: verify's default effort, and ten times that."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kdsl.equivalence.inputs import SCHEDULE, Kind, draw_for
from kdsl.equivalence.poisons import POISONS
from kdsl.equivalence.trials import draw_trials
from kdsl.equivalence.verify import ORACLE_EXAMPLES
from kdsl.interpreter.grid import Order
from kdsl.interpreter.memory import Poison
from kdsl.ir.kernel import Kernel, bind
from kdsl.lang.kernel import Kernel as KernelFunction
from kdsl.runtime.description import in_words
from kdsl.runtime.examples import Binding

THOROUGH = 10  # times the default effort
_ORDERS: tuple[Order, ...] = ("forward", "reverse")


@dataclass(frozen=True)
class Example:
    """One run: a kernel's variant and sizes, the inputs, and what takes turns on the thorough effort."""

    place: int
    trial: Binding
    kind: Kind
    seed: int

    @property
    def variant(self) -> Hashable:
        return variant(self.trial)

    @cached_property
    def original(self) -> Kernel:
        """The kernel as it should be, bound."""
        return self.bind(self.trial.kernel)

    def bind(self, kernel: Kernel) -> Kernel:
        """Another kernel at the sizes and tile sizes of this example."""
        return bind(kernel, self.trial.sizes, self.trial.tiles)

    def arguments(self) -> dict[str, Any]:
        """The inputs, drawn anew: they are too large to keep them all."""
        return draw_for(self.trial, self.trial.tiles, self.kind, (self.seed, self.place))

    @property
    def poison(self) -> Poison:
        return tuple(POISONS.values())[self.place // 8 % len(POISONS)]

    @property
    def order(self) -> Order:
        return _ORDERS[self.place // 3 % len(_ORDERS)]

    @property
    def elements(self) -> int:
        """Of all tensors: what a run costs, roughly."""
        return sum(math.prod(int(size.evaluate({})) for size in buffer.shape) for buffer in self.original.buffers)

    def __str__(self) -> str:
        return f"{in_words(self.trial)}, {self.kind} inputs"


def variant(trial: Binding) -> Hashable:
    """What tells the IR of one trial from that of another: dtypes and constants."""
    return tuple(sorted((name, str(value)) for name, value in trial.bindings.items()))


@dataclass(frozen=True)
class Effort:
    """The examples of the default effort and those of the thorough one, each from the cheapest to the dearest."""

    default: tuple[Example, ...]
    thorough: tuple[Example, ...]

    @property
    def variants(self) -> dict[Hashable, Kernel]:
        """The unbound kernels of all examples."""
        return {example.variant: example.trial.kernel for example in sorted(self.thorough, key=lambda each: each.place)}


def effort_of(kernel: KernelFunction, seed: int, count: int = ORACLE_EXAMPLES) -> Effort:
    """What `kdsl verify` runs a kernel on by default, and ten times as much. Raises as `draw_trials` does."""
    return Effort(*(examples(draw_trials(kernel, many, seed), seed) for many in (count, THOROUGH * count)))


def examples(trials: Sequence[Binding], seed: int) -> tuple[Example, ...]:
    """The trials with the inputs that verify would draw for them, the cheapest first."""
    # As in verify: examples and dtypes take turns with a period of 4, and each meets each kind.
    kinds = [SCHEDULE[place % len(SCHEDULE)] for place in range(len(trials))]
    made = [Example(place, trial, kind, seed) for place, (trial, kind) in enumerate(zip(trials, kinds, strict=True))]
    return tuple(sorted(made, key=lambda example: example.elements))
