"""What ops mean, in NumPy. The op table points here; together with the interpreter's walk this is the oracle.

An array stands for a value: one dimension for each of the value's axes, in order, of the axis's size or 1 where the
value does not change along it. Ops are total: a lane that means nothing computes garbage but never traps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from kdsl.ir.dtypes import BF16, BOOL, F16, I32, DType, from_numpy
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Bound, Kernel, Op, Region

Array = np.ndarray[Any, np.dtype[Any]]


class Frame(Protocol):
    """What an op may ask of the interpreter."""

    kernel: Kernel
    memory: dict[str, Array]
    scalars: dict[str, Any]

    def align(self, array: Array, axes: Sequence[str], to: Sequence[str]) -> Array:
        """The array of a value over `axes`, as one over `to`, which holds them all."""

    def form(self, form: Expr, axes: Sequence[str]) -> Array:
        """An integer form as an i64 array over axes."""

    def holds(self, bounds: Sequence[Bound], axes: Sequence[str]) -> Array:
        """Where all bounds hold, as a bool array over axes."""

    def valid(self, of: Sequence[str], axes: Sequence[str]) -> Array:
        """Where the lanes of the axes `of` are valid, as a bool array over axes."""

    def active(self, axes: Sequence[str]) -> Array:
        """Which programs run at all, as a bool array over axes: where any along the other axes does."""

    @property
    def points(self) -> Mapping[str, range]:
        """The points of each axis that the frame holds."""

    def size(self, axis: str) -> int:
        """How many points of the axis the frame holds."""

    def poison(self, dtype: DType, shape: tuple[int, ...]) -> Array:
        """What lanes hold that mean nothing."""

    def fault(self, op: Op, message: str, axes: Sequence[str], lane: Sequence[Any]) -> Exception:
        """The error for a memory access that no bound allows, in one lane of an array over axes."""

    def run(self, region: Region, arguments: Sequence[Array]) -> list[Array]:
        """Run a region once; gives what it yields."""

    def iterate(self, op: Op, initial: Sequence[Array]) -> list[Array]:
        """Run a loop's region for each point of its axis in order, from initial values; gives its results."""

    def branch(self, op: Op, condition: Array) -> list[Array]:
        """Run the region that the condition chooses; gives the results of the `if`."""

    def repeat(self, op: Op, carried: list[Array]) -> list[Array]:
        """Run the body of a `while` as long as its test yields true; gives what is carried at the end."""

    def name_integer(self, name: str, array: Array) -> None:
        """Let forms mention an integer of the kernel: an i64 array over its axes."""

    def failed(self, op: Op, message: str) -> Exception:
        """The error for an assertion that does not hold."""

    def show(self, message: str, arrays: Sequence[Array]) -> None:
        """Print values for the author."""


Evaluate = Callable[[Frame, Op, list[Array]], list[Array]]


# -- pointwise -----------------------------------------------------------------------------------------------------


