"""From Python numbers, sizes and index forms to IR values, and the promotion of operands.

A value has a dtype. Python numbers are weak: next to a value they take its dtype; a float next to an integer makes both
f32, an integer next to a bool makes both i32. Among themselves they are f32, i32 or bool. Sizes and index variables are
i32, so that a narrow integer next to one does not wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kdsl.diagnostics import Location, fail
from kdsl.frontends.python.values import describe, form_of
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import BOOL, F32, I32, I64, DType, holds_number, promote
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Scalar, Value
from kdsl.ir.ops import OPS
from kdsl.ir.type_rules import OpTypeError


def is_operand(thing: Any) -> bool:
    """Whether it can be an operand of a tile operation."""
    return isinstance(thing, Value | Scalar | bool | int | float) or form_of(thing) is not None


def is_weak(thing: Any) -> bool:
    """Whether it is a Python number, which takes the dtype of what it meets."""
    return isinstance(thing, bool | int | float)


def _own_dtype(thing: Any) -> DType | None:
    """The dtype that a thing has by itself; None for a Python number."""
    if isinstance(thing, Value | Scalar):
        return thing.dtype
    return thing if isinstance(thing, DType) else None if is_weak(thing) else I32


def common_dtype(things: Sequence[Any], location: Location | None) -> DType:
    """The dtype that operands promote to; a dtype may stand for an operand. Raises KdslError K0207 if there is none."""
    strong: DType | None = None
    for thing in things:
        own = _own_dtype(thing)
        if own is not None:
            joined = own if strong is None else promote(strong, own)
            if joined is None:
                raise fail("K0207", location, left=strong, right=own)
            strong = joined
    weak = [thing for thing in things if _own_dtype(thing) is None]
    if any(isinstance(thing, float) for thing in weak):
        return strong if strong is not None and strong.is_float else F32
    if any(not isinstance(thing, bool) for thing in weak):
        return strong if strong is not None and strong != BOOL else I32
    return strong or BOOL


def as_number(thing: bool | int | float, dtype: DType) -> bool | int | float | None:
    """A Python number as an element of a dtype; None where that would change it by more than rounding."""
    try:
        number = float(thing) if dtype.is_float else bool(thing) if dtype == BOOL else int(thing)
    except (OverflowError, ValueError):  # no integer is infinite or NaN, and no float is 10**400
        return None
    kept = dtype.is_float or number == thing
    return number if kept and holds_number(dtype, number) else None


class Lifter:
    """Makes operands values of one dtype, and emits ops on them with the author's place on every error."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def value(self, thing: Any, dtype: DType | None = None) -> Value:
        """The IR value of an operand, of `dtype` if given. Raises KdslError K0104, K0206 for what is none."""
        if not is_operand(thing):
            raise fail("K0104", self.builder.location, what=f"{describe(thing)} is no tile, number or size")
        if dtype is None:
            dtype = common_dtype([thing], self.builder.location)
        if isinstance(thing, Scalar):
            thing = self.builder.emit("argument", (), {"scalar": thing.name}, hint=thing.name)
        if isinstance(thing, Value):
            return self.cast(thing, dtype)
        if isinstance(thing, bool | int | float):
            number = as_number(thing, dtype)
            if number is None:
                raise fail("K0206", self.builder.location, operation="a constant", problem=f"{thing} is no {dtype}")
            return self.builder.emit("constant", (), {"value": number}, dtype=dtype)
        form = form_of(thing)
        assert form is not None
        return self.cast(self.index(form, I64 if dtype == I64 else I32), dtype)

    def index(self, form: Expr, dtype: DType = I32) -> Value:
        """An integer form as a value."""
        return self.builder.emit("index", (), {"form": form}, dtype=dtype)

    def cast(self, value: Value, dtype: DType) -> Value:
        return value if value.dtype == dtype else self.builder.emit("cast", (value,), dtype=dtype)

    def apply(self, name: str, things: Sequence[Any], title: str) -> Value:
        """An op on operands brought to their common dtype; integers become f32 where the op takes floats only.

        `title` is what the author wrote. Raises KdslError K0206 where the op's row forbids the operands.
        """
        dtype = common_dtype(things, self.builder.location)
        if not dtype.is_float and name in FLOAT_ONLY:
            dtype = F32
        return self.emit(name, [self.value(thing, dtype) for thing in things], title=title)

    def emit(
        self, name: str, operands: Sequence[Value], attributes: Any = None, *, title: str, dtype: DType | None = None
    ) -> Value:
        """Emit an op; what its row forbids is an error of the author's: K0206."""
        alias = title.removeprefix("kdsl.") if title.startswith("kdsl.") else ""
        try:
            return self.builder.emit(name, operands, attributes, dtype=dtype, alias=alias)
        except OpTypeError as error:
            raise fail("K0206", self.builder.location, operation=title, problem=error) from None


# What takes floats only: an integer operand is converted, as NumPy and JAX do for exp(3) and 1 / 2.
FLOAT_ONLY = frozenset(name for name, row in OPS.items() if row.pointwise is not None and row.operands == ("x",)) - {
    "neg", "abs", "not",
} | {"div", "precise_div", "fma", "fmod", "atan2", "copysign", "maxnum", "minnum"}  # fmt: skip
