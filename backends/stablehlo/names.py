"""What values are called in emitted source: the author's names, used again where the older value is done with.

`acc = ...; def step(k, acc): ...; acc = fori_loop(..., acc)` is three values and one name, as a person would write it.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kdsl.ir.kernel import Kernel, Op, Region, Value
from kdsl.ir.ops import is_pointwise

BUILTINS = ("float", "list", "max", "min", "zip")  # that the emitted module calls

_FUNCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")

# What a reduce gives, where the author did not say.
_NAMELESS = {
    "add": "total",
    "mul": "product",
    "maximum": "largest",
    "minimum": "smallest",
    "and": "all_of",
    "or": "any_of",
    "argmax": "place",
    "argmin": "place",
}


def _is_nameless(op: Op) -> bool:
    """Whether the author gave the result no name: then it has that of the op, or of the function that was called."""
    base = op.result.name.split(".")[0]
    return base == op.name or (op.name, base) == ("select", "where") or (op.name == "reduce" and base in _FUNCTIONS)


@dataclass
class _Held:
    """A value that has a Python name: where it is defined, and from where to where it is used."""

    name: str
    scope: tuple[int, ...]
    uses: tuple[int, ...]


class Names:
    """Names for the values of a kernel. `fixed` are taken everywhere: arguments, sizes, axes, modules."""

    def __init__(self, kernel: Kernel, fixed: Iterable[str]) -> None:
        self.fixed = {*fixed, *keyword.kwlist, *BUILTINS}
        self.inlined: set[str] = set()
        self.of: dict[str, str] = {}
        self._uses: dict[str, list[tuple[Op, Region]]] = {}
        self._position: dict[int, int] = {}
        self._span: dict[int, tuple[int, int]] = {}
        self._held: list[_Held] = []
        self._count = 0
        self._number(kernel.body)
        self._inline(kernel.body)
        self._name(kernel.body, ())

    def fresh(self, base: str) -> str:
        """A name that nothing has."""
        name, number = base, 0
        taken = self.fixed | {held.name for held in self._held}
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        self.fixed.add(name)
        return name

    # -- where everything is ---------------------------------------------------------------------------------------

    def _number(self, region: Region) -> None:
        """Positions in the order of the text: a loop's own is after its body, where it is called."""
        start = self._tick()
        for op in region.ops:
            for inner in op.regions:
                self._number(inner)
            self._position[id(op)] = self._tick()
            for value in op.operands:
                self._uses.setdefault(value.name, []).append((op, region))
        self._span[id(region)] = (start, self._tick())

    def _tick(self) -> int:
        self._count += 1
        return self._count

    def _inline(self, region: Region) -> None:
        """Nameless values that are used once, in their own region, are written where they are used; constants too."""
        for op in region.ops:
            for inner in op.regions:
                self._inline(inner)
            if len(op.results) != 1 or op.regions:
                continue
            uses = self._uses.get(op.result.name, [])
            nameless = _is_nameless(op)
            pure = is_pointwise(op) or op.name in ("index", "in_bounds", "broadcast", "reduce", "bitcast")
            # A loop is called with names, so that it reads as the update it is.
            once = len(uses) == 1 and uses[0][1] is region and uses[0][0].name not in ("for", "while", "yield")
            if op.name in ("constant", "argument") or (nameless and pure and once):
                self.inlined.add(op.result.name)

    def _last_uses(self, value: Value) -> tuple[int, ...]:
        """Positions at which the value is read, also by way of values that are written where they are used."""
        positions: list[int] = []
        for op, _ in self._uses.get(value.name, []):
            if op.results and op.results[0].name in self.inlined:
                positions += self._last_uses(op.results[0])
            else:
                positions.append(self._position[id(op)])
        return tuple(positions)

    # -- names -----------------------------------------------------------------------------------------------------

    def _name(self, region: Region, around: tuple[int, ...]) -> None:
        scope = (*around, id(region))
        for value in region.arguments:
            self._give(value, None, scope, self._span[id(region)][0])
        for op in region.ops:
            for inner in op.regions:
                self._name(inner, scope)
            for value in op.results:
                if value.name not in self.inlined:
                    self._give(value, op, scope, self._position[id(op)])

    def _give(self, value: Value, op: Op | None, scope: tuple[int, ...], position: int) -> None:
        base = re.sub(r"\W", "_", value.name.split(".")[0])
        if op is not None and op.name == "load" and (base == "load" or base in self.fixed):
            base = f"{op.attributes['buffer']}_tile"
        elif op is not None and op.name == "reduce" and _is_nameless(op):
            base = _NAMELESS[op.attributes["combine"]]
        name, number = base, 0
        while name in self.fixed or any(
            self._conflicts(held, scope, position) for held in self._held if held.name == name
        ):
            number += 1
            name = f"{base}_{number}"
        self._held.append(_Held(name, scope, self._last_uses(value)))
        self.of[value.name] = name

    def _conflicts(self, held: _Held, scope: tuple[int, ...], position: int) -> bool:
        """Whether assigning the name in `scope` would hide a value that is still wanted."""
        if held.scope == scope:
            return any(use > position for use in held.uses)
        if held.scope == scope[: len(held.scope)]:
            # An assignment makes the name local to the whole function: the outer value can't be read in it at all.
            start, end = self._span[scope[len(held.scope)]]
            return any(start <= use <= end for use in held.uses)
        return False
