"""Integer values as index forms: what `index` ops and arithmetic on them give, where nothing wraps around.

before:  %i: i32[p] = index {form = p};  %j: i32[p] = mul %i, %four;  %x: f32[p] = load_at %j {buffer = x}
after:   places(load_at) = (4*p,)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from kdsl.analysis.ranges import interval
from kdsl.ir.dtypes import holds_number
from kdsl.ir.expr import Expr, function, wrap
from kdsl.ir.kernel import Kernel, Op, Value, walk

_ARITHMETIC: dict[str, Callable[..., Expr]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "maximum": lambda a, b: function("max", a, b),
    "minimum": lambda a, b: function("min", a, b),
    "floordiv": lambda a, b: function("floordiv", a, b),
    "floormod": lambda a, b: function("mod", a, b),
    # An integer that fits both types stays the same.
    "cast": lambda a: a,
    "broadcast": lambda a: a,
}
_DIVISIONS = ("floordiv", "floormod")


class Forms:
    """The index forms of a kernel's values."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._known: dict[str, Expr | None] = {}

    @cached_property
    def _makers(self) -> dict[str, Op]:
        return {value.name: op for op in walk(self.kernel.body) for value in op.results}

    def places(self, op: Op) -> tuple[Expr, ...] | None:
        """The forms that give an access's place in each dimension of its buffer, or None where one is not known."""
        if "index" in op.attributes:
            return tuple(op.attributes["index"])
        rank = len(self.kernel.buffer(op.attributes["buffer"]).shape)
        end = len(op.operands) - bool(op.attributes.get("masked"))
        found = [self.of(value) for value in op.operands[end - rank : end]]
        known = tuple(form for form in found if form is not None)
        return known if len(known) == rank else None

    def of(self, value: Value) -> Expr | None:
        """The form that equals an integer value in all lanes, or None: for bound kernels, where ranges are known."""
        if value.name not in self._known:
            form = self._form(value)
            ends = None if form is None else interval(self.kernel, form)
            fits = ends is not None and all(holds_number(value.dtype, end) for end in ends)
            self._known[value.name] = form if fits else None
        return self._known[value.name]

    def _form(self, value: Value) -> Expr | None:
        op = self._makers.get(value.name)  # none for what a region is given
        if op is None or not value.dtype.is_integer:
            return None
        if op.name == "index":
            form: Expr = op.attributes["form"]
            return form
        if op.name == "constant":
            return wrap(int(op.attributes["value"]))
        if op.name not in _ARITHMETIC:
            return None
        operands = [self.of(operand) for operand in op.operands]
        known = [form for form in operands if form is not None]
        if len(known) < len(operands) or (op.name in _DIVISIONS and (known[1].constant or 0) < 1):
            return None
        return _ARITHMETIC[op.name](*known)
