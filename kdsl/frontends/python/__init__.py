"""The Python front end: a function decorated with `@kdsl.kernel` becomes IR.

The function is never run. Its syntax tree is interpreted: what is known when the kernel is compiled is computed as plain
Python, what is not becomes an op. `trace.py` has the statements, `expressions.py` the expressions, `intrinsics.py` one
entry for each operation of the language.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from kdsl.diagnostics import fail
from kdsl.frontends.python.signature import ROLES, Signature
from kdsl.frontends.python.source import Source, read
from kdsl.frontends.python.trace import trace
from kdsl.ir.kernel import Kernel, Region, Role
from kdsl.ir.verify import verify
from kdsl.lang.dtypes import DType
from kdsl.lang.kernel import Kernel as KernelFunction


def _hints(kernel: KernelFunction, source: Source) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kernel.function, globalns=source.globals, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise fail("K0106", source.locate(source.definition), name=kernel.name, problem=str(error)) from None


def signature(kernel: KernelFunction, bindings: Mapping[str, Any]) -> Signature:
    """The kernel's parameters for given dtypes and constants. Raises KdslError for annotations that make no sense."""
    source = read(kernel.function)
    return Signature(source, _hints(kernel, source), bindings)


def tensor_annotations(kernel: KernelFunction) -> dict[str, tuple[Role, type[DType]]]:
    """The role and the dtype (possibly a variable) of each tensor parameter, which needs no bindings."""
    hints = _hints(kernel, read(kernel.function))
    return {
        name: (ROLES[typing.get_origin(hint)], typing.get_args(hint)[-1])
        for name, hint in hints.items()
        if typing.get_origin(hint) in ROLES
    }


def elaborate(kernel: KernelFunction, bindings: Mapping[str, Any]) -> Kernel:
    """The IR of a kernel, verified. `bindings` gives dtype variables (kdsl dtypes) and Const parameters by name."""
    read_signature = signature(kernel, bindings)
    unknown = bindings.keys() - read_signature.constants.keys() - read_signature.variables.keys()
    source = read_signature.source
    location = source.locate(source.definition)
    for name in sorted(unknown):
        raise fail("K0113", location, kernel=kernel.name, name=name)
    empty = Kernel(
        kernel.name,
        tuple(read_signature.parameters),
        tuple(read_signature.sizes.values()),
        tuple(read_signature.tiles),
        (),
        (),
        Region(),
        location,
        (kernel.function.__doc__ or "").strip(),
    )
    return verify(trace(read_signature, empty))
