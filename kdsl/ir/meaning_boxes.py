"""NumPy meanings of loads and stores of boxes.

The elements of an affine access that stays inside its tensor are a strided view of the tensor. Others go by index
arrays, one a dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kdsl.ir.kernel import Op
from kdsl.ir.meaning import Array, Frame, number


def load(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    axes, dtype = op.result.axes, op.result.dtype
    inside, valid = frame.holds(op.attributes.get("bounds", ()), axes), frame.valid(axes, axes)
    touched = inside & valid & frame.active(axes)
    read = _read(frame, op, axes, touched)
    if touched.all():
        return [read]
    poison = frame.poison(dtype, np.broadcast_shapes(read.shape, touched.shape))
    fill = op.attributes.get("fill")
    outside = poison if fill is None else np.where(valid, number(fill, dtype), poison)
    return [np.where(touched, read, outside)]


def store(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    index, bounds = op.attributes["index"], op.attributes.get("bounds", ())
    named = {name for form in (*index, *bounds) for name in form.symbols}
    axes = frame.kernel.with_validity({*op.operands[0].axes, *frame.kernel.order(named)})
    touched = frame.holds(bounds, axes) & frame.valid(axes, axes) & frame.active(axes)
    value = frame.align(operands[0], op.operands[0].axes, axes)
    view = _view(frame, op, axes) if touched.all() else None
    if view is not None and _is_distinct(view):
        view[...] = value
        return []
    places = _places(frame, op, axes, touched)
    touched, value, *places = np.broadcast_arrays(touched, value, *places)
    # The extra dimension makes a tensor without dimensions like any other.
    first = np.zeros(np.count_nonzero(touched), np.intp)
    frame.memory[op.attributes["buffer"]][np.newaxis][(first, *(place[touched] for place in places))] = value[touched]
    return []


def _read(frame: Frame, op: Op, axes: Sequence[str], touched: Array) -> Array:
    """The elements of an access over axes, anything in lanes that it does not touch. Raises the frame's fault."""
    name = op.attributes["buffer"]
    view = _view(frame, op, axes)
    if view is not None:
        # What is written later must not change what was read.
        return view if frame.kernel.buffer(name).role == "in" else view.copy()
    places, buffer = _places(frame, op, axes, touched), frame.memory[name]
    if not buffer.size:  # nothing to stand in for lanes outside
        return np.zeros([1] * len(axes), buffer.dtype)
    return np.asarray(buffer[tuple(places)])


def _view(frame: Frame, op: Op, axes: Sequence[str]) -> Array | None:
    """The elements of an access as a view over axes, or None where it is not affine or some lane is outside."""
    buffer = frame.memory[op.attributes["buffer"]]
    if buffer.dtype.hasobject:  # Python's numbers, not plain bits
        return None
    start: list[Any] = []
    strides = dict.fromkeys(axes, 0)
    for form, size, stride in zip(op.attributes["index"], buffer.shape, buffer.strides, strict=True):
        if form.affine is None or form.affine[1].keys() - frame.points.keys():
            return None
        constant, coefficients = form.affine
        low = high = first = constant
        for name, coefficient in coefficients.items():
            points = frame.points[name]
            if not points:
                return None
            ends = coefficient * points[0], coefficient * points[-1]
            low, high, first = low + min(ends), high + max(ends), first + ends[0]
            strides[name] += coefficient * points.step * stride
        if low < 0 or high >= size:
            return None
        start.append(slice(first, None))
    shape = [len(frame.points[name]) if strides[name] else 1 for name in axes]
    # As plain bits: NumPy makes no strided view of some of the dtypes that it does not know.
    first_element = buffer[(*start, ...)].view(f"u{buffer.dtype.itemsize}")
    view = np.lib.stride_tricks.as_strided(first_element, shape, [strides[name] for name in axes])
    return view.view(buffer.dtype)


def _is_distinct(view: Array) -> bool:
    """Whether no element occurs twice in a view, as its strides show."""
    reach = 0
    for stride, size in sorted((abs(stride), size) for stride, size in zip(view.strides, view.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += stride * (size - 1)
    return True


def outside_text(op: Op, index: str, dimension: int, size: int) -> str:
    valid = f"valid from 0 to {size - 1}" if size else "none is valid"
    return f"{op.attributes['buffer']}: index {index} in dimension {dimension}, which has {size} elements ({valid})"


def _places(frame: Frame, op: Op, axes: Sequence[str], touched: Array) -> list[Array]:
    """The index arrays of an access, inside the tensor in all lanes. Raises the frame's fault for a touched lane."""
    buffer = frame.memory[op.attributes["buffer"]]
    places = []
    for dimension, (form, size) in enumerate(zip(op.attributes["index"], buffer.shape, strict=True)):
        place = frame.form(form, axes)
        outside = touched & ((place < 0) | (place >= size))
        if outside.any():
            lane = np.unravel_index(int(np.argmax(outside)), outside.shape)
            got = int(np.broadcast_to(place, outside.shape)[lane])
            raise frame.fault(op, outside_text(op, f"{form} = {got}", dimension, size), axes, lane)
        places.append(np.clip(place, 0, max(size - 1, 0)))
    return places
