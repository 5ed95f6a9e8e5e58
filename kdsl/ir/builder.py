"""Building kernels: ops are appended with their types inferred from the op table, and get readable, unique names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from kdsl.diagnostics import Location
from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Axis, Integer, Kernel, Op, Region, Value
from kdsl.ir.ops import OPS
from kdsl.ir.statement import Statement

_KIND_ORDER = {"program": 0, "loop": 1, "tile": 2}


@dataclass
class Snapshot:
    """The builder's state, to go back to when a loop's body has to be built again."""

    kernel: Kernel
    names: dict[str, int]
    unnamed: set[str]
    ops: list[Op]


class Builder:
    """Appends ops to a kernel's body or to the region that is open."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.ops: list[Op] = []
        self.names: dict[str, int] = {}
        self.unnamed: set[str] = set()  # values that have only their op's name so far
        self.location: Location | None = kernel.location
        self.statement: Statement | None = None

    def add_axis(self, axis: Axis) -> Axis:
        """Declare an axis. Program axes come first, then loop axes, then tile axes."""
        axes = sorted((*self.kernel.axes, axis), key=lambda other: _KIND_ORDER[other.kind])
        self.kernel = replace(self.kernel, axes=tuple(axes))
        return axis

    def name_integer(self, name: str, value: Value) -> Integer:
        """Declare an integer that varies as the value does, and append the `let` that names it."""
        integer = Integer(name, value.axes)
        self.kernel = replace(self.kernel, integers=(*self.kernel.integers, integer))
        self.effect("let", (value,), {"integer": name})
        return integer

    def fresh(self, hint: str) -> str:
        """A value name that is not used yet: the hint itself, or the hint with a number."""
        hint = hint.split(".")[0]  # what follows is a number of ours
        count = self.names.get(hint, 0)
        self.names[hint] = count + 1
        return f"{hint}.{count}" if count else hint

    def emit(
        self,
        name: str,
        operands: Sequence[Value] = (),
        attributes: Mapping[str, Any] | None = None,
        *,
        dtype: DType | None = None,
        hint: str = "",
        alias: str = "",
    ) -> Value:
        """Append an op with one result and give that. `dtype` is the result's, for ops that do not fix it.

        `hint` is the result's name; without one it is called `alias`, or as the op, until `rename_last`.

        Raises OpTypeError where the op's row forbids the operands.
        """
        placeholder = (Value("", dtype),) if dtype is not None else ()
        # One NaN object, so that kernels that hold a NaN compare equal.
        given = {key: math.nan if value != value else value for key, value in (attributes or {}).items()}
        op = Op(name, tuple(operands), placeholder, given, (), self.location, self.statement)
        ((result_dtype, axes),) = OPS[name].infer(self.kernel, op)
        result = Value(self.fresh(hint or alias or name), result_dtype, axes)
        self.ops.append(replace(op, results=(result,)))
        if not hint:
            self.unnamed.add(result.name)
        return result

    def effect(self, name: str, operands: Sequence[Value], attributes: Mapping[str, Any]) -> None:
        """Append an op without results."""
        op = Op(name, tuple(operands), (), attributes, (), self.location, self.statement)
        OPS[name].infer(self.kernel, op)
        self.ops.append(op)

    def rename_last(self, value: Value, hint: str) -> Value:
        """Give the value a better name, if the last op made it and nothing has named it yet."""
        last = self.ops[-1] if self.ops else None
        if last is None or last.results != (value,) or value.name not in self.unnamed:
            return value
        self.unnamed.remove(value.name)
        self.names[re.sub(r"\.\d+$", "", value.name)] -= 1  # as if it had never had that name
        renamed = replace(value, name=self.fresh(hint))
        self.ops[-1] = replace(last, results=(renamed,))
        return renamed

    @contextmanager
    def region(self) -> Iterator[list[Op]]:
        """Collect the ops appended inside, instead of appending them to the region around."""
        outer, self.ops = self.ops, []
        try:
            yield self.ops
        finally:
            self.ops = outer

    def emit_all(
        self,
        name: str,
        operands: Sequence[Value],
        attributes: Mapping[str, Any],
        hints: Sequence[str],
        regions: Sequence[Region] = (),
        asked: bool = False,
    ) -> tuple[Value, ...]:
        """Append an op with any number of results, named by the hints, and with regions; gives its results.

        `asked` is for ops that have a result only if it is asked for.

        Raises OpTypeError where the op's row forbids the operands.
        """
        placeholder = (Value("", operands[0].dtype),) if asked else ()
        op = Op(name, tuple(operands), placeholder, attributes, tuple(regions), self.location, self.statement)
        types = OPS[name].infer(self.kernel, op)
        results = tuple(Value(self.fresh(hint), dtype, axes) for hint, (dtype, axes) in zip(hints, types, strict=True))
        self.ops.append(replace(op, results=results))
        return results

    def loop(
        self, axis: str, initial: Sequence[Value], arguments: Sequence[Value], ops: Sequence[Op], hints: Sequence[str]
    ) -> tuple[Value, ...]:
        """Append a `for` whose body, ending in a yield, is given; gives its results."""
        return self.emit_all("for", initial, {"axis": axis}, hints, (Region(tuple(arguments), tuple(ops)),))

    def snapshot(self) -> Snapshot:
        return Snapshot(self.kernel, dict(self.names), set(self.unnamed), list(self.ops))

    def restore(self, snapshot: Snapshot) -> None:
        self.kernel, self.names, self.unnamed = snapshot.kernel, dict(snapshot.names), set(snapshot.unnamed)
        self.ops[:] = snapshot.ops  # in place: an open region's list stays that region's

    def finish(self) -> Kernel:
        """The kernel with what has been appended as its body."""
        return replace(self.kernel, body=Region((), tuple(self.ops)))
