"""What the author's names stand for in a program that is stopped: tiles, sizes, index variables, tensors."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kdsl.debugger.showing import Shown, one_line
from kdsl.debugger.stepping import SteppedProgram
from kdsl.diagnostics import fail
from kdsl.frontends.python.values import Gone, IndexVariable, TensorRef, TileSize, describe, form_of
from kdsl.interpreter.checked import means_nothing
from kdsl.ir.expr import Expr, symbol
from kdsl.ir.kernel import Scalar, Value
from kdsl.ir.meaning import Array
from kdsl.ir.statement import Statement

EXPRESSION = re.compile(r"\s*([A-Za-z_]\w*)(?:\s*\.\s*([A-Za-z_]\w*))?\s*(?:\[(.*)\])?\s*")
ENTRY = re.compile(r"\s*(?:(-?\d+)|(-?\d+)?\s*:\s*(-?\d+)?)\s*")
PARTS = ("index", "start", "stop", "size")  # of an index variable


def look(program: SteppedProgram, sizes: Mapping[str, int], names: Mapping[str, Any], text: str) -> Shown:
    """What NAME, NAME[3, 0:4] or NAME.stop is, where the names mean that. Indices are places in the tile or tensor.

    Raises KdslError: K0902 for a name without a meaning, K0904 for another form, and an index that does not fit.
    """
    parts = EXPRESSION.fullmatch(text)
    if parts is None:
        raise fail("K0904", None, text=text or "''", problem="it is not of that form")
    name, attribute, index = parts.groups()
    scope = _Scope(program, sizes, names)
    thing = scope.find(name)
    if attribute is not None:
        if not isinstance(thing, IndexVariable) or attribute not in PARTS:
            problem = f"{name} has no .{attribute}; an index variable has .{', .'.join(PARTS)}"
            raise fail("K0904", None, text=text, problem=problem)
        thing = thing.form if attribute == "index" else getattr(thing, attribute)
    shown = scope.show(name, thing)
    return shown if index is None else _part(shown, text, index)


def mentioned(statement: Statement) -> set[str]:
    """The names that a statement's lines mention."""
    lines = range(statement.location.line, statement.last_line + 1)
    return {
        word for line in lines for word in re.findall(r"[A-Za-z_]\w*", linecache.getline(statement.location.file, line))
    }


