"""The form of each op that the importer reads: how many operands, what kinds of attributes, which shapes.

Triton's verifier sees to it in text that Triton printed; text from elsewhere may say anything.
"""

from __future__ import annotations

from collections.abc import Callable

from kdsl.frontends.triton import pointwise
from kdsl.frontends.triton.axes import ended, shape
from kdsl.frontends.triton.module import Function, Operation, walk
from kdsl.frontends.triton.signature import GRID, refusal
from kdsl.ir.spec import OPS


def check_forms(function: Function) -> None:
    """Raises KdslError K0913 for an op that is read and has no form that is."""
    for operation in walk(function.body):
        check = FORMS.get(operation.name)
        if pointwise.emitter(operation.name) is not None:
            check = _pointwise
        if check is not None and not check(operation):
            raise refusal(f"{operation.name} in this form", operation)


def _shapes(operation: Operation) -> list[tuple[int, ...]]:
    return [shape(value) for value in operation.operands]


def _counts(operation: Operation, operands: int, results: int = 1) -> bool:
    return (len(operation.operands), len(operation.results)) == (operands, results)


def _pointwise(operation: Operation) -> bool:
    """All of one shape, but that one number may choose between two tiles."""
    name = operation.name
    row = pointwise.ROWS.get(name) or pointwise.UNSIGNED_ROWS.get(name)
    count = len(OPS[row].operands) if row else 2 if name in pointwise.COMPARISON_OPS else 1
    tiles = _shapes(operation)[1:] if name == "arith.select" else _shapes(operation)
    words = len(operation.words) == (name in pointwise.COMPARISON_OPS) or name in pointwise.CASTS
    return _counts(operation, count) and {*tiles} == {shape(operation.result)} and words


def _splat(operation: Operation) -> bool:
    return _counts(operation, 1) and not shape(operation.operands[0])


def _broadcast(operation: Operation) -> bool:
    if not _counts(operation, 1):
        return False
    (source,), target = _shapes(operation), shape(operation.result)
    return len(source) == len(target) and all(a in (1, b) for a, b in zip(source, target, strict=True))


def _expand_dims(operation: Operation) -> bool:
    axis = operation.attributes.get("axis")
    if not _counts(operation, 1) or not isinstance(axis, int):
        return False
    (source,), target = _shapes(operation), shape(operation.result)
    return 0 <= axis <= len(source) and target == (*source[:axis], 1, *source[axis:])


def _trans(operation: Operation) -> bool:
    order = operation.attributes.get("order")
    if not _counts(operation, 1) or not isinstance(order, tuple):
        return False
    (source,) = _shapes(operation)
    return sorted(map(str, order)) == sorted(map(str, range(len(source)))) and all(
        isinstance(old, int) and source[old] == size for old, size in zip(order, shape(operation.result), strict=True)
    )


def _reduce(operation: Operation) -> bool:
    axis, count = operation.attributes.get("axis"), len(operation.operands)
    if not isinstance(axis, int) or count == 0 or len(operation.results) != count or len(operation.regions) != 1:
        return False
    (first, *others), blocks = _shapes(operation), operation.regions[0].blocks
    if len(blocks) != 1 or not 0 <= axis < len(first) or {first, *others} != {first}:
        return False
    last = blocks[0].operations[-1] if blocks[0].operations else None
    returned = last is not None and last.name == "tt.reduce.return" and len(last.operands) == count
    kept = (*first[:axis], *first[axis + 1 :])
    return returned and len(blocks[0].arguments) == 2 * count and all(shape(each) == kept for each in operation.results)


def _dot(operation: Operation) -> bool:
    if not _counts(operation, 3):
        return False
    left, right, accumulator = _shapes(operation)
    if not 2 <= len(left) == len(right) or left[-1] != right[-2] or left[:-2] != right[:-2]:
        return False
    return accumulator == shape(operation.result) == (*left[:-1], right[-1])


def _for(operation: Operation) -> bool:
    if len(operation.operands) < 3 or len(operation.regions) != 1 or len(operation.regions[0].blocks) != 1:
        return False
    carried = [each.type for each in operation.operands[3:]]
    groups = (operation.body.arguments[1:], ended(operation.body)[1], operation.results)
    return all([each.type for each in group] == carried for group in groups)


def _grid(operation: Operation) -> bool:
    return _counts(operation, 0) and operation.words in [(letter,) for letter in GRID]


def _range(operation: Operation) -> bool:
    start = operation.attributes.get("start")
    return _counts(operation, 0) and isinstance(start, int) and abs(start) < 2**31 and len(shape(operation.result)) == 1


def _access(operation: Operation) -> bool:
    stores = operation.name == "tt.store"
    counted = len(operation.results) == 1 - stores and 1 + stores <= len(operation.operands) <= 3
    return counted and len({*_shapes(operation), *map(shape, operation.results)}) == 1


FORMS: dict[str, Callable[[Operation], bool]] = {
    "arith.constant": lambda operation: _counts(operation, 0) and len(operation.words) == 1,
    "tt.splat": _splat,
    "tt.broadcast": _broadcast,
    "tt.expand_dims": _expand_dims,
    "tt.trans": _trans,
    "tt.make_range": _range,
    "tt.get_program_id": _grid,
    "tt.get_num_programs": _grid,
    "tt.addptr": lambda operation: _counts(operation, 2) and len({*_shapes(operation), shape(operation.result)}) == 1,
    "tt.load": _access,
    "tt.store": _access,
    "tt.reduce": _reduce,
    "tt.dot": _dot,
    "scf.for": _for,
}
