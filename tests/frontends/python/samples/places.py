"""Kernels that gather, scatter and count: type checked as a user's file, run by test_places.py."""

from __future__ import annotations

import kdsl
from kdsl import Const, InOut, Out, Scalar, Tensor, Tile, f32, i8, i32, u8


class V(kdsl.Dim): ...


class D(kdsl.Dim): ...


class TOKENS(kdsl.Dim): ...


class BINS(kdsl.Dim): ...


class B(kdsl.Dim): ...


class C(kdsl.Dim): ...


class L(kdsl.Dim): ...


class W(kdsl.Dim): ...


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class HALF(kdsl.Dim): ...


class K(kdsl.Dim, size=2 * HALF): ...


class T(kdsl.DType): ...


@kdsl.kernel
@kdsl.example(V=7, D=5, TOKENS=11, T=kdsl.f32)
def embedding(table: Tensor[V, D, T], ids: Tensor[TOKENS, i32], out: Out[TOKENS, D, T], *, BT: Tile = 4) -> None:
    """out[t] = table[ids[t]]."""
    for t in kdsl.grid(TOKENS.tiles(BT)):
        out[t, :] = table[ids[t], :]


@kdsl.kernel
@kdsl.example(V=7, D=5, TOKENS=11, T=kdsl.f32)
def embedding_gradient(
    gradient: Tensor[TOKENS, D, T], ids: Tensor[TOKENS, i32], table: InOut[V, D, T], *, BT: Tile = 4, BD: Tile = 4
) -> None:
    """table[ids[t]] += gradient[t] for tokens of which the id is not negative; several tokens may share one."""
    for t, d in kdsl.grid(TOKENS.tiles(BT), D.tiles(BD)):
        token = ids[t]
        table.atomic_add(token, d, value=gradient[t, d], mask=token >= 0)


@kdsl.kernel
@kdsl.example(N=19, BINS=5)
def histogram(x: Tensor[N, i32], counts: InOut[BINS, i32], *, BN: Tile = 4) -> None:
    """How often each of the numbers 0, 1, ... occurs."""
    for n in kdsl.grid(N.tiles(BN)):
        counts.atomic_add(slice(None), value=kdsl.histogram(x[n], BINS, over=n))


@kdsl.kernel
@kdsl.example(N=9, BINS=2, inputs={"taken": 0})
def pack(x: Tensor[N, i32], y: InOut[N, i32], taken: InOut[BINS, i32], *, BN: Tile = 4) -> None:
    """The positive numbers of x, packed at the front of y in some order; taken[0] counts them."""
    for n in kdsl.grid(N.tiles(BN)):
        positive = x[n] > 0
        rank = kdsl.cumsum(positive, over=n) - 1
        first = taken.atomic_add(0, value=kdsl.sum(positive, over=n))
        y.store(first + rank, value=x[n], mask=positive)


@kdsl.kernel
@kdsl.example(N=9, BINS=4)
def claim(wanted: Tensor[N, i32], owner: InOut[BINS, i32], won: Out[N, i32]) -> None:
    """Each program claims a bin that holds -1; won[n] is what it held before."""
    for n in kdsl.grid(N):
        won[n] = owner.atomic_cas(wanted[n], expected=-1, value=n.index)


@kdsl.kernel
@kdsl.example(B=2, C=3, L=11, W=3, T=kdsl.f32, dilation=2)
def causal_conv(
    x: Tensor[B, C, L, T],
    w: Tensor[C, W, T],
    y: Out[B, C, L, T],
    *,
    dilation: Const[int] = 1,
    BC: Tile = 2,
    BL: Tile = 4,
) -> None:
    """y[l] = sum over t of w[t] * x[l - dilation * t] in each channel, zero before the start."""
    for b, c, l in kdsl.grid(B, C.tiles(BC), L.tiles(BL)):
        acc = kdsl.zeros((c, l), f32)
        for t in W:
            acc += w[c, t] * x.load(b, c, l - dilation * t, fill=0)
        y[b, c, l] = acc


@kdsl.kernel
@kdsl.example(M=5, N=6, HALF=4, T=kdsl.f32)
def int4_matmul(
    x: Tensor[M, K, T],
    packed: Tensor[HALF, N, u8],
    scale: Tensor[N, f32],
    y: Out[M, N, T],
    *,
    BM: Tile = 16,
    BN: Tile = 16,
    BK: Tile = 16,
) -> None:
    """y = x @ w, w of 4-bit integers less 8, two in a byte: rows 2 * k in the lower half, 2 * k + 1 in the upper."""
    for m, n in kdsl.grid(M.tiles(BM), N.tiles(BN)):
        acc = kdsl.zeros((m, n), f32)
        for k in HALF.tiles(BK):
            pair = packed[k, n]
            low, high = (pair & 15).to(i8) - 8, (pair >> 4).to(i8) - 8
            acc += kdsl.dot(x[m, 2 * k], low.to(T)) + kdsl.dot(x[m, 2 * k + 1], high.to(T))
        y[m, n] = acc * scale[n]


@kdsl.kernel
@kdsl.example(M=6, N=7, T=kdsl.f32)
def cross_entropy(logits: Tensor[M, N, T], target: Tensor[M, i32], loss: Out[M, f32], *, BM: Tile = 4) -> None:
    """The negative logarithm of the softmax at each row's target."""
    for m in kdsl.grid(M.tiles(BM)):
        row = logits[m, :].to(f32)
        largest = kdsl.max(row, over=N)
        total = kdsl.sum(kdsl.exp(row - largest), over=N)
        loss[m] = kdsl.log(total) + largest - logits[m, target[m]]


@kdsl.kernel
@kdsl.example(N=19, T=kdsl.f32, seed=3, p=0.25)
def dropout(x: Tensor[N, T], y: Out[N, T], seed: Scalar[i32], p: Scalar[f32], *, BN: Tile = 4) -> None:
    """x / (1 - p) with probability 1 - p, else 0; the same places for the same seed."""
    for n in kdsl.grid(N.tiles(BN)):
        y[n] = kdsl.where(kdsl.uniform(seed, n.index) >= p, x[n] / (1 - p), 0)
