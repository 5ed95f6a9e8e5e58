"""Rows that do not depend on each other are found, and rows that do are not."""

from __future__ import annotations

import pytest

import kdsl
from kdsl import Out, Tensor, Tile, f32
from kdsl.equivalence.inputs import draw_for
from kdsl.equivalence.properties import Violation, check_properties
from kdsl.equivalence.rows import Rows, find_rows
from kdsl.ir.kernel import bind
from kdsl.runtime.examples import default_example
from tests.equivalence.examples import SMALL, extremes
from tests.frontends.python.samples import features, places, ragged


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


def rows_of(kernel: kdsl.Kernel) -> list[Rows]:
    example = default_example(kernel)
    return find_rows(bind(example.kernel, example.sizes, example.tiles))


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (SMALL["softmax"], [{"x": 0, "y": 0}]),
        (extremes, [{"x": 0, "low": 0, "high": 0}]),
        (SMALL["matmul"], [{"a": 0, "c": 0}, {"b": 1, "bias": 0, "c": 1}]),
        (places.embedding, [{"ids": 0, "out": 0}]),
        (ragged.persistent_softmax, []),  # a loop that programs share
        (features.self_attention, []),  # each row meets each other one
        (places.dropout, []),  # the place of an element goes into its number
        (ragged.varlen_attention, [{"q": 1, "k": 1, "v": 1, "out": 1}]),  # heads; tokens are told apart by limits
        (places.embedding_gradient, []),
    ],
)
def test_rows_are_those_that_nothing_but_their_own_index_tells_apart(
    kernel: kdsl.Kernel, expected: list[dict[str, int]]
) -> None:
    assert [dict(rows.dimensions) for rows in rows_of(kernel)] == expected


def test_heads_are_rows_and_causal_queries_are_not() -> None:
    dimensions = [dict(rows.dimensions) for rows in rows_of(SMALL["attention"])]
    assert dimensions == [dict.fromkeys(("q", "k", "v", "out"), place) for place in (0, 1)]


@kdsl.kernel
@kdsl.example(M=9, N=5)
def summed(x: Tensor[M, N, f32], y: Out[M, f32], *, B: Tile = 4) -> None:
    for m in kdsl.grid(M.tiles(B)):
        y[m] = kdsl.sum(x[m, :], over=N)


def test_results_that_do_not_follow_their_rows_are_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong claim about rows, planted: that the columns of a row sum are rows."""
    example = default_example(summed)
    arguments = draw_for(example, {}, "generic", (0,))
    check_properties(example, arguments, 0)
    wrong = [Rows({"y": 0}, 9)]
    monkeypatch.setattr("kdsl.equivalence.properties.find_rows", lambda kernel: wrong)
    with pytest.raises(Violation, match="permuted rows do not give permuted rows"):
        check_properties(example, arguments, 0)
