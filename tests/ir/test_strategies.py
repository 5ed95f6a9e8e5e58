"""The strategy that other tests rely on: it must reach every op of the table."""

from __future__ import annotations

from hypothesis import HealthCheck, given, seed, settings

from kdsl.ir.kernel import walk
from kdsl.ir.ops import OPS
from tests.ir.strategies import Case, kernels

BATCHES = 8  # each reaches nearly all; an op of a rare kind may need a second


def test_every_op_of_the_table_occurs_in_random_kernels() -> None:
    seen: set[str] = set()
    for batch in range(BATCHES):

        @seed(batch)
        @settings(max_examples=150, database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(kernels())
        def draw(case: Case) -> None:
            seen.update(op.name for op in walk(case.kernel.body))

        draw()
        if seen == set(OPS):
            return
    assert seen == set(OPS)
