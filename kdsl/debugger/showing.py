"""What is known of a name, as text: all lanes where they are few, the corners of a tile where they are many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdsl.ir.meaning import Array

FEW = 144  # lanes that are all printed
EDGE = 3  # lanes at each end of an axis that are printed of many
DIGITS = 6, 9, 17  # of a lane of a tile; of a single f32, and a single f64, enough to tell it from its neighbours
INVALID, UNKNOWN = ".", "?"


@dataclass(frozen=True)
class Shown:
    """What is shown for a name: `what` it is in words, and either its numbers or a `text`.

    `axes` describe the dimensions of `array`. `valid` and `known` are alike in shape, or None where all lanes are: a
    lane that is not valid lies beyond an edge, and one that is not known holds nothing that anyone gave it.
    """

    what: str
    array: Array | None = None
    valid: Array | None = None
    known: Array | None = None
    axes: tuple[str, ...] = ()
    text: str = ""

    @property
    def meaningful(self) -> Array:
        """Which lanes are valid and known."""
        assert self.array is not None
        masks = [mask for mask in (self.valid, self.known) if mask is not None]
        return np.logical_and.reduce(masks) if masks else np.ones(self.array.shape, bool)


def one_line(shown: Shown) -> str:
    """The number or text; of a tile, its lanes or their range."""
    if shown.array is None:
        return shown.text
    lanes = shown.array[shown.meaningful]
    if not lanes.size:
        return "nothing"
    if not shown.array.ndim or lanes.size <= EDGE:
        return ", ".join(number(lane, alone=not shown.array.ndim) for lane in lanes)
    if not _is_float(lanes):
        return f"{number(lanes.min())} to {number(lanes.max())}"
    wide = lanes.astype(np.float64)
    plain = wide[~np.isnan(wide)]
    spread = f"{number(plain.min())} to {number(plain.max())}" if plain.size else ""
    nans = wide.size - plain.size
    return ", ".join(part for part in (spread, f"{nans} nan" if nans else "") if part)


def in_full(name: str, shown: Shown, width: int = 100) -> str:
    """What it is, and below that its lanes, in lines of at most `width` where that is possible."""
    if shown.array is None or not shown.array.ndim:
        return f"{name} = {one_line(shown)} ({shown.what})"
    head = f"{name}: {shown.what} ({' x '.join(shown.axes)})"
    for mask, word in ((shown.valid, "valid"), (shown.known, "known")):
        if mask is not None and not mask.all():
            head += f", {np.count_nonzero(mask)} of {mask.size} {word}"
    if math.prod(shown.array.shape) > FEW:
        head += f", {one_line(shown)}"
    return f"{head}\n{_lanes(shown, width)}"


def number(value: Any, alone: bool = False) -> str:
    """One number. A float that stands `alone` has all its digits."""
    if not _is_float(np.asarray(value)):
        return str(value)
    digits = DIGITS[0] if not alone else DIGITS[2] if np.asarray(value).dtype == np.float64 else DIGITS[1]
    return f"{float(value):.{digits}g}"


def _is_float(array: Array) -> bool:
    return array.dtype.name.startswith(("float", "bfloat"))


def _lanes(shown: Shown, width: int) -> str:
    """The lanes as NumPy lays them out, equally wide."""
    array, valid, known, widest = shown.array, shown.valid, shown.known, 1
    assert array is not None

    def cell(place: Any) -> str:
        nonlocal widest
        lane = np.unravel_index(int(place), array.shape)
        if valid is not None and not valid[lane]:
            text = INVALID
        else:
            text = number(array[lane]) if known is None or known[lane] else UNKNOWN
        widest = max(widest, len(text))
        return text.rjust(widest)

    places = np.arange(array.size).reshape(array.shape)
    for _ in range(2):  # the first time tells how wide the widest is
        text = np.array2string(
            places, max_line_width=width, threshold=FEW, edgeitems=EDGE, formatter={"int_kind": cell}
        )
    return text
