"""What is known when a kernel is compiled is plain Python: constants, branches, unrolled loops, helpers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

import kdsl
from kdsl import Const, Out, Tensor, TileValue, f32
from kdsl.diagnostics import KdslError
from kdsl.ir.kernel import walk


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class T(kdsl.DType): ...


@dataclass(frozen=True)
class Settings:
    """An object of the author's, known when the kernel is compiled."""

    taps: tuple[float, ...] = (0.25, 0.5, 0.25)
    name: str = "smooth"


SETTINGS = Settings()
TABLE = {"double": 2.0, "half": 0.5}


@kdsl.inline
def inner(x: TileValue, mode: str) -> TileValue:
    if mode == "square":
        return x * x
    elif mode in TABLE:
        return TABLE[mode] * x
    return x


@kdsl.inline
def outer(x: TileValue, *, mode: str = "square", bias: TileValue | None = None) -> TileValue:
    total = inner(x, mode)
    for n in N.tiles(4):
        total += kdsl.sum(n.index, over=n) * 0
    if bias is not None:
        total = total + bias
    return total


@kdsl.kernel
def staged(
    x: Tensor[M, N, T],
    y: Out[M, N, T],
    *,
    mode: Const[str] = "square",
    count: Const[int] = 2,
    smooth: Const[bool] = False,
    kind: Const[Literal["add", "keep"]] = "keep",
    factor: Const[float] = 1,
) -> None:
    names = [f"step{i}" for i in range(count)]
    weights = dict(zip(names, [2**i for i in range(count)], strict=True))
    for m, n in kdsl.grid(M.tiles(4), N.tiles(4)):
        value = x[m, n]
        tiles = [value, *[value * weights[name] for name in names if name]]
        value = tiles[0]
        for number, tile in enumerate(tiles[1:]):
            value = value + tile if number % 2 == 0 else value - tile
        if smooth and SETTINGS.name == "smooth":
            total = 0.0 * value
            for shift, tap in enumerate(SETTINGS.taps):
                total += tap * x.load(m, n.index + (shift - 1), fill=0)
            value = total
        value = outer(value, mode=mode) if kind == "keep" else outer(value, mode=mode, bias=x[m, n])
        y[m, n] = value * factor


def expected(x: np.ndarray, *, mode: Callable[[np.ndarray], np.ndarray] = np.square, count: int = 2) -> np.ndarray:
    total = x.astype(np.float64)
    for number in range(count):
        total = total + 2**number * x if number % 2 == 0 else total - 2**number * x
    return mode(total)


X = np.random.default_rng(0).standard_normal((6, 7)).astype(np.float32)


def test_constants_choose_what_is_traced() -> None:
    np.testing.assert_allclose(staged(X), expected(X), rtol=1e-5)
    np.testing.assert_allclose(staged(X, mode="half", count=3), expected(X, mode=lambda x: x / 2, count=3), rtol=1e-5)
    np.testing.assert_allclose(staged(X, mode="", kind="add"), expected(X, mode=lambda x: x + X), rtol=1e-5)
    np.testing.assert_allclose(staged(X, mode="", factor=np.float32(0.5), count=np.int64(0)), X / 2, rtol=1e-5)


def test_unrolled_taps_read_beyond_the_edge_as_zero() -> None:
    padded = np.pad(X.astype(np.float64), ((0, 0), (1, 1)))
    smooth = 0.25 * padded[:, :-2] + 0.5 * padded[:, 1:-1] + 0.25 * padded[:, 2:]
    np.testing.assert_allclose(staged(X, mode="", smooth=True), smooth, rtol=1e-5, atol=1e-6)


def test_a_branch_not_taken_leaves_nothing() -> None:
    ops = [op.name for op in walk(staged.elaborate(T=f32, smooth=False).body)]
    assert ops.count("load") == 1 and "select" not in ops


@pytest.mark.parametrize(
    "wrong", [{"mode": 3}, {"count": 0.5}, {"smooth": 1}, {"kind": "subtract"}, {"factor": "1"}, {"count": True}]
)
def test_a_constant_of_another_type_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(KdslError, match="K0115"):
        staged(X, **wrong)


@kdsl.inline
def leaves_early(x: TileValue) -> TileValue:
    for n in N:
        return x + n
    return x


@kdsl.kernel
def calls_it(x: Tensor[M, N, T], y: Out[M, N, T]) -> None:
    for m in kdsl.grid(M):
        y[m, :] = leaves_early(x[m, :])


def test_a_return_in_a_loop_is_refused_in_the_helper() -> None:
    with pytest.raises(KdslError, match=r"K0103.*`return` in a loop") as caught:
        calls_it.elaborate(T=f32)
    assert caught.value.location is not None
    assert caught.value.location.line == leaves_early.__code__.co_firstlineno + 3


def test_helpers_run_as_plain_python_too() -> None:
    assert inner(3, "square") == 9  # type: ignore[arg-type]  # on a plain number


@kdsl.inline
def doubled(x: TileValue) -> TileValue:
    y = x
    return y + x


@kdsl.kernel
def several_names(x: Tensor[N, f32], y: Out[N, f32]) -> None:
    for n in kdsl.grid(N.tiles(4)):
        first = second = x[n] + 1
        parts = [first * 2, second * 3]
        last = parts[1]
        y[n] = last + parts[1] + doubled(parts[0] + 1) + second


def test_a_tile_may_have_several_names() -> None:
    x = np.arange(6, dtype=np.float32)
    assert several_names(x).tolist() == [6 * (v + 1) + 2 * (2 * (v + 1) + 1) + v + 1 for v in x]
