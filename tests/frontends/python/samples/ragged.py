"""Kernels whose loops and places are known only when they run: type checked as a user's file, run by test_ragged.py."""

from __future__ import annotations

from math import inf

import kdsl
from kdsl import InOut, Out, Scalar, Tensor, Tile, TileValue, f32, i32


class B(kdsl.Dim): ...


class LIMITS(kdsl.Dim): ...


class SEQUENCES(kdsl.Dim, size=LIMITS - 1): ...


class H(kdsl.Dim): ...


class D(kdsl.Dim): ...


class J(kdsl.Dim): ...


class PAGES(kdsl.Dim): ...


class PAGE(kdsl.Dim): ...


class TOKENS(kdsl.Dim): ...


class E(kdsl.Dim): ...


class E1(kdsl.Dim, size=E + 1): ...


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class K(kdsl.Dim): ...


class P(kdsl.Dim): ...


class S(kdsl.Dim): ...


class ONE(kdsl.Dim, size=1): ...


class T(kdsl.DType): ...


@kdsl.kernel
@kdsl.example(B=2, H=2, D=8, J=3, PAGES=7, PAGE=4, T=kdsl.f32, scale=0.5)
def paged_attention(
    q: Tensor[B, H, D, T],
    k: Tensor[PAGES, PAGE, H, D, T],
    v: Tensor[PAGES, PAGE, H, D, T],
    table: Tensor[B, J, i32],
    lengths: Tensor[B, i32],
    out: Out[B, H, D, T],
    scale: Scalar[f32],
    *,
    BN: Tile = 2,
) -> None:
    """One new query for each sequence, over keys and values in pages that `table` lists."""
    for b, h in kdsl.grid(B, H):
        length = lengths[b]
        row_max, row_sum = kdsl.full((), -inf, f32), kdsl.zeros((), f32)
        acc = kdsl.zeros((D,), f32)
        for j in kdsl.range(0, (length + PAGE - 1) // PAGE):
            page = table[b, j]
            for n in PAGE.tiles(BN):
                s = kdsl.dot(q[b, h, :], k[page, n, h, :], over=D) * scale
                s = kdsl.where(j * PAGE + n.index < length, s, -inf)
                new_max = kdsl.maximum(row_max, kdsl.max(s, over=n))
                p, alpha = kdsl.exp(s - new_max), kdsl.exp(row_max - new_max)
                row_sum, row_max = row_sum * alpha + kdsl.sum(p, over=n), new_max
                acc = acc * alpha + kdsl.dot(p, v[page, n, h, :].to(f32), over=n)
        out[b, h, :] = acc / row_sum


@kdsl.kernel
@kdsl.example(LIMITS=4, TOKENS=11, H=2, D=8, T=kdsl.f32, scale=0.5)
def varlen_attention(
    q: Tensor[TOKENS, H, D, T],
    k: Tensor[TOKENS, H, D, T],
    v: Tensor[TOKENS, H, D, T],
    cu_seqlens: Tensor[LIMITS, i32],
    out: Out[TOKENS, H, D, T],
    scale: Scalar[f32],
    *,
    BL: Tile = 16,
    BS: Tile = 16,
) -> None:
    """Causal attention within each of the sequences that lie one after the other in TOKENS."""
    kdsl.require(LIMITS >= 2)
    for b, h in kdsl.grid(SEQUENCES, H):
        start, stop = cu_seqlens[b], cu_seqlens[b + 1]
        for m in TOKENS.tiles(BL, start=start, stop=stop):
            row_max, row_sum = kdsl.full((m,), -inf, f32), kdsl.zeros((m,), f32)
            acc = kdsl.zeros((m, D), f32)
            for n in TOKENS.tiles(BS, start=start, stop=m.stop):
                s = kdsl.dot(q[m, h, :], k[n, h, :], over=D) * scale
                s = kdsl.where(n.index <= m.index, s, -inf)
                new_max = kdsl.maximum(row_max, kdsl.max(s, over=n))
                p, alpha = kdsl.exp(s - new_max), kdsl.exp(row_max - new_max)
                row_sum, row_max = row_sum * alpha + kdsl.sum(p, over=n), new_max
                acc = acc * alpha + kdsl.dot(p, v[n, h, :].to(f32), over=n)
            out[m, h, :] = acc / row_sum


@kdsl.kernel
@kdsl.example(TOKENS=11, E=3, K=6, N=5, T=kdsl.f32)
def grouped_matmul(
    x: Tensor[TOKENS, K, T],
    w: Tensor[E, K, N, T],
    offsets: Tensor[E1, i32],
    y: Out[TOKENS, N, T],
    *,
    BM: Tile = 16,
    BN: Tile = 16,
    BK: Tile = 16,
) -> None:
    """y = x @ w[e] for the tokens of each expert e, which are those from offsets[e] up to offsets[e + 1]."""
    for e, n in kdsl.grid(E, N.tiles(BN)):
        for m in TOKENS.tiles(BM, start=offsets[e], stop=offsets[e + 1]):
            acc = kdsl.zeros((m, n), f32)
            for k in K.tiles(BK):
                acc += kdsl.dot(x[m, k], w[e, k, n])
            y[m, n] = acc


@kdsl.kernel
@kdsl.example(M=6, N=5, K=23, S=3, T=kdsl.f32)
def split_k(
    a: Tensor[M, K, T], b: Tensor[K, N, T], c: InOut[M, N, f32], *, BM: Tile = 16, BN: Tile = 16, BK: Tile = 16
) -> None:
    """c += a @ b, the sum over K shared by S programs."""
    for m, n, s in kdsl.grid(M.tiles(BM), N.tiles(BN), S):
        share = (K + S - 1) // S
        acc = kdsl.zeros((m, n), f32)
        for k in K.tiles(BK, start=s * share, stop=(s + 1) * share):
            acc += kdsl.dot(a[m, k], b[k, n])
        c.atomic_add(m, n, value=acc)


@kdsl.kernel
@kdsl.example(M=9, N=5, P=4, T=kdsl.f32)
def persistent_softmax(x: Tensor[M, N, T], y: Out[M, N, T]) -> None:
    """Softmax of each row, the rows shared by P programs."""
    for p in kdsl.grid(P):
        for row in kdsl.range(p, M, P):
            values = x[row, :].to(f32)
            powers = kdsl.exp(values - kdsl.max(values, over=N))
            y[row, :] = powers / kdsl.sum(powers, over=N)


@kdsl.kernel
@kdsl.example(M=5, N=9)
def search(values: Tensor[M, f32], ordered: Tensor[N, f32], places: Out[M, i32]) -> None:
    """Where each value belongs in the ordered ones: the first place that holds nothing less."""
    for m in kdsl.grid(M):
        low: TileValue | int = 0
        high: TileValue | type[kdsl.Dim] = N
        while low < high:
            middle = (low + high) // 2
            if ordered[middle] < values[m]:
                low = middle + 1
            else:
                high = middle
        places[m] = low


@kdsl.kernel
@kdsl.example(N=9, T=kdsl.f32, count=4)
def head(x: Tensor[N, T], y: InOut[N, T], count: Scalar[i32], *, BN: Tile = 4) -> None:
    """y = 2 * x in the first `count` places, if there are any."""
    for _ in kdsl.grid(ONE):
        if count > 0:
            for n in N.tiles(BN, stop=count):
                y[n] = 2 * x[n]
