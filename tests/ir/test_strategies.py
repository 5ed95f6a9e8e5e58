from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from kdsl.ir.kernel import walk
from kdsl.ir.ops import OPS
from tests.ir.strategies import Case, kernels


def test_every_op_of_the_table_occurs_in_random_kernels() -> None:
    seen: set[str] = set()

    @settings(max_examples=250, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(kernels())
    def draw(case: Case) -> None:
        seen.update(op.name for op in walk(case.kernel.body))

    draw()
    assert seen == set(OPS)
