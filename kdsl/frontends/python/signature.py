"""A kernel's parameters, read from its annotations."""

from __future__ import annotations

import ast
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from kdsl.diagnostics import KdslError, fail
from kdsl.frontends.python.source import Source
from kdsl.frontends.python.values import TensorRef, TileSize, is_dim
from kdsl.ir.dtypes import DTYPES, DType
from kdsl.ir.expr import Expr, symbol, wrap
from kdsl.ir.kernel import Buffer, Role, Scalar, Size, TileParameter
from kdsl.lang.dims import Dim, InOut, Marker, Out, Tensor
from kdsl.lang.dims import Scalar as ScalarAnnotation
from kdsl.lang.dtypes import NAMES
from kdsl.lang.dtypes import DType as DTypeClass

ROLES: dict[Any, Role] = {Tensor: "in", Out: "out", InOut: "inout"}


class Signature:
    """The parameters, with dtype variables and constants bound; `names` is what they mean in the body."""

    def __init__(self, source: Source, hints: Mapping[str, Any], bindings: Mapping[str, Any]) -> None:
        self.source, self.bindings = source, bindings
        self.parameters: list[Buffer | Scalar] = []
        self.sizes: dict[str, Size] = {}
        self.tiles: list[TileParameter] = []
        self.constants: dict[str, Any] = {}
        self.names: dict[str, Any] = {}
        self.variables: dict[str, type[DTypeClass]] = {}
        arguments = source.definition.args
        defaults = dict(zip([a.arg for a in arguments.args[::-1]], arguments.defaults[::-1], strict=False))
        defaults |= {
            a.arg: default for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default
        }
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            self._parameter(argument, hints.get(argument.arg), defaults.get(argument.arg))

    def error(self, node: ast.AST, code: str, **fields: object) -> KdslError:
        return fail(code, self.source.locate(node), **fields)

    def _parameter(self, argument: ast.arg, hint: Any, default: ast.expr | None) -> None:
        name, origin = argument.arg, typing.get_origin(hint)
        marker = hint.__metadata__[0] if origin is Annotated else None
        if origin in ROLES:
            self._tensor(argument, ROLES[origin], typing.get_args(hint))
        elif origin is ScalarAnnotation:
            (dtype,) = typing.get_args(hint)
            self.parameters.append(Scalar(name, self._dtype(argument, dtype)))
            self.names[name] = self.parameters[-1]
        elif isinstance(marker, Marker) and marker.name == "tile":
            self.tiles.append(TileParameter(name, self._constant(argument, default)))
            self.names[name] = TileSize(name)
        elif isinstance(marker, Marker):
            value = self.bindings[name] if name in self.bindings else self._constant(argument, default)
            self.constants[name] = self.names[name] = value
        else:
            raise self.error(argument, "K0106", name=name, problem=f"its annotation is {hint!r}")

    def _constant(self, argument: ast.arg, default: ast.expr | None) -> Any:
        if default is None:
            raise self.error(argument, "K0108", name=argument.arg)
        try:
            return ast.literal_eval(default)
        except ValueError:
            try:
                return eval(compile(ast.Expression(default), self.source.file, "eval"), self.source.globals)
            except Exception as error:
                raise self.error(default, "K0106", name=argument.arg, problem=f"its default fails: {error}") from None

    def _tensor(self, argument: ast.arg, role: Role, parts: tuple[Any, ...]) -> None:
        *dims, dtype = parts
        shape, classes = [], []
        for dim in dims:
            if is_dim(dim):
                self.add_size(dim, argument)
                shape.append(symbol(dim.__name__))
                classes.append(dim)
            elif typing.get_origin(dim) is Literal and isinstance(typing.get_args(dim)[0], int):
                shape.append(wrap(typing.get_args(dim)[0]))
                classes.append(None)
            else:
                raise self.error(argument, "K0106", name=argument.arg, problem=f"{dim!r} is no dimension")
        buffer = Buffer(argument.arg, self._dtype(argument, dtype), tuple(shape), role)
        self.parameters.append(buffer)
        self.names[argument.arg] = TensorRef(buffer, tuple(classes))

    def add_size(self, dim: type[Dim], node: ast.AST) -> None:
        """Take a dimension into the kernel, and those that its size is computed from first."""
        size: Expr | None = dim.size
        known = self.sizes.get(dim.__name__)
        if known is not None:
            if known.value != size:
                raise self.error(node, "K0112", name=dim.__name__)
            return
        for name in sorted(size.symbols if size is not None else ()):
            self.sizes.setdefault(name, Size(name))
        self.sizes[dim.__name__] = Size(dim.__name__, size)

    def _dtype(self, argument: ast.arg, dtype: Any) -> DType:
        if not (isinstance(dtype, type) and issubclass(dtype, DTypeClass)):
            raise self.error(argument, "K0106", name=argument.arg, problem=f"{dtype!r} is no dtype")
        return self.resolve(dtype, argument)

    def resolve(self, dtype: type[DTypeClass], node: ast.AST) -> DType:
        """The element type of a dtype class, variables bound."""
        if dtype not in NAMES:
            self.variables[dtype.__name__] = dtype
            bound = self.bindings.get(dtype.__name__)
            if bound not in NAMES:
                raise self.error(node, "K0109", name=dtype.__name__)
            dtype = bound
        return DTYPES[NAMES[dtype]]
