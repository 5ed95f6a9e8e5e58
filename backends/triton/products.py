"""Dots: tl.dot with its precision pinned, a sum of products where one side is a vector, and tl.dot_scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdsl.codegen.layout import axes_of
from kdsl.ir.kernel import Op, Value
from kdsl.ir.type_rules import batch_axes

from .dtypes import SCALED_FORMATS, TYPES, is_f8
from .expressions import ATOM, MULTIPLY, Text
from .limits import is_matmul

if TYPE_CHECKING:
    from .emitter import Emitter

LARGEST_F32 = "3.4028234663852886e+38"


def dot(emitter: Emitter, op: Op) -> Text:
    if is_matmul(emitter.kernel, op):
        return matmul(emitter, op)
    axis, dtype = op.attributes["axis"], op.result.dtype
    layout = max((axes_of(emitter.layouts[value.name]) for value in op.operands), key=len)
    factors = [_multiplied(op, value, emitter.aligned(value, layout)) for value in op.operands]
    if op.operands[0].dtype != dtype:
        factors = [Text(f"{text.within(ATOM)}.to({TYPES[dtype.name]})") for text in factors]
    product = " * ".join(text.within(MULTIPLY + 1) for text in factors)
    text = Text(f"tl.sum({product}, axis={layout.index(axis)})")
    return emitter.placed(text, tuple(name for name in layout if name != axis), emitter.layouts[op.result.name])


def _multiplied(op: Op, value: Value, text: Text) -> Text:
    """An operand as a product of the precision takes it."""
    mantissa = {"bf16": 7, "tf32": 10}.get(op.attributes["precision"])
    if value.dtype.name != "f32" or mantissa is None:
        return text
    infinity = 'float("inf")'
    return Text(f"round_to({text.code}, {mantissa}, 0.0, {LARGEST_F32}, {infinity}, {infinity}, False)")


def matmul(emitter: Emitter, op: Op, accumulator: Value | None = None) -> Text:
    axis, (left, right), precision = op.attributes["axis"], op.operands, op.attributes["precision"]
    together = batch_axes(emitter.kernel, op)
    rows, columns = (
        next(name for name in emitter.layouts[value.name] if name not in (axis, None, *together))
        for value in (left, right)
    )
    factors = [emitter.aligned(left, (*together, rows, axis)), emitter.aligned(right, (*together, axis, columns))]
    if left.dtype.name == "f32" and precision == "bf16":
        factors = [Text(f"{text.within(ATOM)}.to(tl.bfloat16)") for text in factors]
    arguments = [text.code for text in factors]
    if accumulator is not None:
        arguments.append(emitter.operand(accumulator).code)
    if left.dtype.name == "f32" and precision != "bf16":
        arguments.append(f'input_precision="{precision}"')  # the default is tf32, which keeps 10 bits of 23
    if is_f8(left.dtype):
        arguments.append("max_num_imprecise_acc=0")  # Hopper's default adds products with 14 bits
    if op.result.dtype.name != "f32":
        arguments.append(f"out_dtype={TYPES[op.result.dtype.name]}")
    text = Text(f"tl.dot({', '.join(arguments)})")
    return emitter.placed(text, (*together, rows, columns), emitter.layouts[op.result.name])


def dot_scaled(emitter: Emitter, op: Op) -> Text:
    axis = op.attributes["axis"]
    left, left_scale, right, right_scale = op.operands
    rows, columns = (
        next(name for name in axes_of(emitter.layouts[value.name]) if name != axis) for value in (left, right)
    )
    arguments = [
        emitter.full(left, (rows, axis)),
        emitter.full(left_scale, (rows, op.attributes["left_group"])),
        f'"{SCALED_FORMATS[left.dtype.name]}"',
        emitter.full(right, (axis, columns)),
        emitter.full(right_scale, (columns, op.attributes["right_group"])),
        f'"{SCALED_FORMATS[right.dtype.name]}"',
    ]
    text = Text(f"tl.dot_scaled({', '.join(arguments)})")
    return emitter.placed(text, (rows, columns), emitter.layouts[op.result.name])
