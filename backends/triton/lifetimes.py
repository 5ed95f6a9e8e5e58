"""Which values need a variable of their own: what is written into its user, and what shares a variable.

Positions count ops in the order of the text. A use inside a loop of what comes from outside lasts until the loop ends.
"""

from __future__ import annotations

from kdsl.codegen.layout import Layout
from kdsl.ir.kernel import Kernel, Op, Region, Value
from kdsl.ir.ops import is_pointwise

from .limits import IMMEDIATE_OPS

INLINABLE = frozenset(
    [
        "dot",
        "dot_scaled",
        "reduce",
        "reshape",
        "bitcast",
        "scan",
        "gather",
        "flip",
        "concat",
        "join",
        "relabel",
        "histogram",
    ]
)
# What the front end calls a value that the author gave no name: as the function that made it.
FUNCTION_NAMES: dict[str, set[str]] = {
    "reduce": {"sum", "prod", "max", "min", "all", "any", "argmax", "argmin"},
    "select": {"where"},
}
# What writes its operands somewhere else than where it stands, or more than once.
NEEDS_NAMES = frozenset(["yield", "for", "while", "reduce_by", "scan_by", "sort", "topk", "histogram", "atomic"])
# How many ops one expression may hold before it gets a name.
LARGEST_EXPRESSION = 4


def base_name(value: Value) -> str:
    """The name that the builder was given, without the number that made it unique."""
    return value.name.split(".")[0]


