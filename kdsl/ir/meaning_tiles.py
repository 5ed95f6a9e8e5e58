"""NumPy meanings of ops that move lanes along axes: scans, sorting, gathering, joining, counting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdsl.ir.dtypes import BF16, F16, I32
from kdsl.ir.kernel import Op
from kdsl.ir.meaning import COMBINES, Array, Frame, identity


def last(frame: Frame, array: Array, axes: Sequence[str], axis: str, to: Sequence[str]) -> Array:
    """The array of a value over `axes`, as one over `to`, with `axis` full and moved to the end, contiguous."""
    aligned = frame.align(array, axes, to)
    place = list(to).index(axis)
    shape = (*aligned.shape[:place], frame.size(axis), *aligned.shape[place + 1 :])
    return np.ascontiguousarray(np.moveaxis(np.broadcast_to(aligned, shape), place, -1))


def back(array: Array, axis: str, to: Sequence[str]) -> Array:
    """The inverse of `last`: the last dimension to the place of `axis`."""
    return np.moveaxis(array, -1, list(to).index(axis))


def lanes_of(
    frame: Frame, op: Op, operands: Sequence[Array], axis: str, to: Sequence[str]
) -> tuple[list[Array], Array]:
    """The operands of an op along an axis as `last` gives them, and which of their lanes are valid: of one shape."""
    lanes = [last(frame, array, value.axes, axis, to) for array, value in zip(operands, op.operands, strict=True)]
    axes = frame.kernel.order(name for value in op.operands for name in value.axes)
    valid = np.moveaxis(frame.valid(frame.kernel.decided_along(axis, axes), to), list(to).index(axis), -1)
    *lanes, valid = np.broadcast_arrays(*lanes, valid)
    return lanes, valid


def scan(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """Running combine; 16-bit floats accumulate in f32 and round each lane once."""
    (source,), axis, axes = op.operands, op.attributes["axis"], op.result.axes
    combine, dtype = COMBINES[op.attributes["combine"]], source.dtype
    (lanes,), valid = lanes_of(frame, op, operands, axis, axes)
    neutral = np.asarray(identity(op.attributes["combine"], dtype)).astype(dtype.numpy)
    lanes = np.where(valid, lanes, neutral)
    if op.attributes.get("reverse"):
        lanes = lanes[..., ::-1]
    wide = lanes.astype(np.float32) if dtype in (F16, BF16) else lanes
    running = np.asarray(combine.fold.accumulate(wide, axis=-1)).astype(dtype.numpy)
    return [back(running[..., ::-1] if op.attributes.get("reverse") else running, axis, axes)]


def sort(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """Sort by the first operand and carry the others along; stable, NaN last (first if descending)."""
    axis, axes = op.attributes["axis"], op.results[0].axes
    lanes, valid = lanes_of(frame, op, operands, axis, axes)
    order = _order(lanes[0], valid, bool(op.attributes.get("descending")))
    # Valid lanes take the sorted values in their own order; invalid ones keep what means nothing.
    targets = np.argsort(~valid, axis=-1, kind="stable")
    results = []
    for array in lanes:
        placed = np.empty(valid.shape, array.dtype)
        np.put_along_axis(placed, targets, np.take_along_axis(array, order, axis=-1), axis=-1)
        results.append(back(placed, axis, axes))
    return results


def _order(keys: Array, valid: Array, descending: bool) -> Array:
    """Lane numbers in sorted order, the invalid ones at the end."""
    if keys.dtype == BF16.numpy:
        keys = keys.astype(np.float32)  # ml_dtypes sorts a NaN anywhere
    if descending:
        size = keys.shape[-1]
        order = size - 1 - np.argsort(keys[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    else:
        order = np.argsort(keys, axis=-1, kind="stable")
    late = np.argsort(~np.take_along_axis(valid, order, axis=-1), axis=-1, kind="stable")
    return np.take_along_axis(order, late, axis=-1)


def topk(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """The largest lanes and their lane numbers, largest first, the lower lane first among equals."""
    (source,), axis, target = op.operands, op.attributes["axis"], op.attributes["target"]
    axes = frame.kernel.order({axis, *(name for name in op.results[0].axes if name != target)})
    (lanes,), valid = lanes_of(frame, op, operands, axis, axes)
    order = _order(lanes, valid, descending=True)[..., : frame.size(target)]
    values, chosen = np.take_along_axis(lanes, order, axis=-1), order.astype(np.int32)
    there = np.take_along_axis(valid, order, axis=-1)
    missing = [(0, 0)] * (there.ndim - 1) + [(0, frame.size(target) - there.shape[-1])]
    values, chosen, there = (np.pad(array, missing) for array in (values, chosen, there))
    values = np.where(there, values, frame.poison(source.dtype, values.shape))
    chosen = np.where(there, chosen, frame.poison(I32, chosen.shape))
    kept = [name for name in axes if name != axis]
    places = [(*kept, target).index(name) for name in op.results[0].axes]
    return [np.transpose(values, places), np.transpose(chosen, places)]


def gather(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """source[index] along one axis; poison where the index is no valid lane."""
    (source, index), axis = op.operands, op.attributes["axis"]
    axes = frame.kernel.order({*op.result.axes, axis})
    lanes = last(frame, operands[0], source.axes, axis, axes)
    valid = np.moveaxis(frame.valid(frame.kernel.decided_along(axis, source.axes), axes), axes.index(axis), -1)
    places = np.moveaxis(frame.align(operands[1], index.axes, axes), axes.index(axis), -1).astype(np.int64)
    inside = (places >= 0) & (places < lanes.shape[-1])
    outer = np.broadcast_shapes(lanes.shape[:-1], valid.shape[:-1], places.shape[:-1])
    safe = np.broadcast_to(np.where(inside, places, 0), (*outer, places.shape[-1]))
    poison = frame.poison(op.result.dtype, safe.shape)
    if not lanes.shape[-1]:
        return [_gathered(poison, axis, axes, op)]
    count = lanes.shape[-1]
    taken = np.take_along_axis(np.broadcast_to(lanes, (*outer, count)), safe, axis=-1)
    there = inside & np.take_along_axis(np.broadcast_to(valid, (*outer, count)), safe, axis=-1)
    return [_gathered(np.where(there, taken, poison), axis, axes, op)]


def _gathered(array: Array, axis: str, axes: Sequence[str], op: Op) -> Array:
    """What is gathered along the last dimension, over the result's axes."""
    return back(array, axis, axes) if axis in op.result.axes else array[..., 0]