@dataclass(frozen=True)
class _Scope:
    program: SteppedProgram
    sizes: Mapping[str, int]
    names: Mapping[str, Any]

    def find(self, name: str) -> Any:
        if name not in self.names and name not in self.sizes:
            raise fail("K0902", None, name=name, why="")
        thing = self.names[name] if name in self.names else symbol(name)
        if isinstance(thing, Gone):
            raise fail("K0902", None, name=name, why=f": {thing.reason}")
        return thing

    def show(self, name: str, thing: Any) -> Shown:
        if isinstance(thing, Value):
            if thing.name not in self.program.values:
                raise fail("K0902", None, name=name, why=": it has no value yet")
            return self.tile(thing.dtype.name, self.program.values[thing.name], thing.axes, self.program.shadow(thing))
        if isinstance(thing, IndexVariable):
            return self.index_variable(thing)
        if isinstance(thing, TensorRef):
            buffer = thing.buffer
            role = {"in": "input", "out": "output", "inout": "input and output"}[buffer.role]
            array, shadow = self.program.memory[buffer.name], self.program.shadows.get(buffer.name)
            known = None if shadow is None else ~means_nothing(shadow)
            return Shown(f"{buffer.dtype.name} tensor, {role}", array, None, known, _whole(array))
        if isinstance(thing, Scalar):
            return Shown(f"{thing.dtype.name} argument", np.asarray(self.program.scalars[thing.name]))
        if isinstance(thing, TileSize):
            return Shown("tile size", np.asarray(self.sizes[thing.name]))
        if isinstance(thing, list | tuple):
            parts = [one_line(self.show(name, part)) for part in thing]
            return Shown(f"{type(thing).__name__} of {len(thing)}", text="; ".join(parts))
        form = form_of(thing)
        if form is not None and not isinstance(thing, int):
            axes = self.program.kernel.order(self.bound(form).symbols)
            return self.tile("integer", self.program.form(self.bound(form), axes), axes)
        return Shown("known when compiled", text=describe(thing))

    def bound(self, form: Expr) -> Expr:
        return form.substitute(self.sizes)

    def integer(self, form: Expr) -> int:
        axes = self.program.kernel.order(self.bound(form).symbols)
        return int(self.program.form(self.bound(form), axes).item())

    def index_variable(self, variable: IndexVariable) -> Shown:
        size = self.integer(variable.size)
        if variable.tile is None:
            return Shown("index variable", text=f"{self.integer(variable.form)} of {size}")
        start, stop, block = map(self.integer, (variable.start, variable.stop, variable.block))
        return Shown("index variable", text=f"{start}:{max(start, stop)} of {size}, tile {block}")

    def tile(self, kind: str, array: Array, axes: tuple[str, ...], shadow: Array | None = None) -> Shown:
        """A value of the program's: its lanes over the tile axes, which of them are valid, and which mean something."""
        kernel = self.program.kernel
        kept = tuple(name for name in axes if kernel.axis(name).kind == "tile")
        shape = [self.program.size(name) for name in kept]
        deciding = kernel.with_validity(kept)
        others = tuple(place for place, name in enumerate(deciding) if name not in kept)

        def whole(lanes: Array) -> Array:
            return np.broadcast_to(lanes, shape)

        valid = whole(np.asarray(self.program.valid(kept, deciding).any(axis=others)))
        known = None if shadow is None else whole(self.program.align(~means_nothing(shadow), axes, kept))
        what = f"{kind} tile over {', '.join(kept)}" if kept else kind
        lanes = whole(self.program.align(array, axes, kept))
        return Shown(what, lanes, valid, known, tuple(map(self.places, kept)))

    def places(self, axis: str) -> str:
        """An axis with the places in the dimension that its lanes stand for, if they are a run."""
        lanes, statement = self.program.size(axis), self.program.statement
        around = () if statement is None else (statement, *statement.callers())
        for thing in (thing for each in around for thing in each.names.values()):
            if isinstance(thing, IndexVariable) and thing.tile == axis:
                start = self.integer(thing.start)
                return f"{axis} {start}:{start + lanes}"
        return f"{axis} 0:{lanes}"


def _part(shown: Shown, text: str, index: str) -> Shown:
    """Some of the numbers. Raises KdslError K0904."""
    if shown.array is None:
        raise fail("K0904", None, text=text, problem=f"it is no tile or tensor, but {shown.what}")
    entries = [ENTRY.fullmatch(entry) for entry in index.split(",")]
    if len(entries) > shown.array.ndim:
        raise fail("K0904", None, text=text, problem=f"it has {shown.array.ndim} dimensions")
    places: list[int | slice] = []
    axes: list[str] = []
    for dimension, entry in enumerate(entries):
        if entry is None:
            raise fail("K0904", None, text=text, problem="an index is a number, or two with a colon")
        point, start, stop = (None if group is None else int(group) for group in entry.groups())
        extent = shown.array.shape[dimension]
        if point is not None and not -extent <= point < extent:
            raise fail("K0904", None, text=text, problem=f"dimension {dimension} has {extent} places")
        places.append(slice(start, stop) if point is None else point)
        if point is None:
            name, space, _ = shown.axes[dimension].rpartition(" ")
            first, last, _ = slice(start, stop).indices(extent)
            axes.append(f"{name}[{first}:{last}]" if space else f"{first}:{last}")
    axes += shown.axes[len(places) :]
    array, valid, known = (
        None if each is None else np.asarray(each[tuple(places)]) for each in (shown.array, shown.valid, shown.known)
    )
    return replace(shown, array=array, valid=valid, known=known, axes=tuple(axes))


def _whole(array: Array) -> tuple[str, ...]:
    return tuple(f"0:{size}" for size in array.shape)
