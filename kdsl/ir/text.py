"""The text form: `print_kernel` and `parse_kernel`, each the other's inverse (`kir.lark` has the grammar).

    kernel scale(x: in f32[N], y: out f32[N]) {
      size N
      tile BN = 128
      program n_block < cdiv(N, BN)
      axis n < BN where BN*n_block + n < N
      %x: f32[n_block, n] = load x[BN*n_block + n]
      %two: f32 = constant {value = 2.0}
      %y: f32[n_block, n] = mul %x, %two
      store y[BN*n_block + n] = %y
    }

The author's docstring stays behind; places in the source are printed on demand.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import lark

from kdsl.diagnostics import Location, fail
from kdsl.ir.dtypes import DTYPES, DType
from kdsl.ir.expr import FUNCTIONS, Expr, function, symbol, wrap
from kdsl.ir.kernel import (
    Axis,
    Bound,
    Buffer,
    Constraint,
    Integer,
    Kernel,
    Op,
    Region,
    Scalar,
    Size,
    Text,
    TileParameter,
    Value,
)
from kdsl.ir.ops import OPS

# -- printing ------------------------------------------------------------------------------------------------------


def print_kernel(kernel: Kernel, locations: bool = False) -> str:
    """The kernel as text, with each op's place in the author's source if asked."""
    printer = _Printer(kernel.location.file if kernel.location else None, locations)
    parameters = ", ".join(
        f"{p.name}: {p.role} {p.dtype}[{_join(p.shape)}]" if isinstance(p, Buffer) else f"{p.name}: {p.dtype}"
        for p in kernel.parameters
    )
    head = f"kernel {kernel.name}({parameters}){printer.place(kernel.location, named=True)} {{"
    lines = [f"size {size.name}" + ("" if size.value is None else f" = {size.value}") for size in kernel.sizes]
    lines += [f"tile {tile.name} = {tile.default}" for tile in kernel.tiles]
    lines += [f"require {constraint}{printer.place(constraint.location)}" for constraint in kernel.constraints]
    for axis in kernel.axes:
        kind = "axis" if axis.kind == "tile" else axis.kind
        lines.append(f"{kind} {axis.name} < {axis.extent}{_where(axis.bounds)}")
    lines += [f"integer {each.name}{f'[{_join(each.axes)}]' if each.axes else ''}" for each in kernel.integers]
    lines += printer.region(kernel.body)
    return "\n".join([head, *(f"  {line}" for line in lines), "}"]) + "\n"


def print_type(value: Value) -> str:
    """A value's dtype and axes, as text."""
    return f"{value.dtype}[{_join(value.axes)}]" if value.axes else str(value.dtype)


def _join(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def _where(bounds: Sequence[Bound]) -> str:
    return f" where {' and '.join(map(str, bounds))}" if bounds else ""


def _attribute(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_attribute, value))}]"
    if isinstance(value, Text):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Printer:
    def __init__(self, file: str | None, locations: bool) -> None:
        self.file, self.locations = file, locations

    def place(self, location: Location | None, named: bool = False) -> str:
        if location is None or not self.locations:
            return ""
        file = f"{json.dumps(location.file)}:" if named or location.file != self.file else ""
        end = f"-{location.end_column}" if location.end_column is not None else ""
        return f" at {file}{location.line}:{location.column}{end}"

    def region(self, region: Region) -> list[str]:
        return [line for op in region.ops for line in self.op(op)]

    def op(self, op: Op) -> list[str]:
        results = _join(f"{value}: {print_type(value)}" for value in op.results)
        prefix, suffix = f"{results} = " if results else "", self.place(op.location)
        attributes = op.attributes
        if op.name in ("load", "store"):
            access = f"{attributes['buffer']}[{_join(attributes['index'])}]"
            fill = f" fill {_attribute(attributes['fill'])}" if "fill" in attributes else ""
            stored = f" = {op.operands[0]}" if op.name == "store" else ""
            return [f"{prefix}{op.name} {access}{stored}{_where(attributes.get('bounds', ()))}{fill}{suffix}"]
        if op.name == "for":
            (body,) = op.regions
            carried = _join(
                f"{argument}: {print_type(argument)} = {initial}"
                for argument, initial in zip(body.arguments, op.operands, strict=True)
            )
            inner = [f"  {line}" for line in self.region(body)]
            return [f"{prefix}for {attributes['axis']} ({carried}) {{", *inner, f"}}{suffix}"]
        shown = ", ".join(f"{key} = {_attribute(value)}" for key, value in attributes.items())
        operands = f" {_join(op.operands)}" if op.operands else ""
        head = f"{prefix}{op.name}{operands}{f' {{{shown}}}' if shown else ''}"
        lines = [head]
        for block in op.regions:
            arguments = _join(f"{argument}: {print_type(argument)}" for argument in block.arguments)
            lines[-1] += f" ({arguments}) {{"
            lines += [*(f"  {line}" for line in self.region(block)), "}"]
        return [*lines[:-1], lines[-1] + suffix]


