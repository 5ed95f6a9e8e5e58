"""From Python numbers, sizes and index forms to IR values, and the promotion of operands.

A value has a dtype. Python numbers, sizes and index forms are weak: next to a value they take its dtype; a float next to
an integer makes both f32, an integer next to a bool makes both i32. Among themselves they are f32, i32 or bool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kdsl.diagnostics import Location, fail
from kdsl.frontends.python.values import form_of
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import BOOL, F32, I32, I64, DType, promote
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Scalar, Value
from kdsl.ir.ops import OPS, OpTypeError


def is_operand(thing: Any) -> bool:
    """Whether it can be an operand of a tile operation."""
    return isinstance(thing, Value | Scalar | bool | int | float) or form_of(thing) is not None


def common_dtype(things: Sequence[Any], location: Location) -> DType:
    """The dtype that operands promote to. Raises KdslError K0207 where there is none."""
    strong: DType | None = None
    for thing in things:
        if isinstance(thing, Value | Scalar):
            joined = thing.dtype if strong is None else promote(strong, thing.dtype)
            if joined is None:
                raise fail("K0207", location, left=strong, right=thing.dtype)
            strong = joined
    weak = [thing for thing in things if not isinstance(thing, Value | Scalar)]
    if any(isinstance(thing, float) for thing in weak):
        return strong if strong is not None and strong.is_float else F32
    if any(not isinstance(thing, bool) for thing in weak):
        return strong if strong is not None and strong != BOOL else I32
    return strong or BOOL


class Lifter:
    """Makes operands values of one dtype, and emits ops on them with the author's place on every error."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def value(self, thing: Any, dtype: DType | None = None) -> Value:
        """The IR value of an operand, of `dtype` if given. Raises KdslError K0104 for what is none."""
        assert self.builder.location is not None
        if dtype is None:
            dtype = common_dtype([thing], self.builder.location)
        if isinstance(thing, Scalar):
            thing = self.builder.emit("argument", (), {"scalar": thing.name}, hint=thing.name)
        if isinstance(thing, Value):
            return self.cast(thing, dtype)
        if isinstance(thing, bool | int | float):
            number = float(thing) if dtype.is_float else bool(thing) if dtype == BOOL else int(thing)
            return self.builder.emit("constant", (), {"value": number}, dtype=dtype)
        form = form_of(thing)
        if form is None:
            raise fail("K0104", self.builder.location, what=f"{thing!r} is no tile, number or size")
        return self.cast(self.index(form, I64 if dtype == I64 else I32), dtype)

    def index(self, form: Expr, dtype: DType = I32) -> Value:
        """An integer form as a value."""
        return self.builder.emit("index", (), {"form": form}, dtype=dtype)

    def cast(self, value: Value, dtype: DType) -> Value:
        return value if value.dtype == dtype else self.builder.emit("cast", (value,), dtype=dtype)

    def apply(self, name: str, things: Sequence[Any], title: str | None = None) -> Value:
        """An op on operands brought to their common dtype; integers become f32 where the op takes floats only.

        Raises KdslError K0206 where the op's row forbids them.
        """
        assert self.builder.location is not None
        dtype = common_dtype(things, self.builder.location)
        if not dtype.is_float and name in FLOAT_ONLY:
            dtype = F32
        return self.emit(name, [self.value(thing, dtype) for thing in things], title=title)

    def emit(self, name: str, operands: Sequence[Value], attributes: Any = None, title: str | None = None) -> Value:
        """Emit an op; what its row forbids is an error of the author's: K0206. `title` is what the author wrote."""
        alias = (title or "").removeprefix("kdsl.")
        try:
            return self.builder.emit(name, operands, attributes, alias=alias)
        except OpTypeError as error:
            raise fail("K0206", self.builder.location, operation=title or name, problem=error) from None


# What takes floats only: an integer operand is converted, as NumPy and JAX do for exp(3) and 1 / 2.
FLOAT_ONLY = frozenset(name for name in ("div", *OPS) if name == "div" or OPS[name].operands == ("x",)) - {
    "neg", "abs", "not", "cast", "broadcast", "reshape",
}  # fmt: skip
