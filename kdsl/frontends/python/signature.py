"""A kernel's parameters, read from its annotations."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from kdsl.diagnostics import KdslError, Location, fail
from kdsl.frontends.python.source import Source
from kdsl.frontends.python.values import TensorRef, TileSize, is_dim
from kdsl.ir.dtypes import DTYPES, DType
from kdsl.ir.expr import symbol, wrap
from kdsl.ir.kernel import Buffer, Role, Scalar, Size, TileParameter
from kdsl.lang.dims import Dim
from kdsl.lang.dtypes import NAMES
from kdsl.lang.dtypes import DType as DTypeClass
from kdsl.lang.tensors import InOut, Marker, Out, Tensor
from kdsl.lang.tensors import Scalar as ScalarAnnotation

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
        self.dims: dict[str, type[Dim]] = {}
        arguments = source.definition.args
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                raise self.error(extra, "K0106", name=extra.arg, problem="a kernel takes no * or ** parameters")
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            self._parameter(argument, hints.get(argument.arg), source.parameters[argument.arg].default)

    def error(self, node: ast.AST, code: str, **fields: object) -> KdslError:
        return fail(code, self.source.locate(node), **fields)

    def _parameter(self, argument: ast.arg, hint: Any, default: Any) -> None:
        name, origin = argument.arg, typing.get_origin(hint)
        marker = hint.__metadata__[0] if origin is Annotated else None
        self._claim(name, self.source.locate(argument))
        if origin in ROLES or origin is ScalarAnnotation:
            if default is not inspect.Parameter.empty:
                raise self.error(argument, "K0106", name=name, problem="a tensor or scalar has no default")
            if origin is ScalarAnnotation:
                (dtype,) = typing.get_args(hint)
                self.names[name] = Scalar(name, self._dtype(argument, dtype))
                self.parameters.append(self.names[name])
            else:
                self._tensor(argument, ROLES[origin], typing.get_args(hint))
        elif isinstance(marker, Marker) and marker.name == "tile":
            self._tile(argument, default)
        elif isinstance(marker, Marker):
            self._constant(argument, hint.__origin__, default)
        else:
            problem = f"it is annotated {ast.unparse(argument.annotation)}" if argument.annotation else "no annotation"
            raise self.error(argument.annotation or argument, "K0106", name=name, problem=problem)

    def _claim(self, name: str, location: Location) -> None:
        """Parameters, sizes and dtype variables are all given by name at a call, so they share one name space."""
        if name in self.names or name in self.sizes or name in self.variables:
            raise fail("K0112", location, name=name)

    def _tile(self, argument: ast.arg, default: Any) -> None:
        if default is inspect.Parameter.empty:
            raise self.error(argument, "K0108", name=argument.arg, instead="give the tile size a default")
        if not isinstance(default, int) or isinstance(default, bool) or default < 1:
            problem = f"the default of a tile size is a positive integer, not {default!r}"
            raise self.error(argument, "K0106", name=argument.arg, problem=problem)
        self.tiles.append(TileParameter(argument.arg, default))
        self.names[argument.arg] = TileSize(argument.arg)

    def _constant(self, argument: ast.arg, kind: Any, default: Any) -> None:
        name = argument.arg
        value = self.bindings.get(name, default)
        if value is inspect.Parameter.empty:
            instead = f"give it a default, or pass it: `@kdsl.example({name}=...)`"
            raise self.error(argument, "K0108", name=name, instead=instead)
        if type(value).__module__ == "numpy" and hasattr(value, "item"):
            value = value.item()
        if not _has_type(value, kind):
            expected = ast.unparse(argument.annotation) if argument.annotation else kind
            raise self.error(argument, "K0115", name=name, value=repr(value), expected=expected)
        self.constants[name] = self.names[name] = value

    def _tensor(self, argument: ast.arg, role: Role, parts: tuple[Any, ...]) -> None:
        shape, classes = [], []
        for place, dim in enumerate(parts[:-1]):
            node = _part(argument, place)
            if is_dim(dim):
                self.add_size(dim, self.source.locate(node))
                shape.append(symbol(dim.__name__))
                classes.append(dim)
            elif typing.get_origin(dim) is Literal and _is_extent(typing.get_args(dim)):
                shape.append(wrap(typing.get_args(dim)[0]))
                classes.append(None)
            else:
                raise self.error(node, "K0106", name=argument.arg, problem=f"{ast.unparse(node)} is no dimension")
        buffer = Buffer(argument.arg, self._dtype(argument, parts[-1] if parts else None), tuple(shape), role)
        self.parameters.append(buffer)
        self.names[argument.arg] = TensorRef(buffer, tuple(classes))

    def add_size(self, dim: type[Dim], location: Location) -> None:
        """Take a dimension into the kernel, and those that its size is computed from first. Raises KdslError K0112."""
        name = dim.__name__
        if self.dims.setdefault(name, dim) is not dim:
            raise fail("K0112", location, name=name)
        if name in self.sizes:
            if self.sizes[name].value != dim.computed:
                raise fail("K0112", location, name=name)
            return
        for part in sorted(dim.computed.symbols) if dim.computed is not None else ():
            if part not in self.sizes:
                self._claim(part, location)
                self.sizes[part] = Size(part)
        self._claim(name, location)
        self.sizes[name] = Size(name, dim.computed)

    def _dtype(self, argument: ast.arg, dtype: Any) -> DType:
        node = _part(argument, -1)
        if not (isinstance(dtype, type) and issubclass(dtype, DTypeClass)) or dtype is DTypeClass:
            raise self.error(node, "K0106", name=argument.arg, problem=f"{ast.unparse(node)} is no dtype")
        return self.resolve(dtype, self.source.locate(node))

    def resolve(self, dtype: type[DTypeClass], location: Location) -> DType:
        """The element type of a dtype class, variables bound. Raises KdslError K0109 for one that is not."""
        if dtype not in NAMES:
            name = dtype.__name__
            if name not in self.variables:
                self._claim(name, location)
            self.variables[name] = dtype
            bound = self.bindings.get(name)
            if not isinstance(bound, type) or bound not in NAMES:
                raise fail("K0109", location, name=name)
            dtype = bound
        return DTYPES[NAMES[dtype]]


def _part(argument: ast.arg, place: int) -> ast.expr | ast.arg:
    """The node of one entry of an annotation like `Tensor[M, K, T]`, if the annotation is written out."""
    annotation = argument.annotation
    if isinstance(annotation, ast.Subscript):
        entries = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        if -len(entries) <= place < len(entries):
            return entries[place]
    return annotation or argument


def _is_extent(values: tuple[Any, ...]) -> bool:
    return len(values) == 1 and type(values[0]) is int and values[0] >= 0


def _has_type(value: Any, kind: Any) -> bool:
    """Whether a constant is what `Const[kind]` says; kinds that cannot be checked hold anything."""
    if typing.get_origin(kind) is Literal:
        return any(type(value) is type(choice) and value == choice for choice in typing.get_args(kind))
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind in (bool, int, str):
        return type(value) is kind
    return True
