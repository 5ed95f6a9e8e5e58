"""From a Python function to its syntax tree, and from a node to its place in the author's file."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kdsl.diagnostics import Location, fail


@dataclass(frozen=True)
class Source:
    """A function's definition and the names that its body can see."""

    file: str
    definition: ast.FunctionDef
    globals: dict[str, Any]

    def locate(self, node: ast.AST) -> Location:
        """The place of a node; columns in characters, not in the bytes that `ast` counts."""
        line, start = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None)
        if getattr(node, "end_lineno", line) != line:
            end = None
        text = linecache.getline(self.file, line).encode()
        column = len(text[:start].decode(errors="replace")) + 1
        return Location(self.file, line, column, len(text[:end].decode(errors="replace")) + 1 if end else None)


@functools.lru_cache(maxsize=256)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


def read(function: Callable[..., Any]) -> Source:
    """The source of a function. Raises KdslError K0101 where there is none."""
    function = inspect.unwrap(function)
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename))
    here = Location(code.co_filename, code.co_firstlineno)
    if not text:
        raise fail("K0101", here, name=function.__name__)
    try:
        tree = _parse(text)
    except SyntaxError:
        raise fail("K0101", here, name=function.__name__) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                variables = inspect.getclosurevars(function).nonlocals
                return Source(code.co_filename, node, {**function.__globals__, **variables})
    raise fail("K0101", here, name=function.__name__)
