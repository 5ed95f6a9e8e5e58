"""Calling a kernel with NumPy arrays: dtypes and sizes are read off the arguments, the oracle runs it."""

from __future__ import annotations

import inspect
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
from kdsl.lang.kernel import Kernel as KernelFunction

NAMED = {name: dtype for dtype, name in dtypes.NAMES.items()}


def call(kernel: KernelFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Run a kernel on the oracle.

    Inputs and scalars come by position in the order of the signature (outputs are not passed), or by name; sizes that no
    array shows, tile sizes and constants by name. In-out arrays are copied, not changed. Returns the written arrays in
    argument order: one array, or a tuple.

    Raises KdslError: K0501 to K0505 for arguments that do not fit, K0601 for an access out of bounds.
    """
    given = _by_name(kernel, arguments, keywords)
    bindings = _bindings(kernel, given)
    elaborated = elaborate(kernel, bindings)
    rest = {name: value for name, value in given.items() if name not in bindings}
    sizes = _sizes(elaborated, rest)
    tiles = {tile.name: int(rest.pop(tile.name)) for tile in elaborated.tiles if tile.name in rest}
    known = {parameter.name for parameter in elaborated.parameters}
    for name in rest:
        if name not in known:
            raise fail("K0503", elaborated.location, kernel=kernel.name, name=name)
    written = interpreter.run(bind(elaborated, sizes, tiles), rest)
    results = tuple(written.values())
    return results[0] if len(results) == 1 else results


def _by_name(kernel: KernelFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Positional arguments matched with the parameters that are not outputs."""
    source = read(kernel.function)
    outputs = {name for name, (role, _) in tensor_annotations(kernel).items() if role == "out"}
    positional = [
        name
        for name, parameter in inspect.signature(kernel.function).parameters.items()
        if parameter.kind is not parameter.KEYWORD_ONLY and name not in outputs
    ]
    if len(arguments) > len(positional) or set(positional[: len(arguments)]) & keywords.keys():
        got = f"{len(arguments)} by position and {', '.join(keywords) or 'none'} by name"
        expected = f"the arguments {', '.join(positional)}"
        raise fail("K0505", source.locate(source.definition), name=kernel.name, expected=expected, got=got)
    return {**dict(zip(positional, arguments, strict=False)), **keywords}


def _bindings(kernel: KernelFunction, given: Mapping[str, Any]) -> dict[str, Any]:
    """Dtype variables from the arrays that have them; dtypes and constants given by name."""
    annotations = tensor_annotations(kernel)
    bindings: dict[str, Any] = {}
    for name, (_, dtype) in annotations.items():
        if name in given and dtype not in dtypes.NAMES:
            found = from_numpy(np.asarray(given[name]).dtype)
            if found is not None:
                bindings.setdefault(dtype.__name__, NAMED[found.name])
    variables = {dtype.__name__ for _, dtype in annotations.values() if dtype not in dtypes.NAMES}
    bindings |= {name: value for name, value in given.items() if name in variables}
    constants = signature(kernel, bindings).constants
    return bindings | {name: value for name, value in given.items() if name in constants}


def _sizes(kernel: Kernel, given: dict[str, Any]) -> dict[str, int]:
    """Sizes read off the arrays, and those passed by name (which are taken out of `given`)."""
    sizes: dict[str, int] = {}
    for size in kernel.sizes:
        if size.value is None and size.name in given:
            sizes[size.name] = int(given.pop(size.name))
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
