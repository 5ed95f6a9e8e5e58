"""What must hold in any TTIR that Triton's verifier lets pass, checked on our reading of it."""

from __future__ import annotations

import math

from kdsl.frontends.triton.module import Block, Function, Operation, Region, Value
from kdsl.frontends.triton.types import BOOL, Pointer, Tensor, Type

# Of these the operands or the result differ in type from the rest.
UNLIKE = ("arith.cmp", "arith.select", "arith.constant", "arith.ext", "arith.trunc", "arith.sitofp", "arith.uitofp")
UNLIKE += ("arith.fpto", "arith.bitcast", "arith.index_cast")


def shape(type: Type) -> tuple[int, ...]:
    return type.shape if isinstance(type, Tensor) else ()


def element(type: Type) -> Type:
    return type.element if isinstance(type, Tensor) else type


def types(values: tuple[Value, ...]) -> list[Type]:
    return [value.type for value in values]


def check_function(function: Function) -> None:
    check_region(function.body, set(), None)
    for block in function.body.blocks:
        last = block.operations[-1]
        if last.name == "tt.return":
            assert types(last.operands) == list(function.results)


def check_region(region: Region, visible: set[Value], owner: Operation | None) -> None:
    blocks = {block.label: block for block in region.blocks}
    reached = visible.copy()
    for block in region.blocks:
        if len(region.blocks) > 1:  # Triton prints a block after those that it can be reached from
            reached |= {value for each in region.blocks for value in each.arguments}
        seen = reached | set(block.arguments)
        for operation in block.operations:
            assert set(operation.operands) <= seen, f"line {operation.line}: an operand is not defined yet"
            check_operation(operation, block, owner)
            for label, values in operation.successors:
                assert set(values) <= seen
                assert types(values) == types(blocks[label].arguments)
            for inner in operation.regions:
                check_region(inner, seen, operation)
            seen |= set(operation.results)
        reached |= seen


def check_operation(operation: Operation, block: Block, owner: Operation | None) -> None:
    name, operands, results = operation.name, types(operation.operands), types(operation.results)
    where = f"line {operation.line}: {name} of {operands} gives {results}"
    if name.startswith(("arith.", "math.")) and not name.startswith(UNLIKE):
        assert len({*operands, *results}) == 1, where
    elif name.startswith("arith.cmp"):
        assert operands[0] == operands[1], where
        assert element(results[0]) == BOOL and shape(results[0]) == shape(operands[0]), where
    elif name == "arith.select":
        assert operands[1] == operands[2] == results[0] and element(operands[0]) == BOOL, where
    elif name in ("tt.load", "tt.store"):
        pointer = element(operands[0])
        moved = results[0] if name == "tt.load" else operands[1]
        mask = operands[1:2] if name == "tt.load" else operands[2:]
        assert isinstance(pointer, Pointer) and element(moved) == pointer.pointee, where
        assert {shape(moved), *map(shape, mask)} == {shape(operands[0])} and {*map(element, mask)} <= {BOOL}, where
    elif name == "tt.addptr":
        assert results[0] == operands[0] and shape(operands[0]) == shape(operands[1]), where
    elif name in ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape"):
        assert element(operands[0]) == element(results[0]), where
        if name not in ("tt.splat", "tt.broadcast"):
            assert math.prod(shape(operands[0])) == math.prod(shape(results[0])), where
    elif name == "tt.dot":
        (*batch, m, k), (*_, n) = shape(operands[0]), shape(operands[1])
        assert shape(operands[1])[-2] == k and shape(results[0]) == (*batch, m, n) and operands[2] == results[0], where
    elif name in ("tt.reduce", "tt.scan"):
        assert types(operation.body.arguments) == [element(type) for type in operands] * 2, where
        assert types(operation.body.operations[-1].operands) == [element(type) for type in results], where
    elif name == "scf.yield" and owner is not None:
        expected = types(owner.operands) if owner.name == "scf.while" else types(owner.results)
        assert operands == expected, where
    elif name == "scf.condition" and owner is not None:
        assert operands[0] == BOOL and operands[1:] == types(owner.results), where
        assert operands[1:] == types(owner.regions[1].blocks[0].arguments), where
    elif name == "scf.for":
        assert types(block_arguments(operation)) == [operands[0], *operands[3:]] and operands[3:] == results, where


def block_arguments(operation: Operation) -> tuple[Value, ...]:
    return operation.body.arguments
