"""Tile operations: what a kernel body may call. Each is an op of the IR (`kdsl/ir/ops.py` says what it means exactly).

Shapes: an elementwise operation gives a tile over all axes of its operands. dtypes: operands promote to a common type
as in JAX; Python numbers are weak and take the tile's type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kdsl.lang.dims import Size
from kdsl.lang.dtypes import DType
from kdsl.lang.tiles import AxisLike, Index, Operand, OutsideKernelError, TileValue


def zeros(axes: Sequence[AxisLike], dtype: type[DType]) -> TileValue:
    """A tile of zeros over the axes."""
    raise OutsideKernelError("kdsl.zeros")


def full(axes: Sequence[AxisLike], value: Operand, dtype: type[DType]) -> TileValue:
    """A tile of one value over the axes."""
    raise OutsideKernelError("kdsl.full")


def cast(x: Operand, dtype: type[DType]) -> TileValue:
    """x in another dtype: floats round to nearest even, floats to integers truncate and saturate, NaN to 0."""
    raise OutsideKernelError("kdsl.cast")


def where(condition: TileValue, x: Operand, y: Operand) -> TileValue:
    """x where the condition holds, else y; the arm that is not chosen contributes nothing, NaN included."""
    raise OutsideKernelError("kdsl.where")


def maximum(x: Operand, y: Operand) -> TileValue:
    """The larger of two; NaN if either is NaN."""
    raise OutsideKernelError("kdsl.maximum")


def minimum(x: Operand, y: Operand) -> TileValue:
    """The smaller of two; NaN if either is NaN."""
    raise OutsideKernelError("kdsl.minimum")


def exp(x: Operand) -> TileValue:
    """e ** x, of floats."""
    raise OutsideKernelError("kdsl.exp")


def exp2(x: Operand) -> TileValue:
    """2 ** x, of floats."""
    raise OutsideKernelError("kdsl.exp2")


def log(x: Operand) -> TileValue:
    """Natural logarithm, of floats."""
    raise OutsideKernelError("kdsl.log")


def log2(x: Operand) -> TileValue:
    """Logarithm to base 2, of floats."""
    raise OutsideKernelError("kdsl.log2")


def sqrt(x: Operand) -> TileValue:
    """Square root, of floats."""
    raise OutsideKernelError("kdsl.sqrt")


def rsqrt(x: Operand) -> TileValue:
    """1 / sqrt(x), of floats."""
    raise OutsideKernelError("kdsl.rsqrt")


def sin(x: Operand) -> TileValue:
    """Sine, x in radians."""
    raise OutsideKernelError("kdsl.sin")


def cos(x: Operand) -> TileValue:
    """Cosine, x in radians."""
    raise OutsideKernelError("kdsl.cos")


def tanh(x: Operand) -> TileValue:
    """Hyperbolic tangent, of floats."""
    raise OutsideKernelError("kdsl.tanh")


def erf(x: Operand) -> TileValue:
    """Error function, of floats."""
    raise OutsideKernelError("kdsl.erf")


def sigmoid(x: Operand) -> TileValue:
    """1 / (1 + exp(-x)), of floats."""
    raise OutsideKernelError("kdsl.sigmoid")


def floor(x: Operand) -> TileValue:
    """The integer at or below x, as a float."""
    raise OutsideKernelError("kdsl.floor")


def ceil(x: Operand) -> TileValue:
    """The integer at or above x, as a float."""
    raise OutsideKernelError("kdsl.ceil")


def abs(x: Operand) -> TileValue:
    """|x|."""
    raise OutsideKernelError("kdsl.abs")


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


def dot(x: TileValue, y: TileValue, over: AxisLike | None = None, precision: Literal["ieee"] = "ieee") -> TileValue:
    """The sum of products over one axis of both; left out, it is the one tile axis that they share.

    Accumulates in f32 (i32 for integers, 64 bits for 64-bit operands), and that is the result's dtype. "ieee"
    multiplies f32 operands in full.
    """
    raise OutsideKernelError("kdsl.dot")


def axis(extent: Size, name: str = "axis") -> Index:
    """A new tile axis of `extent` lanes, to reshape into."""
    raise OutsideKernelError("kdsl.axis")


def reshape(x: TileValue, source: Sequence[AxisLike], target: Sequence[AxisLike]) -> TileValue:
    """x with the axes `source` replaced by `target`, which have as many lanes, in row-major order."""
    raise OutsideKernelError("kdsl.reshape")


def require(condition: object) -> None:
    """States what the kernel needs of its sizes, such as `require(K % 8 == 0)`; checked at every call."""
    raise OutsideKernelError("kdsl.require")