# -- parsing -------------------------------------------------------------------------------------------------------

# The longest kernel seen is some thousand lines; what is far beyond that is no kernel.
LARGEST_TEXT = 4_000_000
# Terms, factors or arguments in one expression, and the size of its integers: u64 constants are written as integers.
LARGEST_EXPRESSION = 256
LARGEST_INTEGER = 2**64


@functools.cache
def _grammar() -> lark.Lark:
    text = Path(__file__).with_name("kir.lark").read_text()
    return lark.Lark(text, start="kernel", parser="lalr", maybe_placeholders=True, propagate_positions=True)


def parse_kernel(text: str, file: str = "<kir>") -> Kernel:
    """The kernel that a text states. Raises KdslError K0701 for text that is none, with its line and column."""
    if len(text) > LARGEST_TEXT:
        raise fail("K0701", Location(file, 1), problem=f"{len(text)} characters are more than {LARGEST_TEXT}")
    try:
        tree = _grammar().parse(text)
        return _Builder(file).transform(tree)  # type: ignore[no-any-return]  # lark's transform is untyped
    except lark.exceptions.UnexpectedInput as error:
        problem = " ".join(str(error).split("\n")[0].split())
        raise fail("K0701", Location(file, max(1, error.line), max(1, error.column)), problem=problem) from None
    except lark.exceptions.VisitError as error:
        place = getattr(getattr(error.obj, "meta", None), "line", None) or 1
        column = getattr(getattr(error.obj, "meta", None), "column", None) or 1
        raise fail("K0701", Location(file, place, column), problem=error.orig_exc) from None
    except RecursionError:
        raise fail("K0701", Location(file, 1), problem="the text is nested too deeply") from None


