"""Which dimensions of the tiles of a TTIR function are one axis: unified across ops, by union and find.

An op lines the dimensions of its operands up with those of its result, and they become one class. Two dimensions of one
tile never do: where that would happen (an arange along rows and along columns, a tile plus its own transpose), they
stay apart, and the importer moves lanes there with `relabel`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.frontends.triton.module import Block, Function, Operation, Value, walk
from kdsl.frontends.triton.types import Tensor

Node = tuple[Value, int]


def ended(block: Block) -> tuple[tuple[Operation, ...], tuple[Value, ...]]:
    """The ops of a loop's body, and what it yields: the printer leaves out a yield of nothing."""
    if block.operations and block.operations[-1].name == "scf.yield":
        return block.operations[:-1], block.operations[-1].operands
    return block.operations, ()


def shape(value: Value) -> tuple[int, ...]:
    """The shape of a tile; none for a number."""
    return value.type.shape if isinstance(value.type, Tensor) else ()


class DimensionClasses:
    """The classes of dimensions; one of a single lane is in no class."""

    def __init__(self, function: Function) -> None:
        self._parents: dict[Node, Node] = {}
        self._members: dict[Node, dict[Value, int]] = {}  # of each class, by the node that stands for it
        # One arange often serves rows and columns. What is decided first stays: the dimensions of tiles. So lanes are
        # moved, where they must be, in the one-dimensional index, before it is expanded.
        operations = list(walk(function.body))
        for operation in sorted(operations, key=lambda each: each.name == "tt.expand_dims"):
            self._unify_operation(operation)

    def find(self, value: Value, dimension: int) -> Node:
        """What stands for the class of a dimension."""
        node = (value, dimension)
        if node not in self._parents:
            self._parents[node] = node
            self._members[node] = {value: dimension}
        while self._parents[node] != node:
            self._parents[node] = self._parents[self._parents[node]]
            node = self._parents[node]
        return node

    def unify(self, first: Node, second: Node) -> None:
        """Make two classes one, unless a value has dimensions in both."""
        if shape(first[0])[first[1]] != shape(second[0])[second[1]] or shape(first[0])[first[1]] == 1:
            return
        kept, gone = self.find(*first), self.find(*second)
        if kept == gone:
            return
        if len(self._members[kept]) < len(self._members[gone]):
            kept, gone = gone, kept
        if any(value in self._members[kept] for value in self._members[gone]):
            return
        self._parents[gone] = kept
        self._members[kept] |= self._members.pop(gone)

    def _same(self, first: Value, second: Value) -> None:
        self._along(first, second, range(len(shape(first))))

    def _along(self, source: Value, target: Value, order: Sequence[int]) -> None:
        """The target's dimension d is the source's dimension order[d]."""
        if len(order) == len(shape(target)):
            for dimension, other in enumerate(order):
                self.unify((source, other), (target, dimension))

    def _unify_operation(self, operation: Operation) -> None:
        match operation.name:
            case "tt.expand_dims":
                (source,), axis = operation.operands, operation.attributes.get("axis")
                for dimension in range(len(shape(source))):
                    moved = dimension + (isinstance(axis, int) and dimension >= axis)
                    self.unify((source, dimension), (operation.result, moved))
            case "tt.trans":
                order = operation.attributes.get("order")
                if isinstance(order, tuple):
                    self._along(
                        operation.operands[0], operation.result, [each for each in order if isinstance(each, int)]
                    )
            case "tt.reduce":
                axis = operation.attributes.get("axis")
                for source in operation.operands[1:]:
                    self._same(operation.operands[0], source)
                for source, result in zip(operation.operands, operation.results, strict=True):
                    self._along(source, result, [each for each in range(len(shape(source))) if each != axis])
            case "tt.dot":
                left, right, accumulator = operation.operands
                *batch, rows, inner = range(len(shape(left)))
                for dimension in batch:
                    self.unify((left, dimension), (right, dimension))
                self.unify((left, inner), (right, rows))
                self._same(accumulator, operation.result)
                self._along(left, operation.result, [*batch, rows])
                for dimension in (*batch, rows):
                    self.unify((left, dimension), (operation.result, dimension))
                self.unify((right, inner), (operation.result, inner))
            case "scf.for":
                carried = operation.body.arguments[1:]
                yielded = ended(operation.body)[1]
                for values in zip(operation.operands[3:], carried, yielded, operation.results, strict=True):
                    for other in values[1:]:
                        self._same(values[0], other)
            case _ if not operation.regions:
                tiles = [value for value in (*operation.results, *operation.operands) if shape(value)]
                for other in tiles[1:]:
                    if len(shape(other)) == len(shape(tiles[0])):
                        self._same(tiles[0], other)
