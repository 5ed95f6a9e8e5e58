"""The language outside a kernel: everything that means something only inside one says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import kdsl
from kdsl import Index, OutsideKernelError, Tensor, TileValue, f32
from kdsl.lang.dims import Integer, Tiles, as_expr


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class P(kdsl.Dim, size=(M - N) // 2 + 1): ...


class Q(kdsl.Dim, size=2 * P): ...


tile, index = TileValue(), Index()

OUTSIDE: dict[str, Callable[[], object]] = {
    "kdsl.exp": lambda: kdsl.exp(1.0),
    "kdsl.sum": lambda: kdsl.sum(tile, over=M),
    "kdsl.dot": lambda: kdsl.dot(tile, tile),
    "kdsl.zeros": lambda: kdsl.zeros((M,), f32),
    "kdsl.require": lambda: kdsl.require(True),
    "kdsl.clamp": lambda: kdsl.clamp(tile, 0, 1),
    "kdsl.reduce": lambda: kdsl.reduce(tile, over=M, combine=kdsl.maximum),
    "kdsl.topk": lambda: kdsl.topk(tile, N, over=M),
    "kdsl.uniform": lambda: kdsl.uniform(1, tile),
    "kdsl.range": lambda: list(kdsl.range(0, M)),
    "kdsl.check": lambda: kdsl.check(tile, "message"),
    "kdsl.grid": lambda: list(kdsl.grid(M)),
    "N.tiles": lambda: list(N.tiles(4)),
    "a loop over N": lambda: [point for point in N],
    "a loop over tiles": lambda: list(Tiles()),
    "arithmetic on tiles": lambda: 1.0 - tile,
    "a comparison of tiles": lambda: tile == tile,
    "arithmetic on a size and 0.5": lambda: M * 0.5,
    "a comparison of sizes": lambda: M < 4,
    "a division of sizes that is not `//`": lambda: M / 2,
    "an index variable": lambda: index.start,
    "a cast": lambda: tile.to(f32),
    "a tensor access": lambda: Tensor[M, f32]()[index],
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_it_says_that_it_belongs_inside_a_kernel(what: str) -> None:
    with pytest.raises(OutsideKernelError) as caught:
        OUTSIDE[what]()
    assert str(caught.value).startswith(f"{what} has a meaning only inside a function decorated with @kdsl.kernel")
    assert "call the kernel with arrays" in str(caught.value)


def test_sizes_are_integers_of_dimensions() -> None:
    assert [str(as_expr(size)) for size in (M, M + 1, 2 * M - N, -M, 7 % M, P, Q)] == [
        "M", "M + 1", "2*M - N", "-M", "mod(7, M)", "floordiv(M - N, 2) + 1", "2*floordiv(M - N, 2) + 2",
    ]  # fmt: skip
    assert isinstance(M + N, Integer) and repr(M + N) == "M + N"


@pytest.mark.parametrize("size", [True, 1.5, "M", None])
def test_what_is_no_size_is_refused(size: object) -> None:
    with pytest.raises(TypeError, match="is no size"):
        as_expr(size)


def test_dimensions_are_classes_and_compare_as_such() -> None:
    assert M == M and M != N and len({M, N, M}) == 2
