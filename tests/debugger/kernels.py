"""Kernels to step through, each line of which does something a reader can follow."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import kdsl
from kdsl import InOut, Out, Scalar, Tensor, Tile, TileValue, f32, i32


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class K(kdsl.Dim): ...


@kdsl.inline
def half(x: TileValue, y: int) -> TileValue:
    z = x * 0.5
    return z + y


@kdsl.kernel
@kdsl.example(M=5, N=7, K=6, scale=2.0)
def product(
    a: Tensor[M, K, f32],
    b: Tensor[K, N, f32],
    c: Out[M, N, f32],
    scale: Scalar[f32],
    *,
    BM: Tile = 4,
    BN: Tile = 4,
    BK: Tile = 4,
) -> None:
    for m, n in kdsl.grid(M.tiles(BM), N.tiles(BN)):
        total = kdsl.zeros((m, n), f32)
        for k in K.tiles(BK):
            part = kdsl.dot(a[m, k], b[k, n])
            total += part
        same = total
        total = half(same, 1) + half(
            same * scale,
            2,
        )
        c[m, n] = total


@kdsl.kernel
@kdsl.example(N=8)
def halvings(x: Tensor[N, i32], y: Out[N, i32]) -> None:
    for n in kdsl.grid(N):
        left, steps = x[n], 0
        while left > 1:
            left = left // 2
            steps = steps + 1
        if steps > 1:
            breakpoint()
            steps = -steps
        y[n] = steps


@kdsl.kernel
@kdsl.example(N=6, inputs={"total": 0})
def places(x: Tensor[N, i32], total: InOut[Literal[1], i32], y: InOut[N, i32]) -> None:
    for n in kdsl.grid(N):
        before = total.atomic_add(0, value=x[n])
        y[before] = 10 + x[n]


@kdsl.kernel
@kdsl.example(N=6)
def careless(x: Tensor[N, f32], y: Out[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        left = x.load(n.index - 1)
        root = kdsl.sqrt(x[n] - 1)
        y[n] = root
        y[n] = left


@kdsl.kernel
@kdsl.example(N=6)
def unrolled(x: Tensor[N, f32], y: Out[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        powers = [x[n]]
        for _ in range(2):
            powers = [*powers, powers[-1] * x[n]]
        y[n] = powers[1] + powers[2]


@kdsl.inline
def larger(left: TileValue, right: TileValue) -> TileValue:
    return kdsl.maximum(left, right)


@kdsl.kernel
@kdsl.example(M=4, N=6)
def peaks(x: Tensor[M, N, f32], y: Out[M, f32], *, B: Tile = 2) -> None:
    for m in kdsl.grid(M.tiles(B)):
        best = kdsl.reduce(x[m, :], over=N, combine=larger)
        y[m] = best


def line(text: str) -> int:
    """The number of the line above that has the text; there has to be one such line."""
    (found,) = (at for at, written in enumerate(Path(__file__).read_text().splitlines(), 1) if text in written)
    return found
