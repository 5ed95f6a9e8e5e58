"""What stands in an op, sorted: operands, words, attributes, types, regions, still with names for values.

The grammar gives an op as a flat row of tokens and groups, since each op has a form of its own. What they share: values
and words first, then a colon and the types of operands, then an arrow (or `to`) and the types of results.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from lark import Token

from kdsl.frontends.triton.constants import dense, number, string
from kdsl.frontends.triton.module import Attribute
from kdsl.frontends.triton.problems import Problem, shown
from kdsl.frontends.triton.types import Type, parse_type

DEEPEST = 64  # regions, groups, lists and dictionaries within one another
# Words that only separate: they say no more than the order of operands and regions does.
SEPARATORS = frozenset({"step", "iter_args", "do", "else", "attributes"})


@dataclass(slots=True)
class Group:
    """What stands between parentheses."""

    items: list[Any]
    depth: int


@dataclass(slots=True)
class Row:
    """What stands between square brackets."""

    items: list[Any]
    depth: int


@dataclass(slots=True)
class Bindings:
    """`(%argument = %initial, ...)`: what a loop carries."""

    pairs: list[tuple[str, str]]
    depth: int = 1


@dataclass(slots=True)
class Entries:
    """A dictionary of attributes."""

    values: dict[str, Attribute]
    depth: int


@dataclass(slots=True)
class Argument:
    """An argument of a function or of a block."""

    name: str
    type: Type
    attributes: dict[str, Attribute] = field(default_factory=dict)
    location: str | None = None


@dataclass(slots=True)
class RawBlock:
    label: str
    arguments: list[Argument]
    operations: list[RawOperation]


@dataclass(slots=True)
class RawRegion:
    blocks: list[RawBlock]
    depth: int


@dataclass(slots=True)
class RawOperation:
    """An op with names for values. `returned` is None where the op gives no types for results of their own."""

    name: str
    line: int
    column: int
    results: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    words: list[Any] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    written: list[Type] = field(default_factory=list)
    returned: list[Type] | None = None
    short_types: list[str] = field(default_factory=list)
    regions: list[RawRegion] = field(default_factory=list)
    successors: list[tuple[str, list[str]]] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    bindings: list[tuple[str, str]] = field(default_factory=list)
    induction: str | None = None
    location: str | None = None
    depth: int = 0


def deeper(children: list[Any]) -> int:
    """How deep what holds these is nested. Raises Problem where that is too deep."""
    depth = 1 + max((0 if isinstance(child, Token) else child.depth for child in children), default=0)
    if depth > DEEPEST:
        raise Problem("the text is nested too deeply")
    return depth


def attribute(items: list[Any], type: Type | None = None) -> Attribute:
    """The value of an attribute: one token or group, perhaps with `: type` behind it."""
    first = items[0]
    if isinstance(first, Row):
        return tuple(attributes(first.items))
    if isinstance(first, Entries):
        return first.values
    kind = first.type if isinstance(first, Token) else ""
    if len(items) == 3 and items[1].type == "COLON":
        type = parse_type(items[2])
    match kind:
        case "NUMBER":
            return number(str(first), type)
        case "DENSE" if type is not None:
            return dense(str(first), type)  # type: ignore[return-value]  # nested tuples of numbers
        case "STRING":
            return string(first)
        case "ARRAY":
            element, _, values = first[len("array<") : -1].partition(":")
            element_type = parse_type(element.strip())
            return tuple(number(value, element_type) for value in re.findall(r"[^\s,]+", values))
        case "WORD" if first in ("true", "false"):
            return bool(first == "true")
        case "WORD":
            return "".join(items)
        case "TYPE":
            return parse_type(str(first))
        case "SYMBOL":
            return str(first[1:].strip('"'))
        case "ATTRIBUTE":
            return str(first)
    raise Problem(f"expected an attribute, got {shown(str(first)) if kind else 'a group'}")


def attributes(items: list[Any]) -> list[Attribute]:
    """The values of a row, of which some have their type behind them."""
    found: list[list[Any]] = []
    for item in items:
        if (
            found
            and isinstance(item, Token)
            and (item.type == "COLON" or getattr(found[-1][-1], "type", "") == "COLON")
        ):
            found[-1].append(item)
        else:
            found.append([item])
    return [attribute(each) for each in found]


def names(results: str) -> list[str]:
    """The results that `%a, %b:2 =` defines: %a, %b#0 and %b#1."""
    found = []
    for name, count in re.findall(r"(%[\w.$-]+)(?::(\d{1,3})(?!\d))?", results):
        found += [f"{name}#{index}" for index in range(int(count))] if count else [name]
    return found


