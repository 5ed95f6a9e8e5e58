"""Elementwise addition: the smallest kernel there is."""

from __future__ import annotations

import kdsl
from kdsl import Out, Tensor, Tile


class N(kdsl.Dim): ...


class T(kdsl.DType): ...


@kdsl.kernel
@kdsl.example(N=1000, T=kdsl.f32)
@kdsl.example(N=4096, T=kdsl.bf16)
def vector_add(x: Tensor[N, T], y: Tensor[N, T], out: Out[N, T], *, BN: Tile = 1024) -> None:
    """out[n] = x[n] + y[n], rounded to T."""
    for n in kdsl.grid(N.tiles(BN)):
        out[n] = x[n] + y[n]