def wide(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of floats computed in f64 and rounded once, where NumPy has none of its own."""

    def compute(x: Array) -> Array:
        return narrow(np.asarray(function(x.astype(np.float64))), x.dtype)

    return compute


def floordiv(x: Array, y: Array) -> Array:
    return np.where(y == 0, np.zeros_like(x), np.floor_divide(x, np.where(y == 0, np.ones_like(y), y)))


def floormod(x: Array, y: Array) -> Array:
    # x % 1 is 0, which is the fixed value for y = 0 too.
    return np.remainder(x, np.where(y == 0, np.ones_like(y), y))


def _shift(function: Callable[[Array, Array], Array], x: Array, y: Array) -> tuple[Array, Array]:
    bits = x.dtype.itemsize * 8
    outside = (y < 0) | (y >= bits)
    return function(x, np.where(outside, np.zeros_like(y), y)), outside


def shift_left(x: Array, y: Array) -> Array:
    shifted, outside = _shift(np.left_shift, x, y)
    return np.where(outside, np.zeros_like(shifted), shifted)


def shift_right(x: Array, y: Array) -> Array:
    shifted, outside = _shift(np.right_shift, x, y)
    sign = np.where(x < 0, np.full_like(x, -1), np.zeros_like(x)) if x.dtype.kind == "i" else np.zeros_like(x)
    return np.where(outside, sign, shifted)


def convert(x: Array, dtype: DType, rounding: str = "nearest", saturate: bool = False) -> Array:
    """A cast by the table's rule; see its row."""
    if dtype == BOOL:
        return np.asarray(x != 0)
    source = from_numpy(x.dtype)
    if source is not None and source.is_integer and source.is_storage:
        x = x.astype(np.int8)
    whole = x.dtype.kind in "biu"
    if dtype.is_integer:
        return x.astype(dtype.numpy) if whole else _saturate(x, dtype)
    if whole and dtype.bits < 32:
        # What f64 rounds of an integer past 2**53, the narrow float must round only once: see _sticky.
        x = _sticky(x).astype(np.float64)
    result = narrow(x, dtype.numpy) if x.dtype == np.float64 else x.astype(dtype.numpy)
    if rounding == "zero":
        result = _towards_zero(x.astype(np.float64), result, dtype)
    return _within(x, result, dtype) if saturate else result


def _sticky(x: Array) -> Array:
    """Integers cut to what f64 holds, bit 12 standing for any that were cut: on the same side of every 16-bit float."""
    if x.dtype.itemsize < 8:
        return x
    low, bit = x.dtype.type(0xFFF), x.dtype.type(0x1000)
    cut = np.where(x & low != 0, (x & ~low) | bit, x)
    return np.where((x > 2**53) | (x < (0 if x.dtype.kind == "u" else -(2**53))), cut, x)


def narrow(x: Array, dtype: np.dtype[Any]) -> Array:
    """f64 rounded once to a float type: to what NumPy lacks by way of f32 rounded to odd (ml_dtypes rounds twice).

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
    """
    if dtype in (np.float16, np.float32, np.float64):
        return x.astype(dtype)
    near = np.asarray(x, dtype=np.float32)
    other = np.nextafter(near, np.where(near < x, np.float32(np.inf), np.float32(-np.inf)))
    inexact_and_even = (near != x) & (near.view(np.uint32) & 1 == 0)
    return np.where(inexact_and_even, other, near).astype(dtype)


def _towards_zero(x: Array, nearest: Array, dtype: DType) -> Array:
    """The number of the type next to x (f64) towards zero, given the nearest; a finite x stays finite."""
    away = np.abs(nearest.astype(np.float64)) > np.abs(x)
    result = np.where(away, np.nextafter(nearest, np.zeros_like(nearest)), nearest)
    return np.where(np.isfinite(x), _within(x, result, dtype), nearest)


def _within(x: Array, result: Array, dtype: DType) -> Array:
    """The largest finite number where x, which is no NaN, became an infinity or a NaN."""
    largest = np.copysign(float(ml_dtypes.finfo(dtype.numpy).max), x.astype(np.float64)).astype(dtype.numpy)
    return np.where((x == x) & ~np.isfinite(result.astype(np.float64)), largest, result)


def _saturate(x: Array, dtype: DType) -> Array:
    limits = ml_dtypes.iinfo(dtype.numpy)
    exact = np.trunc(x.astype(np.float64))
    inside = np.where(np.isfinite(exact), np.clip(exact, float(limits.min), float(limits.max)), 0)
    # float(2**63 - 1) is 2**63, one past the largest: set both ends from the integers instead.
    high, low = exact >= float(limits.max), exact <= float(limits.min)
    whole = np.where(high | low, 0, inside).astype(dtype.numpy)
    return np.where(high, dtype.numpy.type(limits.max), np.where(low, dtype.numpy.type(limits.min), whole))


def cast(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    return [convert(operands[0], op.result.dtype, **op.attributes)]


# -- values from nothing -------------------------------------------------------------------------------------------


def number(value: Any, dtype: DType) -> Array:
    """A Python number as an array without dimensions, rounded once."""
    return convert(np.asarray(value), dtype)


def constant(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    return [number(op.attributes["value"], op.result.dtype)]


def argument(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    return [number(frame.scalars[op.attributes["scalar"]], op.result.dtype)]


def index(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    return [frame.form(op.attributes["form"], op.result.axes).astype(op.result.dtype.numpy)]


def in_bounds(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    return [frame.holds(op.attributes["bounds"], op.result.axes)]


# -- axes ----------------------------------------------------------------------------------------------------------


def broadcast(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    return [frame.align(operands[0], op.operands[0].axes, op.result.axes)]


@dataclass(frozen=True)
class Combine:
    """How a reduce combines lanes: the dtypes it takes, its identity, and the NumPy ufunc that folds."""

    kinds: tuple[str, ...]
    identity: Callable[[DType], Any]
    fold: np.ufunc
    result: DType | None = None


def _lowest(dtype: DType) -> Any:
    return -np.inf if dtype.is_float else False if dtype == BOOL else np.iinfo(dtype.numpy).min


def _highest(dtype: DType) -> Any:
    return np.inf if dtype.is_float else True if dtype == BOOL else np.iinfo(dtype.numpy).max


_NUMBER, _ORDERED = ("int", "uint", "float"), ("bool", "int", "uint", "float")

COMBINES: dict[str, Combine] = {
    "add": Combine(_NUMBER, lambda dtype: 0, np.add),
    "mul": Combine(_NUMBER, lambda dtype: 1, np.multiply),
    "maximum": Combine(_ORDERED, _lowest, np.maximum),
    "minimum": Combine(_ORDERED, _highest, np.minimum),
    "and": Combine(("bool", "int", "uint"), lambda dtype: True if dtype == BOOL else -1, np.bitwise_and),
    "or": Combine(("bool", "int", "uint"), lambda dtype: 0, np.bitwise_or),
    "argmax": Combine(("int", "uint", "float"), _lowest, np.maximum, I32),
    "argmin": Combine(("int", "uint", "float"), _highest, np.minimum, I32),
}


def identity(combine: str, dtype: DType) -> Any:
    """The value that leaves any other unchanged: a Python number."""
    value = COMBINES[combine].identity(dtype)
    return np.iinfo(dtype.numpy).max if value == -1 and dtype.kind == "uint" else value


def reduce(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    (source,), axis, name = op.operands, op.attributes["axis"], op.attributes["combine"]
    axes = frame.kernel.order({*op.result.axes, axis})
    place = axes.index(axis)
    array = frame.align(operands[0], source.axes, axes)
    valid = frame.valid(frame.kernel.decided_along(axis, source.axes), axes)
    neutral = np.asarray(identity(name, source.dtype)).astype(source.dtype.numpy)
    lanes = array if valid.all() else np.where(valid, array, neutral)
    lanes = np.broadcast_to(lanes, (*lanes.shape[:place], frame.size(axis), *lanes.shape[place + 1 :]))
    # One layout for every sum: NumPy's pairwise order, and so the last bit, depends on the stride.
    lanes = np.ascontiguousarray(np.moveaxis(lanes, place, -1))
    folded = _fold(COMBINES[name].fold, lanes, source.dtype, neutral)
    if name not in ("argmax", "argmin"):
        return [folded]
    extreme = (lanes == folded[..., None]) | (lanes != lanes)
    if not lanes.shape[-1]:
        return [np.zeros(folded.shape, np.int32)]
    # An invalid lane holds the identity, which may equal the extreme: it still must not win.
    allowed = np.moveaxis(np.broadcast_to(valid, np.moveaxis(lanes, -1, place).shape), place, -1)
    return [np.argmax(extreme & allowed, axis=-1).astype(np.int32)]


def _fold(ufunc: np.ufunc, lanes: Array, dtype: DType, neutral: Array) -> Array:
    """Fold the last axis; 16-bit floats accumulate in f32 and round once."""
    if not lanes.shape[-1]:
        return np.broadcast_to(neutral, lanes.shape[:-1])
    if dtype in (F16, BF16):
        return np.asarray(ufunc.reduce(lanes.astype(np.float32), axis=-1)).astype(dtype.numpy)
    return np.asarray(ufunc.reduce(lanes, axis=-1), dtype=dtype.numpy)


def reshape(frame: Frame, op: Op, operands: list[Array]) -> list[Array]:
    source, target = op.attributes["source"], op.attributes["target"]
    (value,), kernel = op.operands, frame.kernel
    kept = [name for name in value.axes if name not in source]
    array = np.transpose(operands[0], [value.axes.index(name) for name in (*kept, *source)])
    sizes = [frame.size(name) for name in source]
    array = np.broadcast_to(array, (*array.shape[: len(kept)], *sizes))
    array = array.reshape((*array.shape[: len(kept)], *(frame.size(name) for name in target)))
    return [np.transpose(array, [(*kept, *target).index(name) for name in kernel.order((*kept, *target))])]