class Lifetimes:
    def __init__(self, kernel: Kernel, layouts: dict[str, Layout]) -> None:
        self.layouts = layouts
        self._definition: dict[str, Op] = {}
        self._region: dict[str, Region] = {}  # value -> where it is defined
        self._users: dict[str, list[tuple[Op, Region]]] = {}
        self._position: dict[int, int] = {}  # id of an op -> its place in the text
        self._loops: dict[int, list[tuple[Op, Region]]] = {}  # id of a region -> the loops around it, outermost first
        self._weight: dict[str, int] = {}
        self._group: dict[str, list[Value]] = {}
        self._walk(kernel.body, [])
        for op, region in self._ops:
            if self._may_inline(op, region):
                self._weight[op.result.name] = self._weigh(op)
        for op, _ in self._ops:
            if op.name in ("for", "while"):
                self._share(op)
            if op.name == "if":
                self._share_branches(op)

    def immediate(self, op: Op) -> bool:
        """Whether the op's expression is written wherever it is used: a number, a size, a mask."""
        if op.name != "cast":
            return op.name in IMMEDIATE_OPS
        made_by = self._definition.get(op.operands[0].name)
        return made_by is not None and made_by.name in IMMEDIATE_OPS and not op.result.axes

    def inlined(self, op: Op) -> bool:
        """Whether the op's expression is written into the one op that uses it."""
        return len(op.results) == 1 and op.result.name in self._weight

    def inlined_op(self, value: Value, name: str) -> Op | None:
        """The op that makes a value, if it is of that name and inlined."""
        op = self._definition.get(value.name)
        return op if op is not None and op.name == name and self.inlined(op) else None

    def used(self, value: Value) -> bool:
        """Whether an op takes the value."""
        return bool(self._users.get(value.name))

    def shared(self, value: Value, other: Value) -> bool:
        """Whether two values have one variable."""
        return self.leader(value) == self.leader(other)

    def leader(self, value: Value) -> Value:
        """The value that stands for all that share its variable."""
        return self._group[value.name][0] if value.name in self._group else value

    def wanted_name(self, value: Value) -> str:
        op = self._definition.get(value.name)
        if op is not None and op.name == "load" and base_name(value) == "load":
            return str(op.attributes["buffer"])
        return base_name(value)

    # -- the walk --------------------------------------------------------------------------------------------------

    _ops: list[tuple[Op, Region]]

    def _walk(self, region: Region, loops: list[tuple[Op, Region]]) -> None:
        if not loops:
            self._ops = []
        self._loops[id(region)] = loops
        for argument in region.arguments:
            self._region[argument.name] = region
        for op in region.ops:
            self._position[id(op)] = len(self._ops)
            self._ops.append((op, region))
            for value in op.operands:
                self._users.setdefault(value.name, []).append((op, region))
            for inner in op.regions:
                self._walk(inner, [*loops, (op, inner)])
            for value in op.results:
                self._definition[value.name], self._region[value.name] = op, region

    # -- inlining --------------------------------------------------------------------------------------------------

    def _may_inline(self, op: Op, region: Region) -> bool:
        if self.immediate(op) or (op.name not in INLINABLE and not is_pointwise(op)):
            return False
        users = self._users.get(op.result.name, [])
        if len(users) != 1 or users[0][1] is not region or users[0][0].name in NEEDS_NAMES:
            return False
        # What the author gave no name is called as its op; what a pass made, as what it was made from.
        unnamed = {op.name, *FUNCTION_NAMES.get(op.name, ()), *(base_name(value) for value in op.operands)}
        return base_name(op.result) in unnamed and self._weigh(op) <= LARGEST_EXPRESSION

    def _weigh(self, op: Op) -> int:
        return 1 + sum(self._weight.get(value.name, 0) for value in op.operands)

    def _written_at(self, op: Op) -> int:
        """The position of the statement that an op is part of."""
        while self.inlined(op):
            op = self._users[op.result.name][0][0]
        return self._position[id(op)]

    # -- sharing ---------------------------------------------------------------------------------------------------

    def _last_use(self, value: Value) -> int:
        own = self._loops[id(self._region[value.name])]
        last = -1
        for op, region in self._users.get(value.name, []):
            around = self._loops[id(region)]
            if len(around) > len(own):
                outermost_body = around[len(own)][1]
                last = max(last, self._position[id(outermost_body.ops[-1])])
            else:
                last = max(last, self._written_at(op))
        return last

    def _share(self, loop: Op) -> None:
        *tests, body = loop.regions
        yielded = body.ops[-1].operands
        places = zip(body.arguments, loop.operands, yielded, loop.results, strict=True)
        for place, (argument, initial, final, result) in enumerate(places):
            group = self._group.setdefault(argument.name, [argument])
            for other in (*(test.arguments[place] for test in tests), result):
                self._group[other.name] = group
                group.append(other)
            if self._initial_may_share(loop, initial, argument):
                self._join(initial, argument)
            if self._final_may_share(body, final, argument):
                self._join(final, argument)

    def _share_branches(self, op: Op) -> None:
        """What a branch yields is written to the result's variable where it is made, if only this branch has it."""
        for region in op.regions:
            for result, final in zip(op.results, region.ops[-1].operands, strict=True):
                self._group.setdefault(result.name, [result])
                if self._may_be_written_as(result, region, final):
                    self._join(final, result)

    def _may_be_written_as(self, result: Value, region: Region, final: Value) -> bool:
        op, others = self._definition.get(final.name), [v for v in self._group[result.name] if v != result]
        return (
            op is not None
            and self._has_variable(final)
            and self._region[final.name] is region
            and final.name not in self._group
            and self.layouts[final.name] == self.layouts[result.name]
            and region.ops[-1].operands.count(final) == 1
            and all(self._last_use(other) <= self._position[id(op)] for other in others)
        )

    def _initial_may_share(self, loop: Op, initial: Value, argument: Value) -> bool:
        """Whether the value before the loop is needed for nothing else."""
        members = self._group.get(initial.name, [initial])
        return (
            self._has_variable(initial)
            and self.layouts[initial.name] == self.layouts[argument.name]
            and loop.operands.count(initial) == 1
            and all(self._last_use(member) <= self._position[id(loop)] for member in members)
        )

    def _final_may_share(self, body: Region, final: Value, argument: Value) -> bool:
        """Whether the old value is no longer needed where the new one is made."""
        op = self._definition.get(final.name)
        return (
            op is not None
            and self._has_variable(final)
            and self._region[final.name] is body
            and final.name not in self._group
            and self.layouts[final.name] == self.layouts[argument.name]
            and body.ops[-1].operands.count(final) == 1
            and self._last_use(argument) <= self._position[id(op)]
        )

    def _has_variable(self, value: Value) -> bool:
        op = self._definition.get(value.name)
        return op is None or not (self.immediate(op) or self.inlined(op))

    def _join(self, value: Value, argument: Value) -> None:
        members = [*self._group[argument.name], *self._group.get(value.name, [value])]
        for member in members:
            self._group[member.name] = members
