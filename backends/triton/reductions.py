"""Reductions: one line a combine, in the order of kdsl.ir.meaning.COMBINES. {0} is the source, {axis} its dimension.

tl.max and tl.min ignore NaN, which the op table does not: floats are combined by functions of the emitted module.
"""

from __future__ import annotations

from kdsl.ir.dtypes import BOOL, DType

from .dtypes import TYPES, is_narrow
from .expressions import ATOM, COMPARE, Text

FLOATS: dict[str, str] = {
    "add": "tl.sum({0}, axis={axis})",
    "mul": "tl.reduce({0}, {axis}, multiply)",
    "maximum": "tl.reduce({0}, {axis}, maximum)",
    "minimum": "tl.reduce({0}, {axis}, minimum)",
}
INTEGERS: dict[str, str] = {
    "add": "tl.sum({0}, axis={axis})",
    "mul": "tl.reduce({0}, {axis}, multiply)",
    "maximum": "tl.max({0}, axis={axis})",
    "minimum": "tl.min({0}, axis={axis})",
    "and": "tl.reduce({0}, {axis}, bitwise_and)",
    "or": "tl.reduce({0}, {axis}, bitwise_or)",
}
BOOLEANS: dict[str, str] = {
    "maximum": "tl.max({0}, axis={axis})",
    "minimum": "tl.min({0}, axis={axis})",
    "and": "tl.min({0}, axis={axis})",
    "or": "tl.max({0}, axis={axis})",
}
# A pair of value and lane, of which the lane is wanted.
SEARCHES = frozenset({"argmax", "argmin"})
# What tl.sum, tl.max and tl.min promote to 32 bits.
PROMOTED = frozenset({"i8", "i16", "u8", "u16"})


def reduction(combine: str, source: Text, dtype: DType, axis: int) -> Text:
    """The reduction of a source of that dtype along one of its dimensions."""
    if dtype == BOOL:
        wide = f"{source.within(ATOM)}.to(tl.int32)"
        return Text(f"{BOOLEANS[combine].format(wide, axis=axis)} != 0", COMPARE)
    if is_narrow(dtype):  # combined in f32, rounded once
        wide = f"{source.within(ATOM)}.to(tl.float32)"
        return Text(f"{FLOATS[combine].format(wide, axis=axis)}.to({TYPES[dtype.name]})")
    code = (FLOATS if dtype.is_float else INTEGERS)[combine].format(source.code, axis=axis)
    return Text(f"{code}.to({TYPES[dtype.name]})" if dtype.name in PROMOTED else code)


def search(combine: str, source: Text, lanes: str, axis: int) -> Text:
    """The lane of the extreme value."""
    return Text(f"tl.reduce(({source.code}, {lanes}), {axis}, {combine})[1]")