def flip(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    place = op.result.axes.index(op.attributes["axis"])
    return [np.flip(operands[0], axis=place)]


def concat(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """The lanes of one axis, then those of another, along a third."""
    target, axes = op.attributes["target"], op.result.axes
    kept = [name for name in axes if name != target]
    parts = [
        last(frame, array, value.axes, axis, frame.kernel.order((*kept, axis)))
        for array, value, axis in zip(operands, op.operands, op.attributes["source"], strict=True)
    ]
    shape = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    joined = np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts], axis=-1)
    return [np.transpose(joined, [(*kept, target).index(name) for name in axes])]


def join(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """Two values as the two lanes of a new axis."""
    axis, axes = op.attributes["axis"], op.result.axes
    kept = [name for name in axes if name != axis]
    parts = [frame.align(array, value.axes, kept) for array, value in zip(operands, op.operands, strict=True)]
    stacked = np.stack(np.broadcast_arrays(*parts), axis=-1)
    return [np.transpose(stacked, [(*kept, axis).index(name) for name in axes])]


def split(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """The two lanes of an axis as two values: the inverse of join."""
    (value,), axis = op.operands, op.attributes["axis"]
    lanes = last(frame, operands[0], value.axes, axis, value.axes)
    return [lanes[..., 0], lanes[..., 1]]


def relabel(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """The same lanes along another axis."""
    (value,), source, target = op.operands, op.attributes["source"], op.attributes["target"]
    renamed = [target if name == source else name for name in value.axes]
    return [np.transpose(operands[0], [renamed.index(name) for name in op.result.axes])]


def histogram(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """How many valid lanes hold each of the numbers 0, 1, ... of the target axis; other numbers count nowhere."""
    axis, target = op.attributes["axis"], op.attributes["target"]
    axes = frame.kernel.order({*op.result.axes, axis} - {target})
    (lanes,), valid = lanes_of(frame, op, operands, axis, axes)
    bins = np.arange(frame.size(target))
    counts = np.sum((lanes[..., np.newaxis] == bins) & valid[..., np.newaxis], axis=-2, dtype=np.int32)
    kept = [name for name in axes if name != axis]
    return [np.transpose(counts, [(*kept, target).index(name) for name in op.result.axes])]


# Multipliers and key increments of Philox4x32: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
# 1, 2, 3", SC 2011.
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_INCREMENTS = 0x9E3779B9, 0xBB67AE85


def philox(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """Philox4x32: four counters and two keys to four random words."""
    axes = op.results[0].axes
    words = [frame.align(a, v.axes, axes).astype(np.uint64) for a, v in zip(operands, op.operands, strict=True)]
    counters, keys = words[:4], words[4:]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(op.attributes["rounds"]):
        first, second = counters[0] * np.uint64(_MULTIPLIERS[0]), counters[2] * np.uint64(_MULTIPLIERS[1])
        counters = [
            (second >> np.uint64(32)) ^ counters[1] ^ keys[0],
            second & low,
            (first >> np.uint64(32)) ^ counters[3] ^ keys[1],
            first & low,
        ]
        keys = [(key + np.uint64(step)) & low for key, step in zip(keys, _INCREMENTS, strict=True)]
    shape = np.broadcast_shapes(*(word.shape for word in counters))
    return [np.broadcast_to(word, shape).astype(np.uint32) for word in counters]
