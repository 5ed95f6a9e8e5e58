"""NumPy meanings of dots: of what precision, of what width, with what scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from kdsl.ir.kernel import Kernel, Op
from kdsl.ir.meaning import Array, Frame
from kdsl.ir.type_rules import batch_axes

Product = Callable[[Array, Array], Array]


def dot(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    precision = op.attributes["precision"]
    return contraction(frame, op, operands, lambda x, y: np.matmul(_reduced(x, precision), _reduced(y, precision)))


def contraction(frame: Frame, op: Op, operands: list[Array], matmul: Product) -> list[Array]:
    """A dot that multiplies stacks of matrices by `matmul`."""
    axis = op.attributes["axis"]
    outer, (left, right) = _placed(frame.kernel, op)
    dtype = op.result.dtype.numpy
    # One layout for every product: BLAS sums in another order where a matrix is stored transposed.
    first = np.ascontiguousarray(_operand(frame, op, operands, 0, (*outer, *left, axis)), dtype)
    second = np.ascontiguousarray(_operand(frame, op, operands, 1, (*outer, axis, *right)), dtype)
    rows, columns = first.shape[len(outer) : -1], second.shape[len(outer) + 1 :]
    batch = first.shape[: len(outer)], second.shape[: len(outer)]
    product = matmul(
        first.reshape(*batch[0], math.prod(rows), first.shape[-1]),
        second.reshape(*batch[1], second.shape[len(outer)], math.prod(columns)),
    )
    product = product.reshape((*product.shape[: len(outer)], *rows, *columns))
    placed = (*outer, *left, *right)
    return [np.transpose(product, [placed.index(name) for name in op.result.axes])]


def _placed(kernel: Kernel, op: Op) -> tuple[list[str], tuple[list[str], list[str]]]:
    """The axes for each of whose points there is a product (programs, loops, batch axes), and each side's own ones."""
    together = batch_axes(kernel, op)
    outer = [name for name in op.result.axes if kernel.axis(name).kind != "tile" or name in together]
    left, right = (
        [name for name in kernel.tile_axes(value) if name not in (op.attributes["axis"], *together)]
        for value in (op.operands[0], op.operands[len(op.operands) // 2])
    )
    return outer, (left, right)


# Explicit fraction bits that one multiplication keeps of an f32 operand; split products keep all that matters.
_FRACTION_BITS = {"tf32": 10, "bf16": 7}


def _reduced(array: Array, precision: str) -> Array:
    """f32 operands as a dot of that precision multiplies them: rounded to nearest even."""
    if precision not in _FRACTION_BITS or array.dtype != np.float32:
        return array
    drop = np.uint32(23 - _FRACTION_BITS[precision])
    bits = np.ascontiguousarray(array).view(np.uint32)
    half = (np.uint32(1) << (drop - np.uint32(1))) - np.uint32(1) + ((bits >> drop) & np.uint32(1))
    rounded = ((bits + half) >> drop << drop).view(np.float32)
    return np.where(np.isfinite(array), rounded, array)


def dot_scaled(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    def scale(x: Array, exponent: Array) -> Array:
        return x.astype(np.float64) * power_of_two(exponent)

    return scaled_contraction(frame, op, operands, scale, lambda x, y: np.matmul(x, y).astype(np.float32))


def power_of_two(exponent: Array) -> Array:
    """The f64 scale that a u8 exponent stands for."""
    return np.where(exponent == 255, np.nan, np.exp2(exponent.astype(np.float64) - 127))


def scaled_contraction(frame: Frame, op: Op, operands: list[Array], multiply: Product, matmul: Product) -> list[Array]:
    """A scaled dot that brings exponents to elements by `multiply`."""
    kernel, axis = frame.kernel, op.attributes["axis"]
    outer, frees = _placed(kernel, op)
    sides = []
    for which, group, kept in ((0, op.attributes["left_group"], frees[0]), (2, op.attributes["right_group"], frees[1])):
        value, scale = op.operands[which], op.operands[which + 1]
        axes, grouped = kernel.order({*outer, *kept, axis}), kernel.order({*outer, *kept, group})
        exponent = np.transpose(
            frame.align(operands[which + 1], scale.axes, grouped), [grouped.index(n) for n in (*outer, *kept, group)]
        )
        exponent = np.repeat(exponent, frame.size(axis) // frame.size(group), axis=-1)
        array = frame.align(operands[which], value.axes, axes)
        array = np.transpose(array, [axes.index(name) for name in (*outer, *kept, axis)])
        sides.append(multiply(array, exponent))
    (left, right), (first, second) = frees, sides
    rows, columns, count = first.shape[len(outer) : -1], second.shape[len(outer) : -1], first.shape[-1]
    product = matmul(
        first.reshape(*first.shape[: len(outer)], math.prod(rows), count),
        np.swapaxes(second.reshape(*second.shape[: len(outer)], math.prod(columns), count), -1, -2),
    )
    product = product.reshape((*product.shape[: len(outer)], *rows, *columns))
    placed = (*outer, *left, *right)
    return [np.transpose(product, [placed.index(name) for name in op.result.axes])]


def _operand(frame: Frame, op: Op, operands: list[Array], which: int, layout: Sequence[str]) -> Array:
    """A dot operand in a layout, full along its tile axes, zero where the contracted axis makes it invalid."""
    own, axes = op.operands[which].axes, frame.kernel.order(layout)
    array = frame.align(operands[which], own, axes)
    valid = frame.valid(frame.kernel.decided_along(op.attributes["axis"], own), axes)
    array = array if valid.all() else np.where(valid, array, np.zeros((), array.dtype))
    sizes = [
        frame.size(name) if frame.kernel.axis(name).kind == "tile" else array.shape[place]
        for place, name in enumerate(axes)
    ]
    return np.transpose(np.broadcast_to(array, sizes), [axes.index(name) for name in layout])
