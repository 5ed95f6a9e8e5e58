"""What each pointwise op of the table is in Triton: one line an op, in the table's order.

A template is Python with {0}, {1}, ... for the operands; `{0} + {1}` is an operator and gets parentheses where they
are needed, anything else is a call. An entry is a template, or a function of the op and its operands that gives one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kdsl.ir.dtypes import BOOL, I32, DType
from kdsl.ir.kernel import Op
from kdsl.ir.meaning import number

from .casts import cast
from .dtypes import TYPES, is_narrow
from .helpers import HELPERS

# How tightly Python's operators bind.
COMPARE, OR, XOR, AND, SHIFT, ADD, MULTIPLY, UNARY, ATOM = range(9)
PRECEDENCE = {
    **dict.fromkeys(["==", "!=", "<", "<=", ">", ">="], COMPARE),
    **{"|": OR, "^": XOR, "&": AND, "<<": SHIFT, ">>": SHIFT, "+": ADD, "-": ADD},
    **dict.fromkeys(["*", "/", "//", "%"], MULTIPLY),
}


@dataclass(frozen=True)
class Text:
    """An expression: its code and how tightly it binds. `untyped` marks what may be a plain number when Triton compiles
    it: literals, and sizes, which a launch turns into constants where they are 1."""

    code: str
    precedence: int = ATOM
    untyped: bool = False

    def within(self, precedence: int) -> str:
        """The code, in parentheses if it binds less tightly."""
        return self.code if self.precedence >= precedence else f"({self.code})"


def without_parentheses(code: str) -> str:
    """The code without parentheses around all of it."""
    depth = 0
    for place, character in enumerate(code):
        depth += (character == "(") - (character == ")")
        if depth == 0 and place < len(code) - 1:
            return code
    return code[1:-1] if code.startswith("(") else code


Entry = str | Callable[[Op, Sequence[Text]], str]


def _by_dtype(f32: str, f64: str) -> Entry:
    return lambda op, operands: f64 if op.operands[0].dtype.name == "f64" else f32


def _by_sign(unsigned: str, signed: str) -> Entry:
    return lambda op, operands: unsigned if op.operands[0].dtype.kind == "uint" else signed


def _shift(operator: str, helper: str) -> Entry:
    def entry(op: Op, operands: Sequence[Text]) -> str:
        bits = op.operands[0].dtype.bits
        if operands[1].code.isdigit() and int(operands[1].code) < bits:
            return f"{{0}} {operator} {{1}}"
        return f"{helper}({{0}}, {{1}}, {bits})"

    return entry


def _extreme(name: str, boolean: str) -> Entry:
    def entry(op: Op, operands: Sequence[Text]) -> str:
        dtype = op.result.dtype
        if dtype == BOOL:
            return boolean
        nan = ", propagate_nan=tl.PropagateNan.ALL" if dtype.is_float else ""
        return f"tl.{name}({{0}}, {{1}}{nan})"

    return entry


def _mulhi(op: Op, operands: Sequence[Text]) -> str:
    dtype = op.result.dtype
    if dtype.bits < 64:
        wide = "tl.int64" if dtype.kind == "int" else "tl.uint64"
        unsigned = dtype.name == "u32"
        return "tl.umulhi({0}, {1})" if unsigned else f"narrow_mulhi({{0}}, {{1}}, {dtype.bits}, {wide})"
    return "tl.umulhi({0}, {1})" if dtype.kind == "uint" else "signed_mulhi({0}, {1})"


def _clamp(op: Op, operands: Sequence[Text]) -> str:
    nan = ", propagate_nan=tl.PropagateNan.ALL" if op.result.dtype.is_float else ""
    return f"tl.minimum(tl.maximum({{0}}, {{1}}{nan}), {{2}}{nan})"


EXPRESSIONS: dict[str, Entry] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": _by_dtype("tl.div_rn({0}, {1})", "{0} / {1}"),
    "floordiv": _by_sign("unsigned_div({0}, {1})", "floor_div({0}, {1})"),
    "floormod": _by_sign("unsigned_mod({0}, {1})", "floor_mod({0}, {1})"),
    "maximum": _extreme("maximum", "{0} | {1}"),
    "minimum": _extreme("minimum", "{0} & {1}"),
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "shl": _shift("<<", "shift_left"),
    "shr": _shift(">>", "shift_right"),
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "neg": "-{0}",
    "abs": "tl.abs({0})",
    "not": "~{0}",
    "floor": "tl.floor({0})",
    "ceil": "tl.ceil({0})",
    "exp": "tl.exp({0})",
    "exp2": "tl.exp2({0})",
    "log": "tl.log({0})",
    "log2": "tl.log2({0})",
    "sqrt": _by_dtype("tl.sqrt_rn({0})", "tl.sqrt({0})"),
    "rsqrt": "tl.rsqrt({0})",
    "sin": "tl.sin({0})",
    "cos": "tl.cos({0})",
    "tanh": _by_dtype("tanh({0})", "tanh_f64({0})"),
    "erf": "tl.erf({0})",
    "sigmoid": "tl.sigmoid({0})",
    "select": "tl.where({0}, {1}, {2})",
    "cast": lambda op, operands: cast(op, operands[0].untyped),
    "truncdiv": _by_sign("unsigned_div({0}, {1})", "trunc_div({0}, {1})"),
    "truncmod": _by_sign("unsigned_mod({0}, {1})", "trunc_mod({0}, {1})"),
    "mulhi": _mulhi,
    "maxnum": "tl.maximum({0}, {1})",
    "minnum": "tl.minimum({0}, {1})",
    "precise_div": _by_dtype("tl.div_rn({0}, {1})", "{0} / {1}"),
    "precise_sqrt": _by_dtype("tl.sqrt_rn({0})", "tl.sqrt({0})"),
    "fma": "tl.fma({0}, {1}, {2})",
    "clamp": _clamp,
    "fmod": "libdevice.fmod({0}, {1})",
    "pow": "libdevice.pow({0}, {1})",
    "atan2": "libdevice.atan2({0}, {1})",
    "copysign": "libdevice.copysign({0}, {1})",
    "trunc": "libdevice.trunc({0})",
    "round": "libdevice.rint({0})",
    "log10": "libdevice.log10({0})",
    "log1p": "libdevice.log1p({0})",
    "expm1": "libdevice.expm1({0})",
    "cbrt": "cube_root({0})",
    "tan": "libdevice.tan({0})",
    "asin": "libdevice.asin({0})",
    "acos": "libdevice.acos({0})",
    "atan": "libdevice.atan({0})",
    "sinh": "libdevice.sinh({0})",
    "cosh": "libdevice.cosh({0})",
    "asinh": "libdevice.asinh({0})",
    "acosh": "libdevice.acosh({0})",
    "atanh": "libdevice.atanh({0})",
    "is_nan": "is_nan({0})",
    "is_inf": "is_inf({0})",
    "is_finite": "is_finite({0})",
    "bitcast": lambda op, operands: f"{{0}}.to({TYPES[op.result.dtype.name]}, bitcast=True)",
}
# Functions of CUDA's or AMD's device library, of f32 and f64.
LIBRARY = frozenset(
    name for name, entry in EXPRESSIONS.items() if isinstance(entry, str) and entry.startswith("libdevice.")
)

# Computed in f32 for 16-bit operands and rounded once: Triton has these for f32 and f64 only.
WIDE = LIBRARY | frozenset([
    "div", "floor", "ceil", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid",
    "precise_div", "precise_sqrt", "cbrt",
])  # fmt: skip


def literal(value: bool | int | float, dtype: DType) -> Text:
    """A constant as Python writes it; floats with no more digits than their type needs."""
    if not dtype.is_float:
        code = str(value)
    elif not np.isfinite(value):
        code = f'float("{float(value)}")'
    else:
        rounded = number(value, dtype)
        code = str(np.float32(rounded)) if dtype.bits <= 32 else repr(float(rounded))
    return Text(code, UNARY if code.startswith("-") else ATOM, untyped=True)


def typed(text: Text, dtype: DType) -> Text:
    """The expression with its type pinned, where it may be a plain number."""
    return Text(f"tl.cast({text.code}, {TYPES[dtype.name]})") if text.untyped else text


def pointwise(op: Op, operands: Sequence[Text]) -> Text:
    """The expression of a pointwise op whose operands have been brought to the result's layout."""
    entry, dtype = EXPRESSIONS[op.name], op.result.dtype
    template = entry if isinstance(entry, str) else entry(op, operands)
    if op.name in ("add", "sub", "mul") and dtype == I32 and all(text.untyped for text in operands):
        return replace(_render(template, operands), untyped=True)
    if _needs_types(op, template, operands):
        operands = [typed(text, value.dtype) for text, value in zip(operands, op.operands, strict=True)]
    if op.name in WIDE and is_narrow(dtype):
        wide = [text if text.untyped else Text(f"{text.within(ATOM)}.to(tl.float32)") for text in operands]
        return Text(f"{_render(template, wide).code}.to({TYPES[dtype.name]})")
    return _render(template, operands)