def arguments(items: list[Any]) -> list[Argument]:
    """`%name: type {attributes} loc(...)` for each argument. Raises Problem."""
    found: list[Argument] = []
    position = 0
    while position < len(items):
        kinds = [getattr(item, "type", "") for item in items[position : position + 3]]
        if kinds != ["VALUE", "COLON", "TYPE"]:
            raise Problem("expected arguments as in `%name: type`")
        argument = Argument(str(items[position]), parse_type(str(items[position + 2])))
        position += 3
        if position < len(items) and isinstance(items[position], Entries):
            argument.attributes = items[position].values
            position += 1
        if position < len(items) and getattr(items[position], "type", "") == "LOCATION":
            argument.location = str(items[position])
            position += 1
        found.append(argument)
    return found


def sorted_operation(children: list[Any]) -> RawOperation:
    """An op from its row of tokens and groups. Raises Problem."""
    results = names(children.pop(0)) if children[0].type == "RESULTS" else []
    head, *items = children
    raw = RawOperation(head.strip('"'), head.line, head.column, results)
    if head.type == "FOR":
        induction = names(items.pop(0))
        if len(induction) != 1:
            raise Problem("expected one loop counter")
        raw.induction = induction[0]
    raw.depth = deeper(items)
    _Sorter(raw).sort(items)
    return raw


class _Sorter:
    def __init__(self, raw: RawOperation) -> None:
        self.raw = raw
        self.types: list[Type] | None = None  # where the next types belong; None before the colon
        self.key: str | None = None  # of `key = value`
        self.tokens: list[Token] = []  # unnamed attributes, read when the types are known
        self.scales: list[int] = []

    def sort(self, items: list[Any]) -> None:
        previous: Any = None
        for item in items:
            if isinstance(item, Token):
                self.token(item, previous)
            else:
                self.group(item, previous)
            previous = item
        raw = self.raw
        if self.key is not None:
            raise Problem(f"{self.key} = has no value")
        # A constant is the one op whose unnamed attribute has the type that is written behind the colon.
        type = raw.written[0] if raw.name == "arith.constant" and raw.written else None
        raw.words = [attribute([token], type) for token in self.tokens]
        if self.scales:
            raw.attributes["scales"] = tuple(self.scales)

    def token(self, token: Token, previous: Any) -> None:
        raw = self.raw
        match token.type:
            case "VALUE":
                raw.operands.append(str(token))
            case "COLON":
                self.types = raw.written
            case "ARROW":
                raw.returned = self.types = []
            case "TYPE" if self.key is None:
                (raw.written if self.types is None else self.types).append(parse_type(str(token)))
            case "LOCATION":
                raw.location = str(token)
            case "SUCCESSOR":
                raw.successors.append((str(token), []))
            case "EQUAL":
                if getattr(previous, "type", "") != "WORD" or not self.tokens:
                    raise Problem("expected a name before =")
                self.key = str(self.tokens.pop())
            case "ANGLE":
                if getattr(previous, "type", "") == "WORD" and self.tokens:
                    raw.attributes[str(self.tokens.pop())] = token[1:-1]  # fastmath<contract>
                else:
                    raw.short_types.append(token[1:-1])
            case "WORD" if self.key is None:
                self.word(token)
            case _ if self.key is not None:
                raw.attributes[self.key] = attribute([token])
                self.key = None
            case _:
                self.tokens.append(token)

    def word(self, token: Token) -> None:
        if token == "to":
            if self.types is not None:  # `: i32 to f32`; in a loop it stands between the bounds
                self.raw.returned = self.types = []
        elif token == "scale" and self.raw.name == "tt.dot_scaled":
            self.scales.append(len(self.raw.operands))  # of a dot_scaled: the next operand holds scales
        elif token not in SEPARATORS:
            self.tokens.append(token)

    def group(self, item: Any, previous: Any) -> None:
        raw = self.raw
        if isinstance(item, RawRegion):
            raw.regions.append(item)
        elif isinstance(item, Entries):
            raw.attributes.update(item.values)
        elif isinstance(item, Bindings):
            raw.bindings += item.pairs
        elif any(isinstance(each, RawRegion) for each in item.items):
            raw.regions += [each for each in item.items if isinstance(each, RawRegion)]
        elif self.types is not None:
            self.types += [parse_type(str(each)) for each in item.items if getattr(each, "type", "") == "TYPE"]
        elif raw.name == "tt.func":
            raw.arguments = arguments(item.items)
        else:
            values = [str(each) for each in item.items if getattr(each, "type", "") == "VALUE"]
            if getattr(previous, "type", "") == "SUCCESSOR":
                raw.successors[-1][1].extend(values)
            else:
                raw.operands += values
                labels = [each for each in item.items if getattr(each, "type", "") == "SUCCESSOR"]
                raw.successors += [(str(label), []) for label in labels]
