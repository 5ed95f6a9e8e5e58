"""What a run starts from: the kernel's tensors, checked and copied where they may be written, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kdsl.diagnostics import fail
from kdsl.ir.dtypes import DType, holds_number
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Buffer, Kernel, Scalar
from kdsl.ir.meaning import Array

Poison = Callable[[DType, tuple[int, ...]], Array]


def worst(dtype: DType, shape: tuple[int, ...]) -> Array:
    """The default poison: NaN, or the integer with alternating bits."""
    if dtype.is_float:
        return np.full(shape, np.nan, dtype.numpy)
    pattern = np.full(shape, 0xAAAAAAAAAAAAAAAA, np.uint64)
    return pattern.astype(np.bool_) if dtype.kind == "bool" else pattern.astype(dtype.numpy)


def bound_extent(extent: Expr) -> int:
    """The integer that an extent of a bound kernel is. Raises ValueError where the kernel is not bound."""
    if extent.constant is None:
        raise ValueError(f"extent {extent} is not bound")
    return extent.constant


def take_arguments(
    kernel: Kernel, arguments: Mapping[str, Any], poison: Poison
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays and numbers by name, checked; what may be written to is copied. Raises KdslError K0505."""
    memory: dict[str, Array] = {}
    scalars: dict[str, Any] = {}
    for name in arguments.keys() - {parameter.name for parameter in kernel.parameters}:
        raise fail("K0505", kernel.location, name=name, expected="no argument of that name", got="one")
    for parameter in kernel.parameters:
        if isinstance(parameter, Scalar):
            if parameter.name not in arguments:
                raise fail("K0505", kernel.location, name=parameter.name, expected=parameter.dtype, got="nothing")
            scalars[parameter.name] = _number(kernel, parameter, arguments[parameter.name])
            continue
        shape = tuple(bound_extent(size) for size in parameter.shape)
        if parameter.name in arguments:
            memory[parameter.name] = _array(kernel, parameter, arguments[parameter.name], shape)
        elif parameter.role == "out":
            memory[parameter.name] = poison(parameter.dtype, shape)
        else:
            raise fail("K0505", kernel.location, name=parameter.name, expected="an array", got="nothing")
    return memory, scalars


def _number(kernel: Kernel, scalar: Scalar, given: Any) -> Any:
    if np.ndim(given) != 0 or not holds_number(scalar.dtype, np.asarray(given).item()):
        raise fail("K0505", kernel.location, name=scalar.name, expected=scalar.dtype, got=given)
    return given


def _array(kernel: Kernel, buffer: Buffer, given: Any, shape: tuple[int, ...]) -> Array:
    # In row-major order whatever the strides: NumPy's results may depend on them, and atomics write to a flat view.
    array = np.asarray(given, order="C") if buffer.role == "in" else np.array(given, order="C")
    if array.shape != shape or array.dtype != buffer.dtype.numpy:
        expected, got = f"{buffer.dtype}{list(shape)}", f"{array.dtype}{list(array.shape)}"
        raise fail("K0505", kernel.location, name=buffer.name, expected=expected, got=got)
    return array
