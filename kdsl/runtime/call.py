"""Calling a kernel with NumPy arrays: dtypes and sizes are read off the arguments, the oracle runs it."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kdsl import interpreter
from kdsl.diagnostics import fail
from kdsl.frontends.python import elaborate, signature, tensor_annotations
from kdsl.frontends.python.source import read
from kdsl.ir.dtypes import from_numpy
from kdsl.ir.kernel import Buffer, Kernel, bind
from kdsl.lang import dtypes
from kdsl.lang.dtypes import DType
from kdsl.lang.kernel import Kernel as KernelFunction

NAMED = {name: dtype for dtype, name in dtypes.NAMES.items()}


def call(kernel: KernelFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Run a kernel on the oracle.

    Inputs and scalars come by position in the order of the signature (outputs are not passed), or by name; sizes that
    no array shows, tile sizes and constants by name. In-out arrays are copied, not changed. Returns the written arrays
    in argument order: one array, or a tuple.

    Raises KdslError: K0108, K0115, K0501 to K0505 for arguments that do not fit, K0601 for an access out of bounds.
    """
    given = _by_name(kernel, arguments, keywords)
    bindings = _bindings(kernel, given)
    elaborated = elaborate(kernel, bindings)
    rest = {name: value for name, value in given.items() if name not in bindings}
    sizes = _sizes(elaborated, rest)
    names = [tile.name for tile in elaborated.tiles if tile.name in rest]
    tiles = {name: _integer(elaborated, name, rest.pop(name)) for name in names}
    known = {parameter.name for parameter in elaborated.parameters}
    for name in rest:
        if name not in known:
            raise fail("K0503", elaborated.location, kernel=kernel.name, name=name)
    written = interpreter.run(bind(elaborated, sizes, tiles), rest)
    results = tuple(written.values())
    return results[0] if len(results) == 1 else results


def _integer(kernel: Kernel, name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise fail("K0504", kernel.location, name=name, value=repr(value)) from None


def _by_name(kernel: KernelFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Positional arguments matched with the parameters that are not outputs."""
    here = read(kernel.function).name_location
    roles = {name: role for name, (role, _) in tensor_annotations(kernel).items()}
    positional = [
        name
        for name, parameter in inspect.signature(kernel.function).parameters.items()
        if parameter.kind is not parameter.KEYWORD_ONLY and roles.get(name) != "out"
    ]
    if len(arguments) > len(positional) or set(positional[: len(arguments)]) & keywords.keys():
        got = f"{len(arguments)} by position and {', '.join(keywords) or 'none'} by name"
        expected = f"the arguments {', '.join(positional)}"
        raise fail("K0505", here, name=kernel.name, expected=expected, got=got)
    given = {**dict(zip(positional, arguments, strict=False)), **keywords}
    for name, role in roles.items():
        if role != "out" and name not in given:
            raise fail("K0505", here, name=name, expected="an array", got="nothing")
    return given


def _bindings(kernel: KernelFunction, given: Mapping[str, Any]) -> dict[str, Any]:
    """Dtype variables from the arrays that have them; dtypes and constants given by name."""
    bindings = {name: value for name, value in given.items() if isinstance(value, type) and issubclass(value, DType)}
    for name, (_, dtype) in tensor_annotations(kernel).items():
        if name in given and dtype not in dtypes.NAMES:
            array = np.asarray(given[name])
            found = from_numpy(array.dtype)
            if found is None:
                expected = f"an array of one of {', '.join(sorted(NAMED))}"
                here = read(kernel.function).name_location
                raise fail("K0505", here, name=name, expected=expected, got=array.dtype)
            bindings.setdefault(dtype.__name__, NAMED[found.name])
    constants = signature(kernel, {**given, **bindings}).constants
    return bindings | {name: value for name, value in given.items() if name in constants}


def _sizes(kernel: Kernel, given: dict[str, Any]) -> dict[str, int]:
    """Sizes read off the arrays, and those passed by name (which are taken out of `given`)."""
    sizes: dict[str, int] = {}
    for size in kernel.sizes:
        if size.value is None and size.name in given:
            sizes[size.name] = _integer(kernel, size.name, given.pop(size.name))
    for parameter in kernel.parameters:
        if not isinstance(parameter, Buffer) or parameter.name not in given:
            continue
        shape = np.shape(given[parameter.name])
        if len(shape) != len(parameter.shape):
            expected = f"{len(parameter.shape)} dimensions"
            raise fail("K0505", kernel.location, name=parameter.name, expected=expected, got=f"{len(shape)}")
        for extent, length in zip(parameter.shape, shape, strict=True):
            name = str(extent)
            if any(size.name == name and size.value is None for size in kernel.sizes):
                sizes.setdefault(name, length)
    return sizes
