"""Reductions and scans of the mended interpreter: bf16 and fp8 in f32, a kernel's own combine on whole slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.runtime.interpreter as ti

from .memory import as_f32, is_floating

Array = np.ndarray[Any, Any]


def _first_extreme(pick: Callable[..., Array], worst: float) -> Callable[..., Array]:
    """argmax or argmin that passes over NaN; a row of nothing but NaN gives its first index."""

    def run(data: Array, **kwargs: Any) -> Array:
        return pick(np.where(np.isnan(data), worst, data) if is_floating(data.dtype) else data, **kwargs)

    return run


_REDUCTIONS: dict[Any, Callable[..., Array]] = {
    None: np.asarray,
    np.nanmax: np.fmax.reduce,
    np.nanmin: np.fmin.reduce,
    np.nanargmax: _first_extreme(np.argmax, -np.inf),
    np.nanargmin: _first_extreme(np.argmin, np.inf),
}


class Reduce(ti.ReduceOps):  # type: ignore[misc]  # untyped base
    def sum(self, input: Any) -> Any:
        total = np.sum(as_f32(input.handle.data), axis=self.axis, keepdims=self.keep_dims)
        return self.to_tensor(total, input.dtype)

    def min_max(self, input: Any, val_reduce_op: Any, idx_reduce_op: Any = None) -> Any:
        def widened(shipped: Any) -> Any:
            if shipped is None:
                return None
            return lambda data, **kwargs: _REDUCTIONS[shipped](as_f32(data), **kwargs)

        return super().min_max(input, widened(val_reduce_op), widened(idx_reduce_op))

    def generic_reduce(self, input: Any) -> Any:
        """A combine function of the kernel's own, on halves of the axis (whose extent is a power of two) at a time: as
        shipped, it is called on single elements, some 50 us each."""
        parts = [data.handle.data for data in input]
        if self.axis is None:
            parts = [part.reshape(-1) for part in parts]
        axis = self.axis or 0
        while parts[0].shape[axis] > 1:
            halves = [np.split(part, 2, axis) for part in parts]
            pairs = [
                self.to_tensor(half[side], data.dtype)
                for side in (0, 1)
                for half, data in zip(halves, input, strict=True)
            ]
            combined = self.combine_fn.fn(*pairs)
            results = combined if isinstance(combined, tuple) else (combined,)
            parts = [result.handle.data for result in results]
        if not self.keep_dims:
            parts = [np.squeeze(part, axis) for part in parts]
        elif self.axis is None:
            parts = [part.reshape([1] * len(input[0].shape)) for part in parts]
        return [self.to_tensor(part, data.dtype) for part, data in zip(parts, input, strict=True)]


class Scan(ti.ScanOps):  # type: ignore[misc]  # untyped base
    def cumsum(self, input: Any) -> Any:
        return [self.to_tensor(np.cumsum(as_f32(input.handle.data), axis=self.axis), dtype=input.dtype)]

    def cumprod(self, input: Any) -> Any:
        return [self.to_tensor(np.cumprod(as_f32(input.handle.data), axis=self.axis), dtype=input.dtype)]

    def generic_scan(self, input: Any) -> Any:
        """A combine function of the kernel's own, on one slice of the axis after the other."""
        lanes = [np.moveaxis(data.handle.data, self.axis, 0) for data in input]
        state = [part[0] for part in lanes]
        running = [[part] for part in state]
        for place in range(1, len(lanes[0])):
            pair = [*state, *(part[place] for part in lanes)]
            combined = self.combine_fn.fn(*map(self.to_tensor, pair, 2 * [data.dtype for data in input]))
            results = combined if isinstance(combined, tuple) else (combined,)
            state = [result.handle.data.reshape(part.shape) for result, part in zip(results, state, strict=True)]
            for part, kept in zip(state, running, strict=True):
                kept.append(part)
        scanned = [np.moveaxis(np.stack(kept), 0, self.axis) for kept in running]
        return [self.to_tensor(part, data.dtype) for part, data in zip(scanned, input, strict=True)]
