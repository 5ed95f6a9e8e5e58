"""Which inputs an exponential sees, and as what: a term of its argument, or a factor of a dot that is one.

Found by walking back from each exponential through the ops that keep differences: exact inputs are chosen by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kdsl.ir.kernel import Kernel, Op, Value, walk

_EXPONENTIALS = frozenset({"exp", "exp2"})
_TRANSPARENT = frozenset({"add", "sub", "mul", "neg", "maximum", "minimum", "cast", "select", "reduce", "broadcast"})
Place = Literal["term", "left", "right"]


@dataclass(frozen=True)
class Logit:
    """How an input's elements are drawn: `sign` * STEP with probability `density`, else 0.

    The most frequent logit must be the largest one, so that many lanes share it and their weights are 1: then a lane
    that is dropped, or one too many, changes the count.
    """

    sign: float
    density: float


def logits(kernel: Kernel) -> dict[str, Logit]:
    """The inputs of a bound kernel that reach an exponential, by name."""
    definitions = _definitions(kernel)
    found: dict[str, Logit] = {}
    seen: set[tuple[str, Place]] = set()
    pending: list[tuple[Value, Place, float]] = [
        (op.operands[0], "term", 1.0) for op in walk(kernel.body) if op.name in _EXPONENTIALS
    ]
    while pending:
        value, place, terms = pending.pop()
        if (value.name, place) in seen:
            continue
        seen.add((value.name, place))
        for source in definitions.get(value.name, ()):
            if isinstance(source, Value):
                pending.append((source, place, terms))
            elif source.name == "load":
                found.setdefault(source.attributes["buffer"], _logit(place, terms))
            elif source.name in _TRANSPARENT:
                operands = source.operands[1:] if source.name == "select" else source.operands
                pending += [(operand, place, terms) for operand in operands]
            elif source.name == "dot" and place == "term":
                extent = float(int(kernel.axis(source.attributes["axis"]).extent.evaluate({})))
                pending += [(source.operands[0], "left", extent), (source.operands[1], "right", extent)]
    return found


def _logit(place: Place, terms: float) -> Logit:
    if place == "term":
        return Logit(-1.0, 0.5)
    # Half of all dots of `terms` products are 0, the others are negative.
    density = math.sqrt(min(1.0, math.log(2) / max(terms, 1.0)))
    return Logit(1.0 if place == "left" else -1.0, density)


def _definitions(kernel: Kernel) -> dict[str, list[Op | Value]]:
    """Where each value comes from: its op, or for what a loop carries the values that it is given."""
    found: dict[str, list[Op | Value]] = {}
    for op in walk(kernel.body):
        if op.name != "for":
            for value in op.results:
                found[value.name] = [op]
            continue
        for carried, sources in _carried(op):
            found[carried.name] = list(sources)
    return found


def _carried(op: Op) -> Iterator[tuple[Value, tuple[Value, ...]]]:
    (body,) = op.regions
    final = body.ops[-1].operands
    for result, initial, argument, value in zip(op.results, op.operands, body.arguments, final, strict=True):
        yield argument, (initial, value)
        yield result, (initial, value)
