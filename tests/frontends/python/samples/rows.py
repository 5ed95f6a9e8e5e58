"""Kernels that scan, sort and combine along rows: type checked as a user's file, run by test_rows.py."""

from __future__ import annotations

from typing import TypeAlias

import kdsl
from kdsl import Const, Out, Scalar, Tensor, Tile, TileValue, f32, i32, u32


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class K(kdsl.Dim): ...


class T(kdsl.DType): ...


Pair: TypeAlias = tuple[TileValue, TileValue]
Triple: TypeAlias = tuple[TileValue, TileValue, TileValue]


@kdsl.kernel
@kdsl.example(M=5, N=9, K=3, T=kdsl.f32)
def top_k(x: Tensor[M, N, T], values: Out[M, K, T], places: Out[M, K, i32], *, BM: Tile = 4) -> None:
    """The K largest numbers of each row, largest first, and where they are."""
    kdsl.require(K <= N)
    for m in kdsl.grid(M.tiles(BM)):
        values[m, :], places[m, :] = kdsl.topk(x[m, :], K, over=N)


@kdsl.kernel
@kdsl.example(M=3, N=11, T=kdsl.f32)
def cumsum(x: Tensor[M, N, T], y: Out[M, N, T], *, BN: Tile = 4) -> None:
    """Running sums of each row, a tile at a time."""
    for m in kdsl.grid(M):
        before = kdsl.zeros((), f32)
        for n in N.tiles(BN):
            tile = x[m, n].to(f32)
            y[m, n] = kdsl.cumsum(tile, over=n) + before
            before += kdsl.sum(tile, over=n)


@kdsl.inline
def then(first: Pair, second: Pair) -> Pair:
    """The map h -> a * h + b of `first`, then that of `second`."""
    return first[0] * second[0], first[1] * second[0] + second[1]


@kdsl.kernel
@kdsl.example(M=3, N=11)
def recurrence(a: Tensor[M, N, f32], b: Tensor[M, N, f32], h: Out[M, N, f32], *, BM: Tile = 2, BN: Tile = 4) -> None:
    """h[n] = a[n] * h[n - 1] + b[n] in each row, from zero."""
    for m in kdsl.grid(M.tiles(BM)):
        state = kdsl.zeros((m,), f32)
        for n in N.tiles(BN):
            factor, offset = kdsl.associative_scan((a[m, n], b[m, n]), over=n, combine=then)
            h[m, n] = factor * state + offset
            product, rest = kdsl.reduce((a[m, n], b[m, n]), over=n, combine=then)
            state = product * state + rest


@kdsl.inline
def welford(first: Triple, second: Triple) -> Triple:
    """Count, mean and sum of squared deviations of two sets together (Chan, Golub and LeVeque, 1979)."""
    count, mean, squares = first
    more, other, rest = second
    total, difference = count + more, other - mean
    return (
        total,
        mean + difference * more / total,
        squares + rest + difference**2 * count * more / total,
    )


@kdsl.kernel
@kdsl.example(M=5, N=13, T=kdsl.f32, epsilon=1e-5)
def welford_layernorm(x: Tensor[M, N, T], y: Out[M, N, T], epsilon: Scalar[f32], *, BM: Tile = 4) -> None:
    """(x - mean) / sqrt(variance + epsilon) of each row, the moments combined as Welford does."""
    for m in kdsl.grid(M.tiles(BM)):
        row = x[m, :].to(f32)
        ones, zeros = kdsl.full((m, N), 1, f32), kdsl.zeros((m, N), f32)
        count, mean, squares = kdsl.reduce((ones, row, zeros), over=N, combine=welford)
        y[m, :] = (row - mean) * kdsl.rsqrt(squares / count + epsilon)


@kdsl.kernel
@kdsl.example(M=5, N=9, T=kdsl.f32)
def sort_rows(
    x: Tensor[M, N, T],
    ordered: Out[M, N, T],
    order: Out[M, N, i32],
    backwards: Out[M, N, T],
    *,
    descending: Const[bool] = False,
    BM: Tile = 4,
) -> None:
    """Each row in order, the places that its elements come from, and the order in reverse."""
    for m in kdsl.grid(M.tiles(BM)):
        row = kdsl.sort(x[m, :], over=N, descending=descending)
        ordered[m, :] = row
        order[m, :] = kdsl.argsort(x[m, :], over=N, descending=descending)
        backwards[m, :] = kdsl.flip(row, over=N)


@kdsl.kernel
@kdsl.example(M=5, N=9, T=kdsl.f32)
def arg_extremes(x: Tensor[M, N, T], largest: Out[M, i32], smallest: Out[M, i32], *, BM: Tile = 4) -> None:
    """Where the largest and the smallest number of each row are."""
    for m in kdsl.grid(M.tiles(BM)):
        largest[m], smallest[m] = kdsl.argmax(x[m, :], over=N), kdsl.argmin(x[m, :], over=N)


@kdsl.kernel
@kdsl.example(N=19, seed=3)
def random_words(
    bits: Out[N, u32], fractions: Out[N, f32], gaussian: Out[N, f32], seed: Scalar[i32], *, BN: Tile = 8
) -> None:
    """The first word, the uniform and the normal number of each place."""
    for n in kdsl.grid(N.tiles(BN)):
        bits[n] = kdsl.random_bits(seed, n.index)[0]
        fractions[n] = kdsl.uniform(seed, n.index)
        gaussian[n] = kdsl.normal(seed, n.index)
