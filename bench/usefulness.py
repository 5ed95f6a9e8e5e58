"""How tight the expected bounds are: for each ready-made kernel and target, against the largest error observed.

    python -m bench.usefulness [--seed S]

Aim: in the median over all rows, the expected bound is at most 100 times the largest error, with contractions of up to
1024 terms. Both are taken over all elements of an output: the largest bound, and the largest difference of the target's
result from the oracle's or from that of f64 arithmetic, for a stand-in that calls the same library as the oracle may
agree with it by chance.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import kdsl
from kdsl.equivalence.bounds import error_bounds
from kdsl.equivalence.inputs import draw_inputs
from kdsl.equivalence.perturbation import perturbed_run
from kdsl.ir.kernel import bind
from kdsl.kernels.attention import attention
from kdsl.kernels.layernorm import layernorm
from kdsl.kernels.matmul import matmul
from kdsl.kernels.softmax import softmax
from kdsl.kernels.vector_add import vector_add
from kdsl.lang.kernel import Example
from kdsl.lang.kernel import Kernel as KernelFunction
from kdsl.runtime.description import in_words
from kdsl.runtime.examples import bind_example
from kdsl.runtime.target import Source, find_target, target_names

LARGEST_RATIO = 100.0

# Contractions: over K, over N, over S and D.
CASES: tuple[tuple[KernelFunction, dict[str, Any]], ...] = (
    (vector_add, {"N": 1000}),
    *((softmax, {"M": 64, "N": size}) for size in (100, 1024)),
    *((layernorm, {"M": 64, "N": size, "epsilon": 1e-5}) for size in (100, 1024)),
    *((matmul, {"M": 64, "N": 64, "K": size, "activation": "none"}) for size in (32, 256, 1024)),
    (matmul, {"M": 64, "N": 64, "K": 1024, "activation": "gelu"}),
    *((attention, {"B": 1, "H": 1, "L": 64, "S": size, "D": 64, "scale": 0.125}) for size in (64, 1024)),
)


@dataclass(frozen=True)
class Row:
    """One output of a kernel on one target. `ratio` is None where nothing differed: the bound then says nothing."""

    kernel: str
    size: str
    target: str
    observed: float
    expected: float
    hard: float
    outside: float  # the share of elements outside the expected bound

    @property
    def ratio(self) -> float | None:
        return self.expected / self.observed if self.observed else None

    def __str__(self) -> str:
        ratio = "-" if self.ratio is None else f"{self.ratio:.1f}"
        figures = f"{self.observed:9.2e} {self.expected:9.2e} {self.hard:9.2e} {ratio:>8}"
        return f"{self.kernel:<11} {self.size:<75} {self.target:<5} {figures}"


def usefulness(seed: int, dtypes: tuple[Any, ...] = (kdsl.f32,)) -> list[Row]:
    """Run all cases on all targets. Equal seeds give equal inputs."""
    return [row for kernel, values in CASES for dtype in dtypes for row in _rows(kernel, {**values, "T": dtype}, seed)]


def median_ratio(rows: list[Row]) -> float:
    """The median over the rows in which something differed."""
    return statistics.median(row.ratio for row in rows if row.ratio is not None)


def table(rows: list[Row]) -> str:
    """All rows and the median, as text."""
    head = f"{'kernel':<11} {'size':<75} {'':<5} {'observed':>9} {'expected':>9} {'hard':>9} {'ratio':>8}"
    return "\n".join(
        [head, *map(str, rows), f"usefulness: median ratio {median_ratio(rows):.1f}, at most {LARGEST_RATIO:g}"]
    )


def _rows(kernel: KernelFunction, values: dict[str, Any], seed: int) -> Iterator[Row]:
    example = bind_example(kernel, Example(values))
    for name in target_names():
        target = find_target(name)
        source: Source = target.emit(example.kernel, example.tiles, example.sizes)
        bound = bind(example.kernel, example.sizes, source.tiles)
        arguments = draw_inputs(bound, "generic", (seed,), example.scalars)
        bounded = error_bounds(bound, arguments, target.accuracy)
        given = {key: np.array(value) if np.ndim(value) else value for key, value in arguments.items()}
        exact = perturbed_run(bound, arguments, {}, 0, share=0.0)
        written = target.run(source, example.sizes, given)
        for output, wide in bounded.values.items():
            got = written[output].astype(np.float64)
            error = np.maximum(np.abs(got - wide.astype(np.float64)), np.abs(got - exact[output].astype(np.float64)))
            expected, hard = bounded.expected[output], bounded.bounds[output]
            decided = np.isfinite(hard)
            observed, largest, worst = (float(array[decided].max(initial=0.0)) for array in (error, expected, hard))
            outside = float(np.mean((error > expected) & decided))
            yield Row(bound.name, in_words(example), name, observed, largest, worst, outside)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    found = usefulness(parser.parse_args().seed)
    print(table(found))
    sys.exit(0 if median_ratio(found) <= LARGEST_RATIO else 1)
