"""Which values of a kernel decide where memory is touched, or what is run."""

from __future__ import annotations

from collections.abc import Mapping

from kdsl.ir.kernel import Kernel, Op, Value, walk
from kdsl.ir.ops import OPS


def asked(kernel: Kernel, op: Op) -> tuple[Value, ...]:
    """The operands of an op that are an address, a mask, a condition or a limit."""
    if op.name in ("if", "let", "assert"):
        return op.operands
    if op.name == "while":
        return op.regions[0].ops[-1].operands
    if "buffer" in op.attributes and "index" not in op.attributes:
        indices = len(kernel.buffer(op.attributes["buffer"]).shape) + bool(op.attributes.get("masked"))
        return op.operands[len(op.operands) - indices :]
    return ()


def deciding(kernel: Kernel) -> frozenset[str]:
    """The names of all values that `asked` gives, and of those that they are computed from."""
    sources = _sources(kernel)
    found: set[str] = set()
    left = [value.name for op in walk(kernel.body) for value in asked(kernel, op)]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += sources.get(name, ())
    return frozenset(found)


def _sources(kernel: Kernel) -> Mapping[str, list[str]]:
    """What each value comes from: operands, and what regions carry and yield."""
    sources: dict[str, list[str]] = {}

    def add(targets: tuple[Value, ...], values: tuple[Value, ...]) -> None:
        for target, value in zip(targets, values, strict=False):
            sources.setdefault(target.name, []).append(value.name)

    for op in walk(kernel.body):
        if op.regions and OPS[op.name].padding == "region":
            bodies = op.regions if op.name != "while" else op.regions[1:]
            for region in op.regions:
                add(region.arguments, op.operands)
            for body in bodies:
                add(op.results, body.ops[-1].operands)
                for region in op.regions:
                    add(region.arguments, body.ops[-1].operands)
            continue
        for result in op.results:
            sources.setdefault(result.name, []).extend(value.name for value in op.operands)
    return sources
