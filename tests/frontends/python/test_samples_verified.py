"""Every kernel of the samples is verified on every target, or refused by the code that is expected."""

from __future__ import annotations

import pytest

from kdsl.equivalence.verdict import Outcome
from kdsl.equivalence.verify import verify
from tests.frontends.python.test_samples import KERNELS

REFUSED = {
    "gpu": {
        "features:conv1d": "K0304",  # a dot of 4 channels
        "places:histogram": "K0303",  # 5 bins
        "rows:top_k": "K0303",  # 3 of a row
        "rows:sort_rows": "K0303",  # a flip of a ragged row
    },
    "tpu": {
        **dict.fromkeys(("conv1d", "every_other", "operators", "update", "statistics"), "K0308"),
        **dict.fromkeys(("embedding", "embedding_gradient", "histogram", "pack", "claim"), "K0308"),
        **dict.fromkeys(("causal_conv", "cross_entropy", "paged_attention", "varlen_attention"), "K0308"),
        **dict.fromkeys(("grouped_matmul", "split_k", "persistent_softmax", "search", "head"), "K0308"),
        "int4_matmul": "K0302",
    },
    "cpu": {},
}
# What the order of the programs decides.
UNDECIDED = {"places:pack", "places:claim"}


def outcome(name: str, target: str) -> tuple[Outcome, str | None]:
    codes = REFUSED.get(target, {})
    code = codes.get(name, codes.get(name.partition(":")[2]))
    if code is not None:
        return Outcome.REFUSED, code
    return (Outcome.UNDECIDED if name in UNDECIDED else Outcome.VERIFIED), None


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_a_sample_is_verified_or_refused(name: str) -> None:
    rows = verify(KERNELS[name], source=name, targets=["gpu", "tpu", "cpu"], examples=2)
    got = {row.target: (row.verdict, row.code) for row in rows}
    assert got == {target: outcome(name, target) for target in ("numpy", "gpu", "tpu", "cpu")}, [
        row.message for row in rows
    ]
