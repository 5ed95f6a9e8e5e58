"""The same elements in memory in another order: views that callers hand to kernels."""

from __future__ import annotations

from typing import Literal

import numpy as np

from kdsl.ir.meaning import Array

Layout = Literal["contiguous", "transposed", "sliced", "reversed", "repeated"]
LAYOUTS: tuple[Layout, ...] = ("contiguous", "transposed", "sliced", "reversed", "repeated")


def laid_out(array: Array, layout: Layout) -> Array:
    """A view of other strides that equals the array.

    `transposed`: the first dimension is the fastest. `sliced`: every other element of rows that lie further apart.
    `reversed`: negative strides. `repeated`: a stride of zero along the last dimension, along which all elements are
    those of the first lane; only this one changes values.
    """
    if not array.ndim or layout == "contiguous":
        return np.ascontiguousarray(array) if array.ndim else array
    if layout == "transposed":
        return np.ascontiguousarray(array.T).T
    if layout == "sliced":
        wide = np.zeros([2 * size + 1 for size in array.shape], array.dtype)
        view = wide[tuple(slice(1, None, 2) for _ in array.shape)]
        view[...] = array
        return view
    if layout == "reversed":
        backwards = tuple(slice(None, None, -1) for _ in array.shape)
        return np.ascontiguousarray(array[backwards])[backwards]
    return np.broadcast_to(array[..., :1], array.shape)
