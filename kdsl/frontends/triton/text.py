"""`parse_module`: TTIR text, of Triton 3.8 or 3.9, as a `Module`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lark

from kdsl.diagnostics import KdslError, Location, fail
from kdsl.frontends.triton.module import Module
from kdsl.frontends.triton.problems import Problem, shown
from kdsl.frontends.triton.raw import (
    Argument,
    Bindings,
    Entries,
    Group,
    RawBlock,
    RawOperation,
    RawRegion,
    Row,
    arguments,
    attribute,
    deeper,
    names,
    sorted_operation,
)
from kdsl.frontends.triton.resolve import resolve_module

# Characters: the longest text seen, of 1,889 lines, has a quarter of that. What takes longest to read takes 10 s.
LARGEST_TEXT = 1_000_000
# How a message calls the terminals of the grammar that have no text of their own.
_EXPECTED = {"VALUE": "a value", "TYPE": "a type", "WORD": "a word", "OPERATION": "an op", "NUMBER": "a number"}


def parse_module(text: str, file: str = "<ttir>") -> Module:
    """The module that a text states. Raises KdslError K0911, with the line and column in `text`, for what is none."""
    if len(text) > LARGEST_TEXT:
        raise fail("K0911", Location(file, 1), problem=f"{len(text)} characters are more than {LARGEST_TEXT}")
    try:
        parsed: Any = _parser().parse(text)  # what `start` below returns
        return resolve_module(*parsed)
    except lark.exceptions.UnexpectedInput as error:
        raise _unexpected(error, text, file) from None
    except Problem as problem:
        location = Location(file, problem.line or 1, problem.column or 1)
        raise fail("K0911", location, problem=str(problem)) from None


def _unexpected(error: lark.exceptions.UnexpectedInput, text: str, file: str) -> KdslError:
    allowed = getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    expected = sorted(words for name, words in _EXPECTED.items() if name in allowed)
    line, column = error.line, error.column
    if getattr(getattr(error, "token", None), "type", "") == "$END":  # lark gives it the place of the last token
        lines = text.splitlines() or [""]
        line, column, found = len(lines), len(lines[-1]) + 1, "the end of the text"
    else:
        found = shown(text[error.pos_in_stream :][:20].split("\n")[0])
    problem = f"{found} is unexpected" + (f"; here may stand {', '.join(expected)}" if expected else "")
    return fail("K0911", Location(file, line, max(1, column)), problem=problem)


@functools.cache
def _parser() -> lark.Lark:
    grammar = Path(__file__).with_name("ttir.lark").read_text()
    return lark.Lark(grammar, parser="lalr", lexer="contextual", transformer=_Builder(), maybe_placeholders=False)


def _placed(method: Callable[[_Builder, list[Any]], Any]) -> Callable[[_Builder, list[Any]], Any]:
    """Problems in what is read here are at its first token, results aside, unless they know better."""

    @functools.wraps(method)
    def wrapped(self: _Builder, children: list[Any]) -> Any:
        tokens = (child for child in children if isinstance(child, lark.Token) and child.type != "RESULTS")
        first = next(tokens, None)
        try:
            return method(self, children)
        except Problem as problem:
            if problem.line is None and first is not None:
                problem.line, problem.column = first.line, first.column
            raise

    return wrapped


class _Builder(lark.Transformer[Any, Any]):
    """Builds ops bottom up, while lark parses: there is no tree."""

    def start(self, children: list[Any]) -> tuple[list[RawOperation], dict[str, Any], dict[str, str]]:
        tokens = [child for child in children if isinstance(child, lark.Token) and child.type == "ALIAS"]
        aliases = dict(token.split(" = ", 1) for token in tokens)
        entries = next((child.values for child in children if isinstance(child, Entries)), {})
        (region,) = (child for child in children if isinstance(child, RawRegion))
        return [operation for block in region.blocks for operation in block.operations], entries, aliases

    @_placed
    def operation(self, children: list[Any]) -> RawOperation:
        return sorted_operation(children)

    @_placed
    def group(self, children: list[Any]) -> Group | Bindings:
        if children and isinstance(children[0], Bindings):
            return Bindings([pair for child in children for pair in child.pairs])
        return Group(children, deeper(children))

    @_placed
    def binding(self, children: list[Any]) -> Bindings:
        argument, initial = children
        bound = names(argument)
        if len(bound) != 1:
            raise Problem("expected one name before =")
        return Bindings([(bound[0], str(initial))])

    @_placed
    def row(self, children: list[Any]) -> Row:
        return Row(children, deeper(children))

    def dictionary(self, children: list[Any]) -> Entries:
        values = {key: value for each in children for key, value in each.values.items()}
        return Entries(values, max((each.depth for each in children), default=1))

    properties = dictionary

    @_placed
    def entry(self, children: list[Any]) -> Entries:
        key = str(children[0]).strip('"')
        return Entries({key: attribute(children[2:]) if len(children) > 1 else True}, deeper(children))

    @_placed
    def region(self, children: list[Any]) -> RawRegion:
        operations = [child for child in children if isinstance(child, RawOperation)]
        blocks = [child for child in children if isinstance(child, RawBlock)]
        if operations or not blocks:
            blocks.insert(0, RawBlock("", [], operations))
        depth = 1 + max((operation.depth for block in blocks for operation in block.operations), default=0)
        return RawRegion(blocks, depth)

    @_placed
    def block(self, children: list[Any]) -> RawBlock:
        label, *rest = children
        taken: list[Argument] = []
        if isinstance(rest[0], Group):
            taken = arguments(rest.pop(0).items)
        return RawBlock(label.strip(), taken, rest[1:])
