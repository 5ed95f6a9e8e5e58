"""Rows of the op table: memory access at computed places; operands are values, indices, then the mask."""

from __future__ import annotations

from kdsl.ir import errors, meaning_access
from kdsl.ir.dtypes import BOOL
from kdsl.ir.kernel import Kernel, Op
from kdsl.ir.spec import AttributeKind, OpSpec, define
from kdsl.ir.type_rules import OpTypeError, Type, check_computes, check_number, union

_ACCESS: tuple[tuple[str, AttributeKind], ...] = (("buffer", "buffer"), ("masked", "flag"))


def _check_access(kernel: Kernel, op: Op, values: int, writes: bool) -> tuple[str, ...]:
    """The axes of an access. Values have the buffer's dtype, indices are integers, the mask is bool."""
    buffer, masked = kernel.buffer(op.attributes["buffer"]), bool(op.attributes.get("masked"))
    if writes and buffer.role == "in":
        raise OpTypeError(f"{buffer.name} is an input")
    expected = values + len(buffer.shape) + masked
    if len(op.operands) != expected:
        raise OpTypeError(f"takes {expected} operands for {buffer.name}, not {len(op.operands)}")
    for value in op.operands[:values]:
        if value.dtype != buffer.dtype:
            raise OpTypeError(f"writes {value.dtype} into a tensor of {buffer.dtype}")
    for value in op.operands[values : values + len(buffer.shape)]:
        if not value.dtype.is_integer:
            raise OpTypeError(f"an index is an integer, not {value.dtype}")
    if masked and op.operands[-1].dtype != BOOL:
        raise OpTypeError(f"a mask is bool, not {op.operands[-1].dtype}")
    return kernel.with_validity(union(kernel, *(value.axes for value in op.operands)))


def _load_at(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    axes = _check_access(kernel, op, 0, writes=False)
    dtype = kernel.buffer(op.attributes["buffer"]).dtype
    if "fill" in op.attributes:
        check_number(dtype, op.attributes["fill"])
    return (Type(dtype, axes),)


def _store_at(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    _check_access(kernel, op, 1, writes=True)
    return ()


def _atomic(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    axes = _check_access(kernel, op, 1, writes=True)
    buffer, combine = kernel.buffer(op.attributes["buffer"]), op.attributes["combine"]
    if combine not in meaning_access.ATOMICS:
        raise OpTypeError(f"no atomic named {combine}")
    if combine in ("and", "or", "xor") and buffer.dtype.is_float:
        raise OpTypeError(f"atomic {combine} does not take {buffer.dtype}")
    if combine == "add" and buffer.dtype == BOOL:
        raise OpTypeError("atomic add does not take bool")
    return _old_value(kernel, op, axes)


def _atomic_cas(kernel: Kernel, op: Op) -> tuple[Type, ...]:
    return _old_value(kernel, op, _check_access(kernel, op, 2, writes=True))


def _old_value(kernel: Kernel, op: Op, axes: tuple[str, ...]) -> tuple[Type, ...]:
    """The result, if asked for: each program has its own, so it varies over the whole grid."""
    check_computes(kernel.buffer(op.attributes["buffer"]).dtype)
    if not op.results:
        return ()
    grid = tuple(axis.name for axis in kernel.program_axes)
    return (Type(kernel.buffer(op.attributes["buffer"]).dtype, union(kernel, axes, grid)),)


define(
    OpSpec(
        "load_at",
        "read the elements at computed places; lanes that the mask leaves out give `fill`, poison without one",
        ("*",),
        _load_at,
        (*_ACCESS, ("fill", "value")),
        optional=("masked", "fill"),
        effect="read",
        padding="predicated",
        evaluate=meaning_access.load_at,
    )
)
define(
    OpSpec(
        "store_at",
        "write elements at computed places; of two lanes that share one, the later in row-major order wins",
        ("*",),
        _store_at,
        _ACCESS,
        optional=("masked",),
        effect="write",
        padding="predicated",
        evaluate=meaning_access.store_at,
    )
)
define(
    OpSpec(
        "atomic",
        "change elements at computed places one lane after the other: add, maximum, minimum (of which NaN is none), "
        "and, or, xor, exchange; gives what each held before if there is a result",
        ("*",),
        _atomic,
        (*_ACCESS, ("combine", "word")),
        optional=("masked",),
        effect="atomic",
        padding="predicated",
        evaluate=meaning_access.atomic,
        error=errors.anything,
    )
)
define(
    OpSpec(
        "atomic_cas",
        "compare and swap: where the element equals the first operand, store the second; gives what it held before",
        ("*",),
        _atomic_cas,
        _ACCESS,
        optional=("masked",),
        effect="atomic",
        padding="predicated",
        evaluate=meaning_access.atomic_cas,
        error=errors.anything,
    )
)
