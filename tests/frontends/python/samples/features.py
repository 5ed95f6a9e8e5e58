"""A kernel for each feature of the language: type checked and linted as a user's file, and run by test_language.py."""

from __future__ import annotations

from math import inf
from typing import Literal

import kdsl
from kdsl import Const, InOut, Out, Scalar, Tensor, Tile, TileValue, f32, i32


class B(kdsl.Dim): ...


class CI(kdsl.Dim): ...


class CO(kdsl.Dim): ...


class L(kdsl.Dim): ...


class K(kdsl.Dim): ...


class P(kdsl.Dim): ...


class S(kdsl.Dim): ...


class LO(kdsl.Dim, size=(L + 2 * P - K) // S + 1): ...


class HALF(kdsl.Dim, size=LO // 2): ...


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class D(kdsl.Dim): ...


class T(kdsl.DType): ...


@kdsl.kernel
@kdsl.example(B=2, CI=5, CO=6, L=17, K=3, P=1, S=2, T=kdsl.f32, stride=2, pad=1)
def conv1d(
    x: Tensor[B, CI, L, T],
    w: Tensor[CO, CI, K, T],
    bias: Tensor[CO, T],
    y: Out[B, CO, LO, T],
    *,
    stride: Const[int] = 1,
    pad: Const[int] = 0,
    BC: Tile = 4,
    BO: Tile = 4,
    BL: Tile = 8,
) -> None:
    """y[b, o, l] = bias[o] + sum over c and t of w[o, c, t] * x[b, c, stride * l + t - pad], zero outside x."""
    kdsl.require(stride == S)
    kdsl.require(pad == P)
    kdsl.require(L + 2 * P >= K)
    for b, o, l in kdsl.grid(B, CO.tiles(BO), LO.tiles(BL)):
        acc = kdsl.zeros((o, l), f32)
        for t in K:
            for c in CI.tiles(BC):
                acc += kdsl.dot(w[o, c, t], x.load(b, c, stride * l + t - pad, fill=0), over=c)
        y[b, o, l] = acc + bias[o]


@kdsl.kernel
@kdsl.example(L=9, P=0, S=1, K=2, T=kdsl.f32)
def every_other(x: Tensor[L, T], w: Tensor[K, T], y: Out[HALF, T], *, BH: Tile = 2) -> None:
    """y[h] = x[2 * h] * w[0] for the half of a computed dimension."""
    for h in kdsl.grid(HALF.tiles(BH)):
        y[h] = x.load(2 * h, fill=0) * w[0]


@kdsl.kernel
@kdsl.example(M=7, D=4, T=kdsl.f32)
def self_attention(x: Tensor[M, D, T], y: Out[M, M, f32], *, BM: Tile = 4) -> None:
    """y[i, j] = x[i] . x[j] where j <= i, else -inf: two tiles over one dimension."""
    for i, j in kdsl.grid(M.tiles(BM), M.tiles(BM)):
        scores = kdsl.dot(x[i, :], x[j, :], over=D)
        y[i, j] = kdsl.where(j.index <= i.index, scores, -inf)


@kdsl.kernel
@kdsl.example(M=7, N=5, T=kdsl.f32, scale=0.5)
def operators(
    x: Tensor[M, N, T],
    pairs: Tensor[M, Literal[2], T],
    first: Tensor[M, N, T],
    y: Out[M, N, T],
    scale: Scalar[f32],
    *,
    mode: Const[Literal["half", "full"]] = "half",
    shift: Const[float] = 1.0,
    BM: Tile = 4,
    BN: Tile = 4,
) -> None:
    """y from x by every operator, with Python numbers, scalars, sizes and indices on both sides."""
    kdsl.require(N % 1 == 0)
    kdsl.require(M >= 1)
    for m, n in kdsl.grid(M.tiles(BM), N.tiles(BN)):
        value = x[m, n]
        value = 0.5 * value + value * 0.5
        value = 1.0 - value
        value = (value - shift) * -1.0
        value = value / N * N + (N - 1) * 0.0 * value
        value = value * scale / scale
        value += pairs[m, 0] * pairs[m, 1]
        inside = (n.index >= 0) & (m.index < M) | (n.index == n.start) & ~(m.index != m.index)
        value = kdsl.where(inside, value, 2.0 * N)
        value += first[0, n] * 0.0 + (m.stop - m.start) * 0.0 + n.size * 0.0 + (n.index % 2 + (1 << n.index % 3)) * 0.0
        if mode == "half" and shift > 0:
            value = 0.5 * value
        y[m, n] = value


@kdsl.kernel
@kdsl.example(M=7, N=5, T=kdsl.f32)
def update(x: Tensor[M, N, T], y: InOut[M, T], *, BM: Tile = 4, BN: Tile = 4) -> None:
    """y[m] += sum over n of x[m, n], a tile at a time through memory; then doubled."""
    for m in kdsl.grid(M.tiles(BM)):
        for n in N.tiles(BN):
            y[m] += kdsl.sum(x[m, n], over=n)
        y[m] = 2 * y[m]


@kdsl.inline
def normalise(x: TileValue, total: TileValue, mode: str) -> TileValue:
    """x / total or x, decided when the kernel is compiled."""
    if mode == "sum":
        return x / total
    return x


@kdsl.inline
def normalised_row(x: TileValue, mode: str = "sum") -> TileValue:
    """x over its sum along N."""
    return normalise(x, kdsl.sum(x, over=N), mode)


@kdsl.kernel
@kdsl.example(M=7, N=5, T=kdsl.f32)
def statistics(
    x: Tensor[M, N, T],
    y: Out[M, N, T],
    best: Out[M, i32],
    total: Out[f32],
    counts: Out[M, i32],
    *,
    BM: Tile = 4,
    BN: Tile = 4,
) -> None:
    """Rows over their sums; the place of each row's largest; the sum of all; how many are positive."""
    taps = [(shift, 1.0 if shift == 0 else 0.0) for shift in range(3)]
    for _ in kdsl.grid(M.tiles(1, stop=1)):
        everything: TileValue | float = 0
        for m in M.tiles(BM):
            row = x[m, :]
            y[m, :] = normalised_row(row)
            everything += kdsl.sum(row, over=(m, N))
            count: TileValue | float = 0  # a Python number takes the dtype that the loop gives it
            peak: TileValue | float = -inf
            place: TileValue | float = 0
            for n in N.tiles(BN):
                tile = x[m, n] * 0
                for shift, weight in taps:
                    tile += weight * x.load(m, n.index + shift, fill=0)
                count += kdsl.sum(tile > 0, over=n)
                here = kdsl.max(tile, over=n)
                place = kdsl.where(here > peak, kdsl.argmax(tile, over=n), place)
                peak = kdsl.maximum(peak, here)
            best[m] = place
            counts[m] = count
        total[()] = everything
