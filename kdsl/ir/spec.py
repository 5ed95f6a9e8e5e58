"""What a row of the op table is, and the table itself, empty until `ops.py` fills it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from kdsl.ir import errors, meaning, type_rules
from kdsl.ir.errors import ErrorRule

Effect = Literal[
    "none",
    "read",
    "write",
    "atomic",  # reads and writes an element at once; happens once for each program, also where it is uniform
    "define",  # names an integer that later ops may mention
    "report",  # asserts, prints, breakpoints: touches no memory, but must not be dropped
]

Padding = Literal[
    "lanewise",  # a lane of the result depends on the same lane of the operands: invalid in, invalid out
    "excluded",  # lanes invalid along the reduced axis never take part
    "zeroed",  # both operands count as zero where the contracted axis is invalid
    "predicated",  # an invalid lane touches no memory
    "rearranged",  # only legal on axes that have no invalid lane
    "region",  # what the ops of the region do
]

AttributeKind = Literal["value", "axis", "axes", "form", "forms", "bounds", "buffer", "scalar", "word", "flag", "text"]


@dataclass(frozen=True)
class OpSpec:
    """One row of the table.

    `operands` names them ("*" for any number); `optional` attributes may be left out. `infer` gives the result types
    or raises OpTypeError. `pointwise` is the meaning of a lanewise op on aligned arrays; `evaluate` that of any other,
    with the interpreter's frame.
    """

    name: str
    doc: str
    operands: tuple[str, ...]
    infer: type_rules.Infer
    attributes: tuple[tuple[str, AttributeKind], ...] = ()
    optional: tuple[str, ...] = ()
    regions: int = 0
    effect: Effect = "none"
    padding: Padding = "lanewise"
    pointwise: Callable[..., Any] | None = None
    evaluate: meaning.Evaluate | None = None
    error: ErrorRule = errors.exact


OPS: dict[str, OpSpec] = {}


def define(spec: OpSpec) -> None:
    """Add a row. Raises ValueError for a name that is taken."""
    if spec.name in OPS:
        raise ValueError(f"op {spec.name} is declared twice")
    OPS[spec.name] = spec


def define_pointwise(
    name: str,
    doc: str,
    infer: type_rules.Infer,
    function: Callable[..., Any],
    error: ErrorRule = errors.exact,
    operands: str = "x y",
) -> None:
    """Add the row of a lanewise op that is one NumPy function."""
    define(OpSpec(name, doc, tuple(operands.split()), infer, pointwise=function, error=error))


def define_unary(name: str, doc: str, function: Callable[..., Any], error: ErrorRule, kinds: str = "float") -> None:
    """Add the row of a function of one operand, of the kinds of dtype given."""
    define_pointwise(name, doc, type_rules.same(kinds), function, error, operands="x")
