"""NumPy meanings of ops with regions: loops, branches, reductions and scans by a combine of the author's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdsl.ir.kernel import Op
from kdsl.ir.meaning import Array, Frame
from kdsl.ir.meaning_tiles import back, lanes_of


def loop(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    return frame.iterate(op, operands)


def poison(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    sizes = [frame.size(name) if frame.kernel.axis(name).kind == "tile" else 1 for name in op.result.axes]
    return [frame.poison(op.result.dtype, tuple(sizes))]


def branch(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    return frame.branch(op, operands[0])


def repeat(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    carried = [
        frame.align(array, value.axes, argument.axes)
        for array, value, argument in zip(operands, op.operands, op.regions[0].arguments, strict=True)
    ]
    return frame.repeat(op, carried)


def reduce_by(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """Neighbours pairwise, keeping their order, so the combine need only be associative."""
    (region,), axis = op.regions, op.attributes["axis"]
    axes = region.arguments[0].axes
    lanes, valid = lanes_of(frame, op, operands, axis, axes)
    while lanes[0].shape[-1] > 1:
        pairs = lanes[0].shape[-1] // 2
        rest = [array[..., 2 * pairs :] for array in (*lanes, valid)]
        even = [array[..., 0 : 2 * pairs : 2] for array in (*lanes, valid)]
        odd = [array[..., 1 : 2 * pairs : 2] for array in (*lanes, valid)]
        joined = _combine(frame, op, axes, even, odd)
        *lanes, valid = [np.concatenate([a, b], axis=-1) for a, b in zip(joined, rest, strict=True)]
    if not lanes[0].shape[-1]:
        return [frame.poison(v.dtype, array.shape[:-1]) for v, array in zip(op.results, lanes, strict=True)]
    there = valid[..., 0]
    return [
        np.where(there, array[..., 0], frame.poison(value.dtype, there.shape))
        for value, array in zip(op.results, lanes, strict=True)
    ]


def scan_by(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """By doubling: after the step of distance d, each lane holds the combine of the 2d lanes up to it."""
    (region,), axis = op.regions, op.attributes["axis"]
    axes = region.arguments[0].axes
    lanes, valid = lanes_of(frame, op, operands, axis, axes)
    state = [array[..., ::-1] if op.attributes.get("reverse") else array for array in (*lanes, valid)]
    distance = 1
    while distance < state[0].shape[-1]:
        joined = _combine(frame, op, axes, [a[..., :-distance] for a in state], [a[..., distance:] for a in state])
        state = [np.concatenate([a[..., :distance], b], axis=-1) for a, b in zip(state, joined, strict=True)]
        distance *= 2
    *lanes, _ = [array[..., ::-1] if op.attributes.get("reverse") else array for array in state]
    return [back(array, axis, axes) for array in lanes]


def _combine(frame: Frame, op: Op, axes: Sequence[str], left: list[Array], right: list[Array]) -> list[Array]:
    """The combine of two runs of lanes, the one side where only it is valid; validity comes last."""
    (region,), axis = op.regions, op.attributes["axis"]
    *first, first_valid = left
    *second, second_valid = right
    arguments = [back(array, axis, axes) for array in (*first, *second)]
    results = frame.run(region, arguments)
    combined = [
        np.moveaxis(frame.align(array, value.axes, axes), list(axes).index(axis), -1)
        for array, value in zip(results, region.ops[-1].operands, strict=True)
    ]
    both = first_valid & second_valid
    settled = [
        np.where(both, np.broadcast_to(c, both.shape), np.where(first_valid, a, b)).astype(a.dtype)
        for a, b, c in zip(first, second, combined, strict=True)
    ]
    return [*settled, first_valid | second_valid]


def let(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    name = op.attributes["integer"]
    (axes,) = (integer.axes for integer in frame.kernel.integers if integer.name == name)
    place = np.maximum(frame.align(operands[0], op.operands[0].axes, axes).astype(np.int64), 0)
    frame.name_integer(name, place)
    return []


def check(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """Raise the frame's failure where a valid lane of an active program does not hold."""
    axes = frame.kernel.with_validity(op.operands[0].axes)
    holds = frame.align(operands[0], op.operands[0].axes, axes)
    if not (holds | ~(frame.valid(axes, axes) & frame.active(axes))).all():
        raise frame.failed(op, op.attributes["message"])
    return []


def pause(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    """Nothing: a debugger stops before the op is evaluated."""
    return []


def show(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    frame.show(op.attributes["message"], operands)
    return []
