"""Bounds-checked memory for interpreted kernels.

A kernel sees *virtual* addresses: each tensor of a launch lives in its own region of 2**44 bytes, so no stray offset
can reach a neighbour by accident. An access is translated to the tensor's real address, or reported.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

REGION_BITS = 44
# A tensor starts in the middle of its region: small negative offsets stay inside it and are reported for that tensor.
REGION_START = 1 << (REGION_BITS - 1)
# Low address bits that survive, so that a kernel's own alignment checks (descriptors: 16 bytes) see the real ones.
ALIGNMENT = 256
GARBAGE = 0xA5


class OutOfBounds(Exception):
    """A lane that is not masked off touched memory outside the tensor its pointer came from."""


def is_floating(dtype: np.dtype[Any]) -> bool:
    """True for NumPy's floats and for ml_dtypes' bf16 and fp8, which NumPy does not count among them."""
    return np.issubdtype(dtype, np.floating) or dtype.name.startswith(("bfloat16", "float8_"))


def as_f32(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """bf16 and fp8 as f32, exactly; any other array as it is."""
    narrow = is_floating(array.dtype) and not np.issubdtype(array.dtype, np.floating)
    return array.astype(np.float32) if narrow else array


def poison(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A scalar that shows when it is used: NaN for floats, True for bool, bytes of 0xA5 for integers."""
    if dtype == np.bool_:
        return np.array(True)
    if is_floating(dtype):
        return np.array(np.nan, np.float64).astype(dtype)
    return np.frombuffer(bytes([GARBAGE]) * dtype.itemsize, dtype)[0:1].reshape(())


class Memory:
    """The tensors of one launch. A tensor needs torch's `data_ptr()`, `element_size()`, `shape` and `stride()`.

    The bounds of a tensor are those of its view (first to last element, strides included), not of its storage.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._item_bytes: list[int] = []
        self._virtual: dict[int, int] = {}
        self._kept: list[Any] = []  # an id is only unique while its tensor lives
        self._real = np.zeros(0, np.int64)
        self._start = np.zeros(0, np.int64)
        self._bytes = np.zeros(0, np.int64)

    def add(self, name: str, tensor: Any) -> None:
        """Give `tensor` a region; the same object given twice keeps its first one."""
        if id(tensor) in self._virtual:
            return
        real, item = int(tensor.data_ptr()), int(tensor.element_size())
        start = (len(self._names) << REGION_BITS) + REGION_START + real % ALIGNMENT
        empty = math.prod(tensor.shape) == 0
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        self._names.append(name)
        self._item_bytes.append(item)
        self._virtual[id(tensor)] = start
        self._kept.append(tensor)
        self._real = np.append(self._real, np.int64(real))
        self._start = np.append(self._start, np.int64(start))
        self._bytes = np.append(self._bytes, np.int64(0 if empty else (last + 1) * item))

    def address(self, tensor: Any) -> int:
        """The virtual address of a tensor that was added."""
        return self._virtual[id(tensor)]

    def resolve(
        self, pointers: np.ndarray[Any, Any], mask: np.ndarray[Any, Any], item_bytes: int, access: str
    ) -> np.ndarray[Any, Any]:
        """Real addresses (uint64, shape of `pointers`) of accesses of `item_bytes` bytes a lane.

        `access` names the access in the message. Lanes with a false `mask` are translated to 0 and never reported.
        Raises OutOfBounds for the first bad lane.
        """
        mask = np.broadcast_to(np.asarray(mask, np.bool_), pointers.shape)
        virtual = pointers.astype(np.int64)
        region = virtual >> REGION_BITS
        known = (region >= 0) & (region < len(self._names))
        if np.any(mask & ~known):
            raise OutOfBounds(f"{access} through a pointer that belongs to no tensor of the launch")
        if not self._names:
            return np.zeros(pointers.shape, np.uint64)
        region = np.where(known, region, 0)
        offset = virtual - self._start[region]
        inside = (offset >= 0) & (offset + item_bytes <= self._bytes[region])
        if np.any(mask & ~inside):
            self._report(region, offset, mask & ~inside, access)
        return np.where(mask, self._real[region] + offset, 0).astype(np.uint64)

    def _report(
        self, region: np.ndarray[Any, Any], offset: np.ndarray[Any, Any], bad: np.ndarray[Any, Any], access: str
    ) -> None:
        lane = int(np.flatnonzero(bad)[0])
        tensor = int(region.reshape(-1)[lane])
        item = self._item_bytes[tensor]
        element, extent = int(offset.reshape(-1)[lane]) // item, int(self._bytes[tensor]) // item
        raise OutOfBounds(
            f"{access} of element {element} of {self._names[tensor]!r}, which spans {extent} elements"
            f" ({int(bad.sum())} of {bad.size} lanes out of bounds, the first is lane {lane})"
        )
