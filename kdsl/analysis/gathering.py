"""gatherings: which carried values of a loop only gather what the iterations give, so that their order is free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kdsl.ir.kernel import Op, Region, Value, walk

# Ops that a reduction combines with, by the same name.
COMBINING = ("add", "maximum", "minimum", "and", "or")


@dataclass(frozen=True)
class Gathering:
    """A carried value c that becomes combine(c, f), where f needs nothing that is carried.

    `result` names the combined value, `place` is f's place among its operands; `maker` is the op of the loop's body
    that makes f (None if it comes from outside), and `used_once` whether nothing else uses f.
    """

    combine: str
    result: str
    place: int
    maker: Op | None
    used_once: bool


def gatherings(loop: Op) -> Iterator[tuple[Value, Gathering | Op | None]]:
    """Each carried value of a `for` with how it is gathered: None if it never changes, or the op that forbids it."""
    (body,) = loop.regions
    makers = {value.name: op for op in body.ops for value in op.results}
    uses: dict[str, int] = {}
    for op in walk(body):
        for value in op.operands:
            uses[value.name] = uses.get(value.name, 0) + 1
    needing = _needing(body)
    for carried, final in zip(body.arguments, body.ops[-1].operands, strict=True):
        if final.name == carried.name:
            # Used elsewhere it is the same in every iteration.
            yield carried, None
            continue
        maker = makers.get(final.name)
        if maker is None or maker.name not in COMBINING or carried not in maker.operands:
            yield carried, maker or loop
            continue
        place = 1 - maker.operands.index(carried)
        other = maker.operands[place]
        if uses[carried.name] > 1 or uses[final.name] > 1 or other.name in needing:
            yield carried, maker
            continue
        yield carried, Gathering(maker.name, final.name, place, makers.get(other.name), uses[other.name] == 1)


def _needing(body: Region) -> set[str]:
    """The values that depend on a carried value which changes."""
    changing = zip(body.arguments, body.ops[-1].operands, strict=True)
    found = {argument.name for argument, final in changing if final.name != argument.name}
    _spread(body, found)
    return found


def _spread(region: Region, found: set[str]) -> None:
    for op in region.ops:
        inner = [value for body in op.regions for each in walk(body) for value in each.operands]
        if any(value.name in found for value in (*op.operands, *inner)):
            found.update(value.name for value in op.results)
            for body in op.regions:
                found.update(value.name for value in body.arguments)
                _spread(body, found)
