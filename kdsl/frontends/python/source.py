"""From a Python function to its syntax tree, and from a node to its place in the author's file."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kdsl.diagnostics import Location, fail


@dataclass(frozen=True)
class Source:
    """A function's definition, the names that its body can see, and its parameters with their defaults."""

    file: str
    definition: ast.FunctionDef
    globals: dict[str, Any]
    parameters: Mapping[str, inspect.Parameter] = field(default_factory=dict)

    def locate(self, node: ast.AST) -> Location:
        """The place of a node, on its first line; columns in characters, not in the bytes that `ast` counts."""
        line, start = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", line) == line else None
        text = linecache.getline(self.file, line).encode()
        column = len(text[:start].decode(errors="replace")) + 1
        return Location(self.file, line, column, len(text[:end].decode(errors="replace")) + 1 if end else None)

    @property
    def name_location(self) -> Location:
        """The place of the function's name, where what concerns it as a whole is reported."""
        start = self.locate(self.definition)
        column = start.column + len("def ")
        return Location(self.file, start.line, column, column + len(self.definition.name))


@functools.lru_cache(maxsize=256)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


def read(function: Callable[..., Any]) -> Source:
    """The source of a function. Raises KdslError K0101 where there is none."""
    function = inspect.unwrap(function)
    name = getattr(function, "__name__", repr(function))
    if not inspect.isfunction(function):
        raise fail("K0101", None, name=name)
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename))
    here = Location(code.co_filename, code.co_firstlineno)
    try:
        tree = _parse(text)
    except (SyntaxError, ValueError):  # the file is no longer what was imported
        raise fail("K0101", here, name=name) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                variables = {**function.__globals__, **_closure(function)}
                return Source(code.co_filename, node, variables, inspect.signature(function).parameters)
    raise fail("K0101", here, name=name)


def _closure(function: Any) -> dict[str, Any]:
    """The variables of enclosing functions that have a value yet."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found
