"""What a kernel's body is traced in: the names in force, the axes made so far, and where in the source we are."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from kdsl.diagnostics import fail
from kdsl.frontends.python.lifting import Lifter, common_dtype
from kdsl.frontends.python.signature import Signature
from kdsl.frontends.python.source import Source
from kdsl.frontends.python.values import IndexVariable, TileSize, describe, form_of, is_dim
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr, symbol
from kdsl.ir.kernel import Scalar, Value, whole
from kdsl.ir.statement import Statement
from kdsl.lang.dims import Dim
from kdsl.lang.dtypes import DType as DTypeClass

QUOTE_LIMIT = 50  # characters of the author's source that a message repeats


class Environment:
    """Names, axes and places. `expressions.py` and `trace.py` add what the source may say."""

    def __init__(self, signature: Signature, builder: Builder) -> None:
        self.signature, self.builder = signature, builder
        self.lift = Lifter(builder)
        self.source: Source = signature.source
        self.names: dict[str, Any] = dict(signature.names)
        self.whole: dict[str, str] = {}  # dimension -> its own axis
        self.keeps_statements = False
        self.caller: Statement | None = None  # the statement that called the helper which is being traced
        self.reserved = {node.id for node in ast.walk(self.source.definition) if isinstance(node, ast.Name)}

    def at(self, node: ast.AST) -> None:
        """Ops emitted from here on come from this node."""
        self.builder.location = self.source.locate(node)

    @contextmanager
    def stating(self, node: ast.stmt | None) -> Iterator[None]:
        """Ops emitted inside belong to this statement, if that is kept; a debugger stops at none of those of None."""
        outer = self.builder.statement
        if self.keeps_statements:
            self.builder.statement = None if node is None else self._statement(node)
        try:
            yield
        finally:
            self.builder.statement = outer

    def _statement(self, node: ast.stmt) -> Statement:
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        return Statement(self.source.locate(node), max(node.lineno, last), dict(self.names), self.caller)

    def hold(self, thing: Any) -> None:
        """Values in a thing that something refers to from here on keep the names that they have."""
        if isinstance(thing, Value):
            self.builder.unnamed.discard(thing.name)
        elif isinstance(thing, list | tuple | set | dict):
            for part in thing.values() if isinstance(thing, dict) else thing:
                self.hold(part)

    def error(self, node: ast.AST, code: str, **fields: object) -> NoReturn:
        raise fail(code, self.source.locate(node), **fields)

    def quote(self, node: ast.AST, thing: Any = None) -> str:
        """The author's words for a node, and what it is where that helps."""
        text = ast.unparse(node)
        quoted = f"`{text if len(text) <= QUOTE_LIMIT else text[: QUOTE_LIMIT - 3] + '...'}`"
        if thing is None or isinstance(node, ast.Constant):
            return quoted
        return f"{quoted} ({describe(thing)})"

    def no_tile_size(self, node: ast.AST, thing: Any) -> None:
        if isinstance(thing, TileSize):
            self.error(node, "K0107", name=thing.name)

    # -- axes and sizes --------------------------------------------------------------------------------------------

    def axis_name(self, wanted: str) -> str:
        """A name for a new axis that no size, tile parameter or other axis has, nor a dimension that may come yet."""
        kernel = self.builder.kernel
        taken = {axis.name for axis in kernel.axes} | self.signature.sizes.keys()
        taken |= {tile.name for tile in kernel.tiles} | {integer.name for integer in kernel.integers}
        taken |= {thing.__name__ for thing in self.source.globals.values() if is_dim(thing)}
        name, count = wanted, 0
        while name in taken:
            count += 1
            name = f"{wanted}_{count}"
        return name

    def axis_of(self, thing: Any, node: ast.AST) -> str:
        """The tile axis of an index variable, or a dimension's own. Raises KdslError K0213."""
        self.no_tile_size(node, thing)
        if isinstance(thing, IndexVariable) and thing.tile is not None:
            return thing.tile
        if is_dim(thing):
            return self.whole_axis(thing.__name__, self.size(thing, node))
        single = isinstance(thing, IndexVariable)
        self.error(node, "K0213", thing=f"{self.quote(node)} (a single point)" if single else self.quote(node, thing))

    def whole_axis(self, name: str, extent: Expr) -> str:
        """The axis that `:` means for a dimension, made at its first use."""
        if name not in self.whole:
            wanted = name.lower() if name.lower() not in self.reserved else f"{name.lower()}_all"
            self.whole[name] = self.builder.add_axis(whole(self.axis_name(wanted), extent)).name
        return self.whole[name]

    def shown_axes(self, names: Iterable[str]) -> str:
        """Axes as the author knows them: by their index variable, or by the dimension whose own axis it is."""
        known: dict[str | None, str] = {axis: dim for dim, axis in self.whole.items()}
        known |= {thing.tile: name for name, thing in self.names.items() if isinstance(thing, IndexVariable)}
        return ", ".join(known.get(name, name) for name in names)

    def size(self, dim: type[Dim], node: ast.AST) -> Expr:
        """The size of a dimension, which the kernel then needs to know. Raises KdslError K0112."""
        known = len(self.signature.sizes)
        self.signature.add_size(dim, self.source.locate(node))
        for name in list(self.signature.sizes)[known:]:
            if any(axis.name == name for axis in self.builder.kernel.axes):
                self.error(node, "K0112", name=name)
        sizes = tuple(self.signature.sizes.values())
        if sizes != self.builder.kernel.sizes:
            self.builder.kernel = replace(self.builder.kernel, sizes=sizes)
        return symbol(dim.__name__)

    def fixed(self) -> set[str]:
        """Integers that are the same in every program."""
        return {*self.signature.sizes, *(tile.name for tile in self.signature.tiles)}

    def limit(self, node: ast.AST, thing: Any) -> Expr:
        """One integer a program, as a form: what is known only when the kernel runs gets a name."""
        self.no_tile_size(node, thing)
        kernel, form = self.builder.kernel, form_of(thing)
        if isinstance(thing, Value | Scalar) and common_dtype([thing], self.builder.location).is_integer:
            value = self.lift.value(thing)
            if not value.dtype.is_storage and not kernel.tile_axes(value):
                wanted = f"{value.name.split('.')[0]}_limit"
                return symbol(self.builder.name_integer(self.axis_name(wanted), value).name)
        if form is None or any(kernel.axis(name).kind == "tile" for name in kernel.order(form.symbols)):
            allowed = "limits are one integer a program: sizes, scalars, loaded integers, the start and stop of a tile"
            self.error(node, "K0104", what=f"{self.quote(node, thing)} as a limit; {allowed}")
        return form

    def dtype_of(self, dtype: Any, node: ast.AST) -> DType:
        if not (isinstance(dtype, type) and issubclass(dtype, DTypeClass)) or dtype is DTypeClass:
            self.error(node, "K0104", what=f"{self.quote(node, dtype)} is no dtype")
        return self.signature.resolve(dtype, self.source.locate(node))
