"""From names to values: what each op reads, the types of its results, and the place in the author's source.

A name is visible after its op, in the regions of later ops too, and from one block to another of the same region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdsl.frontends.triton.module import Attribute, Block, Function, Module, Operation, Place, Region, Value
from kdsl.frontends.triton.places import Places
from kdsl.frontends.triton.problems import Problem
from kdsl.frontends.triton.raw import Argument, RawBlock, RawOperation, RawRegion
from kdsl.frontends.triton.types import (
    BOOL,
    Scalar,
    Type,
    like,
    parse_descriptor,
    pointed_at,
)


def resolve_module(
    operations: list[RawOperation], attributes: Mapping[str, Attribute], aliases: Mapping[str, str]
) -> Module:
    """The module, with every name resolved and every type checked that is written twice. Raises Problem."""
    resolver = _Resolver(Places(aliases), {str(raw.words[-1]) for raw in operations if raw.words})
    functions = tuple(resolver.function(raw) for raw in operations)
    if not any(function.public for function in functions):
        raise Problem("expected a public function: a kernel")
    return Module(tuple(sorted(functions, key=lambda each: not each.public)), attributes)


class _Scope:
    """The names visible in a region."""

    def __init__(self, parent: _Scope | None) -> None:
        self.parent = parent
        self.values: dict[str, Value] = {}

    def find(self, name: str) -> Value | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        return None

    def define(self, value: Value) -> None:
        if self.find(value.name) is not None:
            raise Problem(f"{value} is defined twice")
        self.values[value.name] = value


class _Resolver:
    def __init__(self, places: Places, functions: set[str]) -> None:
        self.places = places
        self.functions = functions

    def function(self, raw: RawOperation) -> Function:
        if raw.name != "tt.func" or len(raw.regions) != 1 or not raw.words:
            raise Problem("expected `tt.func` with a name and a body", raw.line, raw.column)
        try:
            place = self.places.find(raw.location) if raw.location else None
            arguments = tuple(self.argument(each) for each in raw.arguments)
        except Problem as problem:
            raise _at(problem, raw) from None
        body = self.region(raw.regions[0], None, arguments)
        return Function(
            str(raw.words[-1]),
            arguments,
            tuple(each.attributes for each in raw.arguments),
            tuple(raw.returned or ()),
            "public" in raw.words[:-1],
            raw.attributes,
            body,
            raw.line,
            place,
        )

    def argument(self, raw: Argument) -> Value:
        place = self.places.find(raw.location) if raw.location else None
        return Value(raw.name, raw.type, place.names[0] if place and place.names else None)

    def region(self, raw: RawRegion, parent: _Scope | None, given: tuple[Value, ...]) -> Region:
        """A region, whose first block takes the values `given` by its op where it declares no arguments itself."""
        scope = _Scope(parent)
        arguments, results = [], {}
        for index, block in enumerate(raw.blocks):
            own = tuple(self.argument(each) for each in block.arguments)
            arguments.append(given if index == 0 and given and not own else own)
            for value in arguments[-1]:
                scope.define(value)
            for operation in block.operations:
                try:
                    results[id(operation)] = self.results(operation)
                    for value in results[id(operation)]:
                        scope.define(value)
                except Problem as problem:
                    raise _at(problem, operation) from None
        blocks = tuple(
            Block(block.label, own, self.block(block, scope, results))
            for block, own in zip(raw.blocks, arguments, strict=True)
        )
        _check_successors(blocks, raw.blocks)
        return Region(blocks)

    def block(self, raw: RawBlock, scope: _Scope, results: Mapping[int, tuple[Value, ...]]) -> tuple[Operation, ...]:
        """The ops in order. Those of other blocks may be printed later and yet come before."""
        for operation in raw.operations:
            for value in results[id(operation)]:
                del scope.values[value.name]
        done = []
        for operation in raw.operations:
            try:
                done.append(self.operation(operation, scope, results[id(operation)]))
            except Problem as problem:
                raise _at(problem, operation) from None
            for value in results[id(operation)]:
                scope.values[value.name] = value
        return tuple(done)

    def results(self, raw: RawOperation) -> tuple[Value, ...]:
        if not raw.results:
            return ()
        types = _result_types(raw)
        if len(types) == 1:
            types = types * len(raw.results)  # one type stands for all: tt.split
        if len(types) != len(raw.results):
            raise Problem(f"{raw.name} has {len(raw.results)} results and {len(types)} types for them")
        place = self.places.find(raw.location) if raw.location else None
        titles = _titles(place, len(raw.results))
        return tuple(Value(*each) for each in zip(raw.results, types, titles, strict=True))

    def operation(self, raw: RawOperation, scope: _Scope, results: tuple[Value, ...]) -> Operation:
        operands = _found(scope, [*raw.operands, *(initial for _, initial in raw.bindings)])
        _check_types(raw, operands)
        if raw.name == "tt.call" and (not raw.words or raw.words[0] not in self.functions):
            raise Problem(f"the function {raw.words[0] if raw.words else ''} is not defined")
        given = self.given(raw, operands, results)
        return Operation(
            raw.name,
            operands,
            results,
            tuple(raw.words),
            raw.attributes,
            tuple(self.region(each, scope, given if index == 0 else ()) for index, each in enumerate(raw.regions)),
            tuple((label, _found(scope, names)) for label, names in raw.successors),
            raw.line,
            self.places.find(raw.location) if raw.location else None,
        )

    def given(self, raw: RawOperation, operands: tuple[Value, ...], results: tuple[Value, ...]) -> tuple[Value, ...]:
        """What the op itself defines in its first region: a loop counter, and what is carried."""
        counter: tuple[Value, ...] = ()
        if raw.induction is not None:
            if len(operands) != 3 + len(raw.bindings):
                raise Problem("expected a lower bound, an upper bound and a step")
            counter = (Value(raw.induction, operands[0].type),)
            if len(results) != len(raw.bindings):
                raise Problem(f"the loop carries {len(raw.bindings)} values and has {len(results)} results")
        initial = operands[len(operands) - len(raw.bindings) :]
        titles = [value.title for value in results] if len(results) == len(initial) else [None] * len(initial)
        carried = zip(raw.bindings, initial, titles, strict=True)
        return counter + tuple(Value(name, value.type, title) for (name, _), value, title in carried)


def _found(scope: _Scope, names: list[str]) -> tuple[Value, ...]:
    found = []
    for name in names:
        value = scope.find(name)
        if value is None:
            raise Problem(f"{name} is used before it is defined")
        found.append(value)
    return tuple(found)


def _at(problem: Problem, raw: RawOperation) -> Problem:
    return problem if problem.line is not None else Problem(str(problem), raw.line, raw.column)


def _titles(place: Place | None, count: int) -> tuple[str | None, ...]:
    names = place.names if place is not None else ()
    if count == 1 and names:
        return names[:1]
    # An op with several results has the name of each around the one before it.
    return tuple(reversed(names)) if len(names) == count else (None,) * count


# The types of results where they are not written: in terms of the types of operands that are.
_RESULT_TYPES: dict[str, Callable[[RawOperation], list[Type]]] = {
    "arith.constant": lambda raw: raw.written or [BOOL],  # `arith.constant true`
    "arith.cmpi": lambda raw: [like(type, BOOL) for type in raw.written[:1]],
    "arith.cmpf": lambda raw: [like(type, BOOL) for type in raw.written[:1]],
    "arith.addui_extended": lambda raw: raw.written,
    "tt.addptr": lambda raw: raw.written[:1],
    "tt.load": lambda raw: [pointed_at(type) for type in raw.written[:1]],
    "tt.make_tensor_descriptor": lambda raw: [parse_descriptor(text) for text in raw.short_types[-1:]],
}


def _result_types(raw: RawOperation) -> list[Type]:
    if raw.returned is not None:
        return raw.returned
    if not raw.written and not raw.short_types and raw.name != "arith.constant":
        raise Problem(f"{raw.name} has results, and no type for them")
    return _RESULT_TYPES[raw.name](raw) if raw.name in _RESULT_TYPES else raw.written[-1:]


def _check_types(raw: RawOperation, operands: tuple[Value, ...]) -> None:
    """Types that an op states of its operands are those that the operands were defined with."""
    stated: list[Type] = []
    if raw.returned is not None and raw.induction is None and len(raw.written) == len(operands):
        stated = raw.written
    elif len(raw.written) == 1 and raw.name.startswith(("arith.", "math.")) and raw.returned is None:
        stated = raw.written * len(operands)
        if raw.name == "arith.select" and operands:
            stated[0] = operands[0].type if operands[0].type in (BOOL, like(raw.written[0], BOOL)) else stated[0]
    for value, type in zip(operands, stated, strict=bool(stated)):
        if value.type != type:
            raise Problem(f"{value} is {value.type}, and {raw.name} takes {type}")
    if raw.induction is not None and any(value.type != _counter_type(raw) for value in operands[:3]):
        raise Problem(f"the bounds and the step of the loop are not {_counter_type(raw)}")


def _counter_type(raw: RawOperation) -> Type:
    return raw.written[0] if raw.written else Scalar("index")  # which the printer leaves out


def _check_successors(blocks: tuple[Block, ...], raw_blocks: list[RawBlock]) -> None:
    """Branches go to blocks of the region, and hand over what those take."""
    by_label = {block.label: block for block in blocks}
    if len(by_label) != len(blocks):
        raise Problem("two blocks of a region have the same label")
    for block, raw_block in zip(blocks, raw_blocks, strict=True):
        for operation, raw in zip(block.operations, raw_block.operations, strict=True):
            for label, values in operation.successors:
                if label not in by_label:
                    raise Problem(f"there is no block {label}", raw.line, raw.column)
                taken = [argument.type for argument in by_label[label].arguments]
                if taken != [value.type for value in values]:
                    raise Problem(f"{label} takes other values than it is given", raw.line, raw.column)