@lark.v_args(inline=True)
class _Builder(lark.Transformer[Any, Any]):
    """Builds the kernel bottom up. Values are known by name once their definition has been seen."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file
        self.values: dict[str, Value] = {}

    # Expressions.
    def integer(self, token: str) -> Expr:
        return wrap(int(token))

    def symbol(self, token: str) -> Expr:
        return symbol(str(token))

    def function(self, name: str, *arguments: Expr) -> Expr:
        if name not in FUNCTIONS:
            raise ValueError(f"no integer function named {name}")
        _check_size(len(arguments))
        return function(str(name), *arguments)

    def product(self, *factors: Expr) -> Expr:
        _check_size(len(factors))
        result = factors[0]
        for factor in factors[1:]:
            _check_size(len(result.terms) * len(factor.terms))
            result = result * factor
        return result

    def negative(self, value: Expr) -> Expr:
        return -value

    def expr(self, first: Expr, *rest: Any) -> Expr:
        _check_size(len(rest))
        result = first
        for sign, term in zip(rest[::2], rest[1::2], strict=True):
            result = result + term if sign == "+" else result - term
        if any(abs(coefficient) > LARGEST_INTEGER for _, coefficient in result.terms):
            raise ValueError("an integer is too large")
        return result

    # Bounds.
    def between(self, lower: Expr, form: Expr, upper: Expr) -> Bound:
        return Bound(form, lower, upper)

    def at_least(self, lower: Expr, form: Expr) -> Bound:
        return Bound(form, lower, None)

    def below(self, form: Expr, upper: Expr) -> Bound:
        return Bound(form, None, upper)

    def bounds(self, *bounds: Bound) -> tuple[Bound, ...]:
        return bounds

    # Attributes, read by the kinds that the op table gives them.
    def attribute_value(self, value: Any) -> Any:
        if not isinstance(value, lark.Token):
            return value
        if value.type == "STRING":
            return Text(json.loads(value))
        return math.nan if value.endswith("nan") else float(value)

    def sequence(self, *items: Any) -> tuple[Any, ...]:
        return _present(items)

    def attribute(self, name: str, value: Any) -> tuple[str, Any]:
        return str(name), value

    def place(self, file: str | None, line: str, column: str, end: str | None) -> Location:
        return Location(json.loads(file) if file else self.file, int(line), int(column), int(end) if end else None)

    def origin(self, place: Location) -> Location:
        self.file = place.file  # the places that follow leave it out
        return place

    # Declarations.
    def buffer(self, name: str, role: Any, dtype: str, *shape: Expr | None) -> Buffer:
        return Buffer(str(name), _dtype(dtype), _present(shape), str(role))  # type: ignore[arg-type]  # ROLE matched

    def scalar(self, name: str, dtype: str) -> Scalar:
        return Scalar(str(name), _dtype(dtype))

    def size(self, name: str, value: Expr | None) -> Size:
        return Size(str(name), value)

    def tile(self, name: str, default: str) -> TileParameter:
        return TileParameter(str(name), int(default))

    def comparison(self, token: str) -> str:
        return str(token)

    def require(self, left: Expr, comparison: Any, right: Expr, place: Location | None) -> Constraint:
        return Constraint(left, str(comparison), right, place)  # type: ignore[arg-type]  # COMPARISON matched

    def axis(self, kind: str, name: str, extent: Expr, bounds: tuple[Bound, ...] | None) -> Axis:
        known = "tile" if kind == "axis" else str(kind)
        return Axis(str(name), known, extent, bounds or ())  # type: ignore[arg-type]  # AXIS_KIND matched

    def named_integer(self, name: str, *axes: str | None) -> Integer:
        return Integer(str(name), tuple(map(str, _present(axes))))

    # Ops.
    def typed(self, token: str, dtype: str, *axes: str | None) -> Value:
        value = Value(token[1:], _dtype(dtype), tuple(map(str, _present(axes))))
        if value.name in self.values:
            raise ValueError(f"{value} is defined twice")
        self.values[value.name] = value
        return value

    def _value(self, token: str) -> Value:
        if token[1:] not in self.values:
            raise ValueError(f"{token} is used before it is defined")
        return self.values[token[1:]]

    def results(self, *values: Value) -> tuple[Value, ...]:
        return values

    def operands(self, *tokens: str) -> tuple[Value, ...]:
        return tuple(self._value(token) for token in tokens)

    def carried(self, argument: Value, initial: str) -> tuple[Value, Value]:
        return argument, self._value(initial)

    def access(self, buffer: str, *index: Expr | None) -> dict[str, Any]:
        return {"buffer": str(buffer), "index": _present(index)}

    def region(self, *ops: Op) -> tuple[Op, ...]:
        return ops

    def block(self, *parts: Any) -> Region:
        arguments = tuple(part for part in parts if isinstance(part, Value))
        return Region(arguments, tuple(part for part in parts if isinstance(part, Op)))

    def plain(self, results: Any, name: str, operands: Any, *rest: Any) -> Op:
        *parts, place = rest
        attributes = [part for part in parts if not isinstance(part, Region)]
        regions = tuple(part for part in parts if isinstance(part, Region))
        kinds = dict(OPS[name].attributes) if name in OPS else {}
        read = {key: _read(kinds.get(key, "word"), value) for key, value in _present(attributes)}
        if len(read) != len(_present(attributes)):
            raise ValueError(f"an attribute of {name} is given twice")
        return Op(str(name), operands or (), results or (), read, regions, place)

    def load(self, results: Any, access: dict[str, Any], bounds: Any, fill: Any, place: Location | None) -> Op:
        attributes = access | ({"bounds": bounds} if bounds else {})
        if fill is not None:
            attributes["fill"] = _read("value", fill)
        return Op("load", (), results, attributes, location=place)

    def store(self, access: dict[str, Any], token: str, bounds: Any, place: Location | None) -> Op:
        attributes = access | ({"bounds": bounds} if bounds else {})
        return Op("store", (self._value(token),), (), attributes, location=place)

    def loop(self, results: Any, axis: str, *rest: Any) -> Op:
        *carried, ops, place = rest
        pairs = _present(carried)
        region = Region(tuple(argument for argument, _ in pairs), ops)
        initial = tuple(value for _, value in pairs)
        return Op("for", initial, results or (), {"axis": str(axis)}, (region,), place)

    def pause(self, place: Location | None) -> Op:
        return Op("breakpoint", location=place)

    def kernel(self, name: str, *rest: Any) -> Kernel:
        items = _present(rest)

        def of(kind: Any) -> tuple[Any, ...]:
            return tuple(item for item in items if isinstance(item, kind))

        place = next(iter(of(Location)), None)
        body = Region((), of(Op))
        return Kernel(
            str(name),
            of((Buffer, Scalar)),
            of(Size),
            of(TileParameter),
            of(Constraint),
            of(Axis),
            body,
            place,
            integers=of(Integer),
        )


def _check_size(parts: int) -> None:
    if parts > LARGEST_EXPRESSION:
        raise ValueError(f"{parts} parts in one expression are more than {LARGEST_EXPRESSION}")


def _present(items: Iterable[Any]) -> tuple[Any, ...]:
    """What is there of optional parts: lark gives None for an absent one."""
    return tuple(item for item in items if item is not None)


def _dtype(name: str) -> DType:
    if name not in DTYPES:
        raise ValueError(f"no dtype named {name}")
    return DTYPES[name]


def _name(value: Any) -> str:
    if not isinstance(value, Expr) or len(value.symbols) != 1 or value != symbol(next(iter(value.symbols))):
        raise ValueError(f"expected a name, not {value}")
    return next(iter(value.symbols))


def _read(kind: str, value: Any) -> Any:
    """An attribute as the kind that its row of the op table gives."""
    if kind in ("axis", "word", "scalar", "buffer"):
        return _name(value)
    if kind == "axes" and isinstance(value, tuple):
        return tuple(_name(item) for item in value)
    if kind in ("value", "flag") and isinstance(value, Expr):
        words = {"true": True, "false": False}
        if value.constant is not None:
            return value.constant
        if _name(value) not in words:
            raise ValueError(f"expected a number, not {value}")
        return words[_name(value)]
    return value
