"""Operations along an axis: running and general combines, sorting, moves of lanes. Invalid lanes never take part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from kdsl.lang.tiles import AxisLike, Operand, OutsideKernelError, TileValue

Tiles = TypeVar("Tiles", bound=TileValue | tuple[TileValue, ...])

ScanCombine = Literal["add", "mul", "maximum", "minimum", "and", "or"]


def scan(x: TileValue, over: AxisLike, combine: ScanCombine = "add", reverse: bool = False) -> TileValue:
    """The running combine along an axis, up to and with each lane; `reverse` runs from the end.

    16-bit floats accumulate in f32 and round once a lane.
    """
    raise OutsideKernelError("kdsl.scan")


def cumsum(x: TileValue, over: AxisLike, reverse: bool = False) -> TileValue:
    """The running sum along an axis, up to and with each lane; of a bool tile, how many are true."""
    raise OutsideKernelError("kdsl.cumsum")


def cumprod(x: TileValue, over: AxisLike, reverse: bool = False) -> TileValue:
    """The running product along an axis, up to and with each lane."""
    raise OutsideKernelError("kdsl.cumprod")


def cummax(x: TileValue, over: AxisLike, reverse: bool = False) -> TileValue:
    """The running maximum along an axis, up to and with each lane."""
    raise OutsideKernelError("kdsl.cummax")


def reduce(x: Tiles, over: AxisLike, combine: Callable[[Tiles, Tiles], Tiles]) -> Tiles:
    """The valid lanes along an axis combined by an @kdsl.inline function of two; poison where no lane is valid.

    x is a tile, or a tuple of tiles that are combined together; `combine` takes two such and gives one. It need only
    be associative, and may use elementwise operations and numbers, nothing from outside.
    """
    raise OutsideKernelError("kdsl.reduce")


def associative_scan(
    x: Tiles, over: AxisLike, combine: Callable[[Tiles, Tiles], Tiles], reverse: bool = False
) -> Tiles:
    """The running combine along an axis, up to and with each lane; arguments as of `kdsl.reduce`."""
    raise OutsideKernelError("kdsl.associative_scan")


def sort(x: Tiles, over: AxisLike, descending: bool = False) -> Tiles:
    """The valid lanes along an axis in order; of a tuple, in the order of the first tile, the others carried along.

    Stable; a NaN counts as the largest.
    """
    raise OutsideKernelError("kdsl.sort")


def argsort(x: TileValue, over: AxisLike, descending: bool = False) -> TileValue:
    """The places, in the whole dimension, of the lanes in sorted order: i32."""
    raise OutsideKernelError("kdsl.argsort")


def topk(x: TileValue, into: AxisLike, over: AxisLike) -> tuple[TileValue, TileValue]:
    """The largest lanes along `over`, largest first, and their places in the whole dimension (i32).

    They lie along `into`, an axis of as many lanes (a Dim or a `kdsl.axis`), in place of `over`; where there are fewer
    valid lanes than that, the rest is poison. Among equals the first comes first.
    """
    raise OutsideKernelError("kdsl.topk")


def gather(x: TileValue, index: Operand, over: AxisLike) -> TileValue:
    """x at lane `index` along an axis, as `take_along_axis`: `over` gives way to the axes of the index.

    Lanes count from the start of the tile; an index that is no valid lane gives poison.
    """
    raise OutsideKernelError("kdsl.gather")


def flip(x: TileValue, over: AxisLike) -> TileValue:
    """The lanes along an axis in reverse order. All of them have to be valid, as in the moves below."""
    raise OutsideKernelError("kdsl.flip")


def concat(tiles: Sequence[TileValue], axes: Sequence[AxisLike], into: AxisLike) -> TileValue:
    """The lanes of each tile along its own axis of `axes`, one tile after the other, along a new axis."""
    raise OutsideKernelError("kdsl.concat")


def join(x: TileValue, y: TileValue, into: AxisLike) -> TileValue:
    """Two tiles as the two lanes of a new axis."""
    raise OutsideKernelError("kdsl.join")


def split(x: TileValue, over: AxisLike) -> tuple[TileValue, TileValue]:
    """The two lanes of an axis as two tiles: the inverse of `join`."""
    raise OutsideKernelError("kdsl.split")


def relabel(x: TileValue, source: AxisLike, target: AxisLike) -> TileValue:
    """The same lanes along another axis of the same extent, as in a square tile plus its own transpose."""
    raise OutsideKernelError("kdsl.relabel")


def histogram(x: TileValue, into: AxisLike, over: AxisLike) -> TileValue:
    """How many valid lanes along `over` hold each of the numbers 0, 1, ... along `into`: i32; others count nowhere."""
    raise OutsideKernelError("kdsl.histogram")
