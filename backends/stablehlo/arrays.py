"""Arrays of named axes as text: bringing one to the layout of another."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.codegen.jnp import ATOM, Code
from kdsl.codegen.layout import Layout


def align(code: Code, have: Layout, layout: Layout, full_rank: bool = False) -> Code:
    """An array with the axes `have` as one that broadcasts against a layout: transposed, and with dimensions of size 1
    where it lacks an axis (those in front only with `full_rank`)."""
    if code.number or (not have and not full_rank):
        return code
    order = tuple(axis for axis in layout if axis in have)
    if order != have:
        places = as_tuple([str(have.index(axis)) for axis in order])
        code = Code(f"{code.at(ATOM)}.T" if len(order) == 2 else f"jnp.transpose({code.text}, {places})")
    indices = [":" if axis in have else "None" for axis in layout]
    while indices and indices[0] == "None" and not full_rank:
        indices.pop(0)
    if "None" not in indices:
        return code
    while indices[-1] == ":" and len(indices) > 1:
        indices.pop()
    return Code(f"{code.at(ATOM)}[{', '.join(indices)}]")


def as_tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def as_value(items: Sequence[str]) -> str:
    """One item as it is, several as a tuple."""
    return items[0] if len(items) == 1 else as_tuple(items)
