"""The Python front end: a function decorated with `@kdsl.kernel` becomes IR.

The function is never run. Its syntax tree is interpreted: what is known when the kernel is compiled is computed as
plain Python, what is not becomes an op. `trace.py` has the statements, `loops.py` the loops, `expressions.py` the
expressions, `accesses.py` loads and stores, `calls.py` calls, `intrinsics.py` one entry for each operation.
"""

from __future__ import annotations

import ast
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
from kdsl.lang.tensors import Scalar


def _hints(kernel: KernelFunction, source: Source) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kernel.function, globalns=source.globals, include_extras=True)
    except (Exception, SystemExit) as error:  # annotations are expressions, which may raise anything
        location = source.name_location
        if isinstance(error, NameError):
            for node in ast.walk(source.definition.args):
                if isinstance(node, ast.Name) and node.id == error.name:
                    location = source.locate(node)
        raise fail("K0106", location, name=kernel.name, problem=str(error)) from None


def signature(kernel: KernelFunction, bindings: Mapping[str, Any]) -> Signature:
    """The kernel's parameters for given dtypes and constants. Raises KdslError for annotations that make no sense."""
    source = read(kernel.function)
    return Signature(source, _hints(kernel, source), bindings)


def tensor_annotations(kernel: KernelFunction) -> dict[str, tuple[Role, type[DType]]]:
    """The role and the dtype (possibly a variable) of each tensor parameter, which needs no bindings."""
    hints = _hints(kernel, read(kernel.function))
    annotations = {}
    for name, hint in hints.items():
        parts = typing.get_args(hint)
        if typing.get_origin(hint) in ROLES and parts and isinstance(parts[-1], type):
            annotations[name] = ROLES[typing.get_origin(hint)], parts[-1]
    return annotations


def scalar_annotations(kernel: KernelFunction) -> dict[str, type[DType]]:
    """The dtype (possibly a variable) of each scalar parameter, which needs no bindings."""
    hints = _hints(kernel, read(kernel.function))
    scalars = {name: typing.get_args(hint) for name, hint in hints.items() if typing.get_origin(hint) is Scalar}
    return {name: parts[0] for name, parts in scalars.items() if isinstance(parts[0], type)}


def elaborate(kernel: KernelFunction, bindings: Mapping[str, Any], statements: bool = False) -> Kernel:
    """The IR of a kernel, verified. `bindings` gives dtype variables (kdsl dtypes) and Const parameters by name.

    With `statements`, each op keeps the author's statement that it comes from.

    Raises KdslError, and nothing else, for whatever the function says wrong.
    """
    read_signature = signature(kernel, bindings)
    source = read_signature.source
    empty = Kernel(
        kernel.name,
        tuple(read_signature.parameters),
        tuple(read_signature.sizes.values()),
        tuple(read_signature.tiles),
        (),
        (),
        Region(),
        source.name_location,
        (kernel.function.__doc__ or "").strip(),
    )
    try:
        traced = trace(read_signature, empty, statements)
    except RecursionError:
        raise fail("K0104", source.name_location, what="it is nested too deep") from None
    # Dtype variables may also occur in the body alone, so this is known only now.
    for name in sorted(bindings.keys() - read_signature.constants.keys() - read_signature.variables.keys()):
        raise fail("K0113", source.name_location, kernel=kernel.name, name=name)
    return verify(traced)
