"""Whether the hard bounds hold: implementations that are as wrong as a target's table allows must stay within them.

    python -m bench.soundness [--runs N] [--seed S]

A run is one kernel on one set of inputs, computed by `kdsl.equivalence.perturbation`: every op off by its allowance,
sums and combines in a random order. Kernels: those of kdsl.kernels at small sizes, and the rows below, one for each
rule with a formula of its own. Inputs are standard normal, or drawn from few values, so that comparisons nearly tie.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import kdsl
from kdsl.equivalence.bounds import error_bounds
from kdsl.equivalence.compare import Comparison, compare, merge
from kdsl.equivalence.inputs import draw_inputs
from kdsl.equivalence.perturbation import perturbed_run
from kdsl.ir.kernel import Kernel, bind
from kdsl.ir.text import parse_kernel
from kdsl.kernels.attention import attention
from kdsl.kernels.layernorm import layernorm
from kdsl.kernels.matmul import matmul
from kdsl.kernels.softmax import softmax
from kdsl.lang.kernel import Example
from kdsl.lang.kernel import Kernel as KernelFunction
from kdsl.runtime.examples import Binding, bind_example
from kdsl.runtime.target import AccuracyTable, find_target, target_names

RUNS_ON_ONE_INPUT = 20

READY_MADE: tuple[tuple[KernelFunction, dict[str, Any]], ...] = (
    (softmax, {"M": 5, "N": 37}),
    (layernorm, {"M": 5, "N": 37, "epsilon": 1e-5}),
    (matmul, {"M": 5, "N": 6, "K": 37, "BM": 4, "BN": 4, "BK": 16, "activation": "gelu"}),
    (matmul, {"M": 5, "N": 6, "K": 37, "BM": 4, "BN": 4, "BK": 16, "activation": "silu"}),
    (attention, {"B": 1, "H": 1, "L": 9, "S": 9, "D": 5, "scale": 0.4, "causal": True, "BL": 4, "BS": 4}),
)

HEAD = """kernel rows(x: in f32[N], w: in f32[N], y: inout f32[N], t: inout f32[], i: inout i32[N]) {
  size N
  axis n < 32 where n < N
  axis k < 4
  axis p < 2
  axis q < 2
  %x: f32[n] = load x[n]
  %w: f32[n] = load w[n]
  %e: f32[n] = exp %x
  %p: f32[n] = mul %x, %w
"""

WELFORD = """
  %one: f32 = constant {value = 1.0}
  %zero: f32 = constant {value = 0.0}
  %c0: f32[n] = broadcast %one {axes = [n]}
  %s0: f32[n] = broadcast %zero {axes = [n]}
  %count: f32, %mean: f32, %square: f32 = reduce_by %c0, %p, %s0 {axis = n} (
      %c1: f32[n], %m1: f32[n], %q1: f32[n], %c2: f32[n], %m2: f32[n], %q2: f32[n]) {
    %c3: f32[n] = add %c1, %c2
    %d: f32[n] = sub %m2, %m1
    %r: f32[n] = div %c2, %c3
    %dr: f32[n] = mul %d, %r
    %m3: f32[n] = add %m1, %dr
    %q3: f32[n] = add %q1, %q2
    %cr: f32[n] = mul %c1, %dr
    %dd: f32[n] = mul %cr, %d
    %q4: f32[n] = add %q3, %dd
    yield %c3, %m3, %q4
  }
  %variance: f32 = div %square, %count
  %scale: f32 = rsqrt %variance
  %centred: f32[n] = sub %p, %mean
  %y: f32[n] = mul %centred, %scale
  store y[n] = %y
  store t[] = %square
"""
RECURRENCE = """
  %a: f32[n], %y: f32[n] = scan_by %w, %e {axis = n} (%a1: f32[n], %b1: f32[n], %a2: f32[n], %b2: f32[n]) {
    %a3: f32[n] = mul %a1, %a2
    %c: f32[n] = mul %b1, %a2
    %b3: f32[n] = add %c, %b2
    yield %a3, %b3
  }
  store y[n] = %y
"""
ONLINE_SOFTMAX = """
  %one: f32 = constant {value = 1.0}
  %s0: f32[n] = broadcast %one {axes = [n]}
  %top: f32, %sum: f32 = reduce_by %p, %s0 {axis = n} (%m1: f32[n], %s1: f32[n], %m2: f32[n], %s2: f32[n]) {
    %m3: f32[n] = maximum %m1, %m2
    %d1: f32[n] = sub %m1, %m3
    %d2: f32[n] = sub %m2, %m3
    %f1: f32[n] = exp %d1
    %f2: f32[n] = exp %d2
    %g1: f32[n] = mul %s1, %f1
    %g2: f32[n] = mul %s2, %f2
    %s3: f32[n] = add %g1, %g2
    yield %m3, %s3
  }
  store t[] = %sum
"""
ATOMIC = """
  %place: i32[n] = index {form = n}
  %three: i32 = constant {value = 3}
  %bin: i32[n] = floormod %place, %three
  atomic %e, %bin {buffer = y, combine = add}
  %s: f32 = reduce %p {axis = n, combine = maximum}
  atomic %s {buffer = t, combine = maximum}
"""
ORDERS = """
  %key: f32[n], %with: f32[n] = sort %p, %x {axis = n}
  store y[n] = %with
  %best: f32[k], %lane: i32[k] = topk %p {axis = n, target = k}
  store i[k] = %lane
  %sum: f32 = reduce %key {axis = n, combine = add}
  store t[] = %sum
"""
SCANS = """
  %s: f32[n] = scan %p {axis = n, combine = add, reverse = true}
  %m: f32[n] = scan %e {axis = n, combine = maximum}
  %y: f32[n] = div %s, %m
  store y[n] = %y
  %first: i32 = reduce %y {axis = n, combine = argmax}
  %zero: i32 = constant {value = 0}
  store_at %first, %zero {buffer = i}
"""
BRANCHES = """
  %s: f32 = reduce %p {axis = n, combine = add}
  %zero: f32 = constant {value = 0.0}
  %c: bool = gt %s, %zero
  %y: f32 = if %c () {
    %l: f32 = abs %s
    %r: f32 = sqrt %l
    yield %r
  } () {
    %r2: f32 = exp %s
    yield %r2
  }
  store t[] = %y
  %above: bool[n] = gt %p, %zero
  %left: f32[n] = tanh %p
  %right: f32[n] = mul %p, %w
  %z: f32[n] = select %above, %left, %right
  store y[n] = %z
"""
WHILE = """
  %limit: f32 = constant {value = 100.0}
  %s: f32 = reduce %e {axis = n, combine = add}
  %y: f32 = while %s (%a: f32) {
    %c: bool = lt %a, %limit
    yield %c
  } (%b: f32) {
    %half: f32 = constant {value = 1.375}
    %d: f32 = mul %b, %half
    yield %d
  }
  store t[] = %y
"""
CASTS = """
  %b: bf16[n] = cast %p
  %h: f16[n] = cast %e
  %hw: f32[n] = cast %h
  %bw: f32[n] = cast %b
  %y: f32[n] = mul %bw, %hw
  store y[n] = %y
  %floor: f32[n] = floor %p
  %i: i32[n] = cast %floor
  store i[n] = %i
"""
FUNCTIONS = """
  %a: f32[n] = sigmoid %p
  %b: f32[n] = erf %p
  %c: f32[n] = cos %e
  %l: f32[n] = log %e
  %ab: f32[n] = fma %a, %b, %c
  %d: f32[n] = pow %e, %w
  %f: f32[n] = atan2 %ab, %l
  %g: f32[n] = div %f, %d
  %j: f32[n] = log1p %e
  %y: f32[n] = add %g, %j
  store y[n] = %y
"""
ROWS = {
    "welford": WELFORD,
    "recurrence": RECURRENCE,
    "online softmax": ONLINE_SOFTMAX,
    "atomic": ATOMIC,
    "orders": ORDERS,
    "scans": SCANS,
    "branches": BRANCHES,
    "while": WHILE,
    "casts": CASTS,
    "functions": FUNCTIONS,
}


@dataclass(frozen=True)
class Case:
    """A bound kernel, and arguments that are given rather than drawn."""

    name: str
    kernel: Kernel
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """How many runs there were, how much of the bounds they used, and the share of elements that was undecided.

    `failures` names each case that left the bounds, and where; it holds if there is none.
    """

    runs: int
    used: float
    undecided: float
    outside: float  # the share of elements outside the expected bound: these runs are wrong on purpose
    by_case: Mapping[str, Comparison]
    failures: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.failures

    def __str__(self) -> str:
        lines = [
            f"{name:<22} {found.error_used:8.3f} of the bound, {found.undecided_fraction:6.1%} undecided"
            for name, found in sorted(self.by_case.items())
        ]
        verdict = f"soundness: {self.runs - len(self.failures)} of {self.runs} runs within the hard bounds"
        return "\n".join([*lines, *self.failures, verdict])


def soundness(count: int, seed: int) -> Summary:
    """Perturb `count` runs. Equal seeds give equal runs."""
    tables = {name: find_target(name).accuracy for name in target_names()}
    found: dict[str, Comparison] = {}
    failures, runs, turn = [], 0, 0
    every = list(cases())
    while runs < count:
        case, table = every[turn % len(every)], list(tables)[turn // len(every) % len(tables)]
        for run, comparison in enumerate(
            perturbed(case, tables[table], (seed, turn), min(RUNS_ON_ONE_INPUT, count - runs))
        ):
            found[case.name] = merge([found.get(case.name, Comparison()), comparison])
            if comparison.worst is not None:
                failures.append(f"{case.name} on {table} (seed {seed}, inputs {turn}, run {run}): {comparison.worst}")
            runs += 1
        turn += 1
    total = merge(found.values())
    return Summary(runs, total.error_used, total.undecided_fraction, total.outside_fraction, found, tuple(failures))


def perturbed(case: Case, table: AccuracyTable, seed: tuple[int, int], count: int) -> Iterator[Comparison]:
    """Compare `count` implementations that keep to a table with the oracle, on one set of inputs."""
    arguments = {**draw_inputs(case.kernel, "generic", seed), **case.fixed}
    generator = np.random.default_rng([*seed, 1])
    if generator.random() < 0.5:  # few values, so that there are near ties
        steps = np.array([-1.1, -0.3, 0.3, 0.7, 1.1])
        arguments |= {
            name: generator.choice(steps, array.shape).astype(array.dtype)
            for name, array in arguments.items()
            if np.ndim(array) and name in ("x", "w")
        }
    bounded = error_bounds(case.kernel, arguments, table)
    for _ in range(count):
        number = int(generator.integers(2**31))
        yield compare(
            perturbed_run(case.kernel, arguments, table, number), bounded.values, bounded.bounds, bounded.expected
        )


def cases() -> Iterator[Case]:
    """All kernels, bound."""
    for kernel, values in READY_MADE:
        for dtype in (kdsl.f32, kdsl.bf16):
            example: Binding = bind_example(kernel, Example({**values, "T": dtype}))
            bound = bind(example.kernel, example.sizes, example.tiles)
            yield Case(f"{bound.name} {values.get('activation', '')} {dtype.__name__}", bound, example.scalars)
    zeros = {"y": np.zeros(29, np.float32), "t": np.zeros((), np.float32), "i": np.zeros(29, np.int32)}
    for name, ops in ROWS.items():
        yield Case(name, bind(parse_kernel(HEAD + ops + "}"), {"N": 29}), zeros)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Whether the hard bounds hold.")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    summary = soundness(chosen.runs, chosen.seed)
    print(summary)
    sys.exit(0 if summary.holds else 1)