def _needs_types(op: Op, template: str, operands: Sequence[Text]) -> bool:
    """Whether plain numbers would get a type that is not the op's: they take that of a typed operand, if there is one
    and what they are given to is no function of this module."""
    if op.name == "cast":
        return False
    if op.name == "bitcast" or op.name in LIBRARY:
        return True
    if op.name == "select":
        return operands[0].untyped or (operands[1].untyped and operands[2].untyped)
    return template.partition("(")[0] in HELPERS or all(text.untyped for text in operands)


def _render(template: str, operands: Sequence[Text]) -> Text:
    """A template with its operands put in, parentheses where Python needs them."""
    infix = re.fullmatch(r"\{0\} (\S+) (\{1\}|0)", template)
    if infix:
        level = PRECEDENCE[infix[1]]
        # Comparisons chain in Python and the others group to the left, so one side has to bind tighter, or both.
        left = operands[0].within(level + 1 if level == COMPARE else level)
        right = operands[1].within(level + 1) if len(operands) > 1 else infix[2]
        return Text(f"{left} {infix[1]} {right}", level)
    if template in ("-{0}", "~{0}"):
        return Text(template.format(operands[0].within(ATOM)), UNARY)

    def put(match: re.Match[str]) -> str:
        before, after = template[: match.start()], template[match.end() :]
        alone = before.endswith(("(", ", ")) and after.startswith((",", ")"))
        return operands[int(match[1])].within(COMPARE if alone else ATOM)

    return Text(re.sub(r"\{(\d)\}", put, template))
