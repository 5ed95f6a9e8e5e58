"""NumPy meanings of memory access at computed places: gathers, scatters and atomics.

An access has one index operand for each dimension of the tensor, and a mask operand last if it is
`masked`. The lanes of a tile are taken in row-major order of its axes: of two lanes that store to one element, the
later one wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kdsl.ir.kernel import Op
from kdsl.ir.meaning import Array, Frame, number
from kdsl.ir.meaning_boxes import outside_text


def _lanes(
    frame: Frame, op: Op, operands: Sequence[Array], values: int, axes: Sequence[str]
) -> tuple[list[Array], tuple[Array, ...], Array]:
    """The value operands, the index arrays (zero in lanes that are not touched), and which lanes are touched."""
    aligned = [frame.align(array, value.axes, axes) for array, value in zip(operands, op.operands, strict=True)]
    masked = bool(op.attributes.get("masked"))
    touched = frame.valid(axes, axes) & frame.active(axes)
    touched = touched & aligned[-1] if masked else touched
    # Full along every axis: what changes an element does so once for each lane, also where nothing varies.
    shape = tuple(frame.size(name) for name in axes)
    buffer = frame.memory[op.attributes["buffer"]]
    touched = np.broadcast_to(touched, shape)
    places = []
    for dimension, array in enumerate(aligned[values : len(aligned) - masked]):
        place = np.broadcast_to(array, shape).astype(np.int64)
        outside = touched & ((place < 0) | (place >= buffer.shape[dimension]))
        if outside.any():
            lane = np.unravel_index(int(np.argmax(outside)), shape)
            raise frame.fault(op, outside_text(op, str(place[lane]), dimension, buffer.shape[dimension]), axes, lane)
        places.append(np.where(touched, place, 0))
    return [np.broadcast_to(array, shape) for array in aligned[:values]], tuple(places), touched


def load_at(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    axes, dtype = op.result.axes, op.result.dtype
    _, places, touched = _lanes(frame, op, operands, 0, axes)
    fill = op.attributes.get("fill")
    poison = frame.poison(dtype, touched.shape)
    outside = poison if fill is None else np.where(frame.valid(axes, axes), number(fill, dtype), poison)
    buffer = frame.memory[op.attributes["buffer"]]
    return [np.where(touched, buffer[places] if buffer.size else poison, outside)]


def store_at(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    axes = frame.kernel.with_validity({name for value in op.operands for name in value.axes})
    (value,), places, touched = _lanes(frame, op, operands, 1, axes)
    flat = _flat(frame, op, places, touched)
    frame.memory[op.attributes["buffer"]].reshape(-1)[flat] = value[touched]
    return []


def _flat(frame: Frame, op: Op, places: tuple[Array, ...], touched: Array) -> Array:
    """Row-major element numbers of the touched lanes, in the order of the lanes."""
    shape = frame.memory[op.attributes["buffer"]].shape
    if not shape:
        return np.zeros(np.count_nonzero(touched), np.int64)
    return np.asarray(np.ravel_multi_index(tuple(place[touched] for place in places), shape), dtype=np.int64)


# How each kind of atomic changes an element.
ATOMICS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "maximum": np.fmax,
    "minimum": np.fmin,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exchange": lambda old, new: new,
}


def atomic(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """One lane after the other, programs in order; gives what each element held before, if that is asked for."""
    change = ATOMICS[op.attributes["combine"]]
    return one_by_one(frame, op, operands, 1, change)


def atomic_cas(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """Store the second operand where the element equals the first; gives what it held before."""
    return one_by_one(frame, op, operands, 2, lambda old, expected, value: np.where(old == expected, value, old))


def one_by_one(frame: Frame, op: Op, operands: list[Array], values: int, change: Callable[..., Any]) -> list[Array]:
    # A uniform atomic still happens once for each program, so all axes of the grid take part.
    axes = frame.kernel.with_validity(
        {name for value in op.operands for name in value.axes} | {axis.name for axis in frame.kernel.program_axes}
    )
    given, places, touched = _lanes(frame, op, operands, values, axes)
    memory = frame.memory[op.attributes["buffer"]].reshape(-1)
    columns = [array[touched] for array in given]
    before = np.empty(np.count_nonzero(touched), memory.dtype)
    # Together those lanes that are the first, the second, ... of their element.
    for lanes, elements in _turns(_flat(frame, op, places, touched)):
        before[lanes] = memory[elements]
        memory[elements] = change(before[lanes], *(column[lanes] for column in columns))
    if not op.results:
        return []
    result = frame.poison(op.result.dtype, touched.shape).copy()
    result[touched] = before
    gone = tuple(place for place, name in enumerate(axes) if name not in op.result.axes)
    return [result[tuple(0 if place in gone else slice(None) for place in range(len(axes)))]]


def _turns(elements: Array) -> Iterator[tuple[Array, Array]]:
    """The lanes in groups that hold no element twice; a lane comes after all earlier ones of its element."""
    order = np.argsort(elements, kind="stable")
    ordered = elements[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    starts = np.flatnonzero(first)
    turn = np.arange(len(ordered)) - np.repeat(starts, np.diff([*starts, len(ordered)]))
    by_turn = np.argsort(turn, kind="stable")
    ends = np.flatnonzero(np.diff(turn[by_turn])) + 1
    for lanes in np.split(order[by_turn], ends):
        yield lanes, elements[lanes]
