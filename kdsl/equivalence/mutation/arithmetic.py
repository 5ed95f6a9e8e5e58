"""Mutators of what is computed, and of how precisely."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from kdsl.equivalence.mutation.changes import InPlace, attribute, into, on_ops
from kdsl.ir.dtypes import BF16, BOOL, F32
from kdsl.ir.kernel import Kernel, Op
from kdsl.ir.ops import OPS

# Ops that are taken for one another: the same operands, the same type.
NEIGHBOURS = {
    "add": "sub",
    "sub": "add",
    "mul": "div",
    "div": "mul",
    "floordiv": "floormod",
    "floormod": "floordiv",
    "maximum": "minimum",
    "minimum": "maximum",
    "and": "or",
    "or": "and",
    "xor": "or",
    "shl": "shr",
    "shr": "shl",
    "lt": "le",
    "le": "lt",
    "gt": "ge",
    "ge": "gt",
    "eq": "ne",
    "ne": "eq",
    "exp": "exp2",
    "exp2": "exp",
    "log": "log2",
    "log2": "log",
    "sqrt": "rsqrt",
    "rsqrt": "sqrt",
    "floor": "ceil",
    "ceil": "floor",
    "sin": "cos",
    "cos": "sin",
    "erf": "tanh",
    "sigmoid": "tanh",
}
COMBINES = {
    "add": "maximum",
    "mul": "add",
    "maximum": "minimum",
    "minimum": "maximum",
    "and": "or",
    "or": "and",
    "xor": "or",
    "argmax": "argmin",
    "argmin": "argmax",
}
DIRECTED = ("sub", "div", "floordiv", "floormod", "lt", "le", "gt", "ge", "shl", "shr")
LANEWISE = tuple(
    name for name, row in OPS.items() if row.pointwise is not None and row.operands in (("x",), ("x", "y"))
)


@on_ops(*NEIGHBOURS)
def neighbour(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """Another op."""
    yield f"{NEIGHBOURS[op.name]} in place of {op.name}", replace(op, name=NEIGHBOURS[op.name])


@on_ops(*DIRECTED)
def operands_swapped(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """The second operand first."""
    yield "operands swapped", replace(op, operands=op.operands[::-1])


@on_ops(*LANEWISE)
def op_dropped(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """An operand as it is: a rescale, a shift or a function is missing."""
    for name, value in zip(OPS[op.name].operands, op.operands, strict=True):
        if value.dtype == op.result.dtype:
            yield f"{name} in place of {op.name}", value


@on_ops("reduce", "scan", "atomic")
def combine_wrong(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """Lanes are combined by another function, with its identity."""
    old = op.attributes["combine"]
    if old in COMBINES:
        yield f"combine {COMBINES[old]} in place of {old}", attribute(op, combine=COMBINES[old])


@on_ops("constant")
def constant_wrong(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """Another number; an infinity becomes 0, as where an identity is the wrong one."""
    old, others = op.attributes["value"], list[bool | int | float]()
    if op.result.dtype == BOOL:
        others = [not old]
    elif isinstance(old, float):
        others = [0.0, -old] if math.isinf(old) else [old + 1.0, -old] if old else [1.0]
    else:
        others = [old + 1, old - 1]
    for new in others:
        yield f"{new} in place of {old}", attribute(op, value=new)


@on_ops("reduce", "dot", "add")
def result_narrowed(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """What was accumulated in f32 is kept in bf16."""
    if op.result.dtype == F32:
        yield "the result in bf16", into(op, BF16)


@on_ops("dot")
def precision_lowered(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """f32 operands are multiplied as tf32 or bf16."""
    if op.operands[0].dtype == F32 and op.attributes["precision"] == "ieee":
        for precision in ("tf32", "bf16"):
            yield f"precision {precision}", attribute(op, precision=precision)


@on_ops("cast")
def rounding_wrong(kernel: Kernel, op: Op) -> Iterator[tuple[str, InPlace]]:
    """A cast to a narrower float cuts off."""
    source, target = op.operands[0].dtype, op.result.dtype
    if source.is_float and target.is_float and target.bits < source.bits and "rounding" not in op.attributes:
        yield "cuts off", attribute(op, rounding="zero")
