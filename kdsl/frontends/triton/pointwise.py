"""Lanewise ops of TTIR as ops of the IR: mostly one row for another.

TTIR's integers have no sign of their own: an op that reads them as unsigned goes through the unsigned dtype.
"""

from __future__ import annotations

from collections.abc import Callable

from kdsl.frontends.triton.module import Operation
from kdsl.frontends.triton.types import Tensor, Type
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import BF16, BOOL, DTYPES, F16, F32, F64, I8, I16, I32, I64, DType
from kdsl.ir.kernel import Value

DTYPE_OF = {"i1": BOOL, "i8": I8, "i16": I16, "i32": I32, "i64": I64, "f16": F16, "bf16": BF16, "f32": F32, "f64": F64}

Emit = Callable[[Builder, Operation, list[Value], DType], Value | None]

_SAME_NAME = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "floor", "ceil", "erf", "fma", "tanh")
ROWS = {
    **{f"math.{name}": name for name in _SAME_NAME},
    "math.absf": "abs",
    "math.absi": "abs",
    "arith.addf": "add",
    "arith.subf": "sub",
    "arith.mulf": "mul",
    "arith.divf": "div",
    "arith.remf": "fmod",
    "arith.negf": "neg",
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
    "arith.maxnumf": "maxnum",
    "arith.minnumf": "minnum",
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.divsi": "truncdiv",
    "arith.remsi": "truncmod",
    "arith.maxsi": "maximum",
    "arith.minsi": "minimum",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.shli": "shl",
    "arith.shrsi": "shr",
    "arith.select": "select",
    "tt.precise_divf": "precise_div",
    "tt.precise_sqrt": "precise_sqrt",
}
UNSIGNED_ROWS = {
    "arith.divui": "truncdiv",
    "arith.remui": "truncmod",
    "arith.maxui": "maximum",
    "arith.minui": "minimum",
    "arith.shrui": "shr",
    "tt.mulhiui": "mulhi",
}
# What i1 arithmetic is: modulo two.
BOOL_ROWS = {"arith.addi": "xor", "arith.subi": "xor", "arith.muli": "and"}
COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
COMPARISON_OPS = frozenset({"arith.cmpi", "arith.cmpf"})
CASTS = frozenset(
    f"arith.{name}" for name in ("extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui", "extf", "truncf")
)


def dtype_of(type: Type) -> DType | None:
    """The dtype of a number or of a tile's elements; None for what is no number that this reader computes with."""
    return DTYPE_OF.get(str(type.element if isinstance(type, Tensor) else type))


def emitter(name: str) -> Emit | None:
    """How a lanewise op is said. The function gives None for a form of the op that is not read."""
    if name in ROWS:
        return _row
    if name in UNSIGNED_ROWS:
        return _unsigned
    if name in COMPARISON_OPS:
        return _compare
    return _cast if name in CASTS else None


def _row(builder: Builder, operation: Operation, operands: list[Value], dtype: DType) -> Value | None:
    row = ROWS[operation.name]
    if dtype == BOOL:
        row = BOOL_ROWS.get(operation.name, row)
        if row not in ("and", "or", "xor", "select"):
            return None
    return builder.emit(row, operands)


def _unsigned(builder: Builder, operation: Operation, operands: list[Value], dtype: DType) -> Value | None:
    if dtype == BOOL:
        return None
    result = builder.emit(UNSIGNED_ROWS[operation.name], [as_unsigned(builder, value) for value in operands])
    return builder.emit("bitcast", [result], dtype=dtype)


def as_unsigned(builder: Builder, value: Value) -> Value:
    """The same bits, read as an unsigned integer."""
    return builder.emit("bitcast", [value], dtype=DTYPES[f"u{value.dtype.bits}"])


def _compare(builder: Builder, operation: Operation, operands: list[Value], dtype: DType) -> Value | None:
    word = str(operation.words[0])
    if operation.name == "arith.cmpi":
        if word not in ("eq", "ne") and (operands[0].dtype == BOOL or word[:1] not in ("s", "u")):
            return None
        if word[:1] == "u":
            operands = [as_unsigned(builder, value) for value in operands]
        row = COMPARISONS.get(word if word in ("eq", "ne") else word[1:])
        return builder.emit(row, operands) if row is not None else None
    # Ordered comparisons are false where a number is NaN, unordered ones true.
    match word:
        case "oeq" | "ogt" | "oge" | "olt" | "ole":
            return builder.emit(COMPARISONS[word[1:]], operands)
        case "une":
            return builder.emit("ne", operands)
        case "ugt" | "uge" | "ult" | "ule":
            return builder.emit("not", [builder.emit(NEGATED[word[1:]], operands)])
        case "one" | "ueq":
            apart = builder.emit("or", [builder.emit("lt", operands), builder.emit("gt", operands)])
            return apart if word == "one" else builder.emit("not", [apart])
        case "ord" | "uno":
            real = [builder.emit("eq", [value, value]) for value in operands]
            both = builder.emit("and", real)
            return both if word == "ord" else builder.emit("not", [both])
    return None


def _cast(builder: Builder, operation: Operation, operands: list[Value], dtype: DType) -> Value | None:
    (value,), name = operands, operation.name
    if operation.words not in ((), ("to_nearest_even",)):
        return None
    if value.dtype == BOOL and name in ("arith.extsi", "arith.sitofp"):
        return builder.emit("neg", [builder.emit("cast", [value], dtype=dtype)])  # true is -1
    if name == "arith.trunci" and dtype == BOOL:
        one = builder.emit("constant", attributes={"value": 1}, dtype=value.dtype)
        return builder.emit("cast", [builder.emit("and", [value, one])], dtype=dtype)
    if name in ("arith.extui", "arith.uitofp") and value.dtype != BOOL:
        value = as_unsigned(builder, value)
    if name == "arith.fptoui" and dtype != BOOL:
        return builder.emit("bitcast", [builder.emit("cast", [value], dtype=DTYPES[f"u{dtype.bits}"])], dtype=dtype)
    return builder.emit("cast", [value], dtype=dtype)
