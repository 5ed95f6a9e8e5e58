"""Tile operations: what a kernel body may call. Each is an op of the IR (`kdsl/ir/ops.py` says what it means exactly).

`functions.py` has the elementwise ones, `lanes.py` those that move lanes or run along an axis, `random.py` random
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kdsl.lang.dims import Integer, Size
from kdsl.lang.dtypes import DType
from kdsl.lang.tiles import AxisLike, Index, Operand, OutsideKernelError, TileValue


def zeros(axes: Sequence[AxisLike], dtype: type[DType]) -> TileValue:
    """A tile of zeros over the axes."""
    raise OutsideKernelError("kdsl.zeros")


def full(axes: Sequence[AxisLike], value: Operand, dtype: type[DType]) -> TileValue:
    """A tile of one value over the axes."""
    raise OutsideKernelError("kdsl.full")


def cast(
    x: Operand, dtype: type[DType], rounding: Literal["nearest", "zero"] = "nearest", saturate: bool = False
) -> TileValue:
    """x in another dtype: floats round to nearest even, floats to integers truncate and saturate, NaN to 0.

    Between floats, `rounding` "zero" cuts off instead, and `saturate` gives the largest number where the dtype would
    overflow to infinity or NaN.
    """
    raise OutsideKernelError("kdsl.cast")


def where(condition: TileValue, x: Operand, y: Operand) -> TileValue:
    """x where the condition holds, else y; the arm that is not chosen contributes nothing, NaN included."""
    raise OutsideKernelError("kdsl.where")


def sum(x: TileValue, over: AxisLike | Sequence[AxisLike]) -> TileValue:
    """The sum of the valid lanes along axes, which the result no longer has. 16-bit floats accumulate in f32."""
    raise OutsideKernelError("kdsl.sum")


def prod(x: TileValue, over: AxisLike | Sequence[AxisLike]) -> TileValue:
    """The product of the valid lanes along axes."""
    raise OutsideKernelError("kdsl.prod")


def max(x: TileValue, over: AxisLike | Sequence[AxisLike]) -> TileValue:
    """The largest valid lane along axes; -inf or the lowest integer where there is none."""
    raise OutsideKernelError("kdsl.max")


def min(x: TileValue, over: AxisLike | Sequence[AxisLike]) -> TileValue:
    """The smallest valid lane along axes; inf or the highest integer where there is none."""
    raise OutsideKernelError("kdsl.min")


def any(x: TileValue, over: AxisLike | Sequence[AxisLike]) -> TileValue:
    """Whether any valid lane of a bool tile is true."""
    raise OutsideKernelError("kdsl.any")


def all(x: TileValue, over: AxisLike | Sequence[AxisLike]) -> TileValue:
    """Whether all valid lanes of a bool tile are true."""
    raise OutsideKernelError("kdsl.all")


def argmax(x: TileValue, over: AxisLike) -> TileValue:
    """The place, in the whole dimension, of the first largest valid lane: i32. A NaN counts as largest."""
    raise OutsideKernelError("kdsl.argmax")


def argmin(x: TileValue, over: AxisLike) -> TileValue:
    """The place, in the whole dimension, of the first smallest valid lane: i32. A NaN counts as smallest."""
    raise OutsideKernelError("kdsl.argmin")


Precision = Literal["ieee", "tf32", "tf32x3", "bf16", "bf16x3", "bf16x6"]


def dot(x: TileValue, y: TileValue, over: AxisLike | None = None, precision: Precision = "ieee") -> TileValue:
    """The sum of products over one axis of both; left out, it is the one tile axis that they share.

    Of other axes that both vary over, each point has a product of its own; which one is summed then has to be said.
    Accumulates in f32 (i32 for integers, 64 bits for 64-bit operands), and that is the result's dtype. `precision` says
    how f32 operands multiply: "ieee" in full, "tf32" and "bf16" rounded to that, "x3" and "x6" split into that many
    products of such parts. Two different 8-bit floats multiply without a cast.
    """
    raise OutsideKernelError("kdsl.dot")


def dot_scaled(
    x: TileValue,
    x_scale: TileValue,
    y: TileValue,
    y_scale: TileValue,
    over: AxisLike,
    groups: tuple[AxisLike, AxisLike],
) -> TileValue:
    """dot of x * 2**(x_scale - 127) and y * 2**(y_scale - 127) over an axis: f32.

    Scales are u8 (255 is NaN). Each serves a run of lanes of `over`: `groups` are the axes that count the runs of
    x_scale and y_scale, and divide `over` evenly (OCP Microscaling formats 1.0).
    """
    raise OutsideKernelError("kdsl.dot_scaled")


def axis(extent: Size, name: str = "axis") -> Index:
    """A new tile axis of `extent` lanes, to reshape into; `kdsl.axis(n).index` is the tile 0, 1, ..., n - 1."""
    raise OutsideKernelError("kdsl.axis")


def reshape(x: TileValue, source: Sequence[AxisLike], target: Sequence[AxisLike]) -> TileValue:
    """x with the axes `source` replaced by `target`, which have as many lanes, in row-major order."""
    raise OutsideKernelError("kdsl.reshape")


def require(condition: object) -> None:
    """States what the kernel needs of its sizes, such as `require(K % 8 == 0)`; checked at every call."""
    raise OutsideKernelError("kdsl.require")


def program_id(variable: Index) -> Integer:
    """Which program of its axis of the grid this is, counted from 0; of a loop's variable, which iteration.

    It tells tiles apart where programs share work; what is computed should depend on places in dimensions instead, as
    the size of tiles is the target's choice.
    """
    raise OutsideKernelError("kdsl.program_id")


def check(condition: TileValue, message: str) -> None:
    """Stop the kernel with the message unless the condition holds in every valid lane; for debugging."""
    raise OutsideKernelError("kdsl.check")


def print(message: str, *values: Operand) -> None:
    """Show values, for debugging."""
    raise OutsideKernelError("kdsl.print")
