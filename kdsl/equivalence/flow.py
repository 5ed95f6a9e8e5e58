"""Where values of a kernel come from: the op, what a loop carries, the inputs whose elements flow into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Kernel, Op, Value, walk


class Definitions:
    """Where each value and each named integer of a kernel comes from."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.ops: dict[str, tuple[Op, int]] = {}
        self.carried: dict[str, tuple[Value, ...]] = {}  # the values that a loop gives to what it carries
        self.named: dict[str, Value] = {}
        self._first: dict[Any, str] = {}
        self._same: dict[str, str] = {}
        for op in walk(kernel.body):
            for place, value in enumerate(op.results):
                self.ops[value.name] = op, place
            if op.name == "let":
                self.named[op.attributes["integer"]] = op.operands[0]
            elif op.name in ("for", "while"):
                self._carry(op)
            elif op.name == "load" and kernel.buffer(op.attributes["buffer"]).role == "in":
                key = op.attributes["buffer"], op.attributes["index"], op.attributes.get("bounds"), op.result.axes
                self._same[op.result.name] = self._first.setdefault(key, op.result.name)

    def _carry(self, op: Op) -> None:
        *_, body = op.regions
        for place, result in enumerate(op.results):
            sources = op.operands[place], body.ops[-1].operands[place]
            for region in op.regions:
                self.carried[region.arguments[place].name] = sources
            self.carried[result.name] = sources

    def key(self, value: Value) -> str:
        """One name for all loads of the same elements of an input."""
        return self._same.get(value.name, value.name)

    def integers_in(self, form: Expr) -> list[str]:
        """The named integers that a form hangs on, directly or by the extents of its axes."""
        seen: set[str] = set()
        pending = list(form.symbols)
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            for axis in self.kernel.axes:
                if axis.name == name:
                    pending += axis.extent.symbols
                    pending += [symbol for bound in axis.bounds for symbol in bound.symbols]
        return [integer.name for integer in self.kernel.integers if integer.name in seen]


def sources(definitions: Definitions, values: Sequence[Value]) -> tuple[frozenset[str], bool]:
    """The parameters whose elements flow into values, and whether a named integer lies on the way.

    What a value is compared with, sorted by or counted from decides, but does not flow.
    """
    found: set[str] = set()
    named, seen, pending = False, set[str](), list(values)
    while pending:
        value = pending.pop()
        if value.name in seen:
            continue
        seen.add(value.name)
        if value.name in definitions.carried:
            pending += definitions.carried[value.name]
        op, place = definitions.ops.get(value.name, (None, 0))
        if op is None or op.name in ("for", "while") or value.dtype.kind == "bool" or op.name in ("histogram",):
            continue
        if "buffer" in op.attributes:
            found.add(op.attributes["buffer"])
        elif op.name == "argument":
            found.add(op.attributes["scalar"])
        elif op.name == "index":
            for name in definitions.integers_in(op.attributes["form"]):
                named = True
                pending.append(definitions.named[name])
        elif op.name == "if":
            pending += [region.ops[-1].operands[place] for region in op.regions]
        elif op.name == "sort":
            pending.append(op.operands[place])
        elif op.name == "select":
            pending += op.operands[1:]
        elif op.name == "gather":
            pending.append(op.operands[0])
        elif not (op.name == "topk" and place == 1) and op.attributes.get("combine") not in ("argmax", "argmin"):
            pending += op.operands
    return frozenset(found), named
