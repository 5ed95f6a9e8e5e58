"""Kernels with the faults of public bug reports, and each without: written anew, type checked as a user's file."""

from __future__ import annotations

import kdsl
from kdsl import InOut, Out, Tensor, Tile, f32


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class HALF(kdsl.Dim): ...


class PROGRAMS(kdsl.Dim): ...


# triton#10336: a view of every other element, read one element too far.


@kdsl.kernel
def strided(x: Tensor[N, f32], y: Out[HALF, f32], *, B: Tile = 4) -> None:
    for h in kdsl.grid(HALF.tiles(B)):
        y[h] = x[2 * h + 1] - x[2 * h]


@kdsl.kernel
def strided_too_far(x: Tensor[N, f32], y: Out[HALF, f32], *, B: Tile = 4) -> None:
    for h in kdsl.grid(HALF.tiles(B)):
        y[h] = x[2 * h + 2] - x[2 * h]


# vllm-ascend#16275: both arms of a select are read, one of them before the start of the tensor.


@kdsl.kernel
def previous(x: Tensor[N, f32], y: Out[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y[n] = kdsl.where(n.index > 0, x.load(n.index - 1, fill=0), 0)


@kdsl.kernel
def previous_in_a_select(x: Tensor[N, f32], y: Out[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y[n] = kdsl.where(n.index > 0, x[n - 1], 0)


# tilelang#2979 and aws-neuron-sdk#1306: a slice past the end.


@kdsl.kernel
def differences(x: Tensor[N, f32], y: InOut[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y.store(n.index, value=x.load(n.index + 1, fill=0) - x[n], mask=n.index < n.size - 1)


@kdsl.kernel
def differences_past_the_end(x: Tensor[N, f32], y: InOut[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y.store(n.index, value=x[n + 1] - x[n], mask=n.index < n.size - 1)


# sglang#27074 and intel-xpu-backend-for-triton#1125: a masked load without a fill.


@kdsl.kernel
def row_sums(x: Tensor[M, N, f32], y: Out[M, f32], *, B: Tile = 4) -> None:
    for m in kdsl.grid(M):
        places = kdsl.axis(8)
        y[m] = kdsl.sum(x.load(m, places.index, fill=0), over=places)


@kdsl.kernel
def row_sums_without_a_fill(x: Tensor[M, N, f32], y: Out[M, f32], *, B: Tile = 4) -> None:
    for m in kdsl.grid(M):
        places = kdsl.axis(8)
        y[m] = kdsl.sum(x.load(m, places.index), over=places)


# tilelang#2543: the safe value is ignored, and zeros come instead.


@kdsl.kernel
def row_minima(x: Tensor[M, N, f32], y: Out[M, f32]) -> None:
    for m in kdsl.grid(M):
        places = kdsl.axis(8)
        y[m] = kdsl.min(x.load(m, places.index, fill=float("inf")), over=places)


# tilelang#2433: a persistent loop that drops the tiles which do not share out evenly.


@kdsl.kernel
def persistent(x: Tensor[N, f32], y: Out[N, f32], shares: Tensor[PROGRAMS, f32]) -> None:
    for p in kdsl.grid(PROGRAMS):
        for n in kdsl.range(p, N, PROGRAMS):
            y[n] = 2 * x[n]


@kdsl.kernel
def persistent_that_drops(x: Tensor[N, f32], y: Out[N, f32], shares: Tensor[PROGRAMS, f32]) -> None:
    for p in kdsl.grid(PROGRAMS):
        for i in kdsl.range(0, N // PROGRAMS, 1):
            y[p + i * PROGRAMS] = 2 * x[p + i * PROGRAMS]


# nki-samples#134: outputs that nothing is written to come back as zeros.


@kdsl.kernel
def doubled(x: Tensor[N, f32], y: Out[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y[n] = 2 * x[n]


@kdsl.kernel
def nothing(x: Tensor[N, f32], y: Out[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y.store(n.index, value=2 * x[n], mask=n.index < 0)


# tpu-inference#3426: memory that nothing was written to is added to.


@kdsl.kernel
def added(x: Tensor[N, f32], y: InOut[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y[n] = y[n] + x[n]


@kdsl.kernel
def added_to_nothing(x: Tensor[N, f32], y: Out[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y[n] = y[n] + x[n]  # type: ignore[index]  # a type checker finds it, too
