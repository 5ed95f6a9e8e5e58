"""A TTIR function's arguments as the parameters and sizes of a kernel."""

from __future__ import annotations

import re

from kdsl.diagnostics import KdslError, Location, fail
from kdsl.frontends.triton.axes import ended, shape
from kdsl.frontends.triton.module import Function, Operation, Value, walk
from kdsl.frontends.triton.pointwise import dtype_of
from kdsl.frontends.triton.types import Pointer, Tensor, Type
from kdsl.ir.expr import symbol
from kdsl.ir.kernel import Axis, Buffer, Kernel, Region, Scalar, Size

GRID = "xyz"


def refusal(what: str, at: Operation | Function) -> KdslError:
    """K0913, with the author's line where the text has it."""
    place = at.place.location if at.place else Location("<ttir>", at.line)
    return fail("K0913", place, what=what, line=at.line)


def plain(name: str) -> str:
    """A name as the IR takes it."""
    return re.sub(r"\W", "_", name.lstrip("%"))


def pointee(type: Type) -> Type | None:
    """What a pointer, or each of a tile of pointers, points to; None for what is no pointer."""
    element = type.element if isinstance(type, Tensor) else type
    return element.pointee if isinstance(element, Pointer) else None


def parameter_name(argument: Value) -> str:
    return plain(argument.title or argument.name)


def empty_kernel(function: Function) -> Kernel:
    """The kernel without a body: flat buffers, scalars, and the axes of the grid that the function asks about.

    Raises KdslError K0913 for an argument that is neither.
    """
    written = _written(function)
    parameters: list[Buffer | Scalar] = []
    sizes = []
    for argument in function.arguments:
        name, target = parameter_name(argument), pointee(argument.type)
        dtype = dtype_of(argument.type if target is None else target)
        if dtype is None or shape(argument):
            raise refusal(f"the argument {name} of type {argument.type}", function)
        if target is None:
            parameters.append(Scalar(name, dtype))
        else:
            sizes.append(Size(f"{name}_elements"))
            extent = (symbol(sizes[-1].name),)
            parameters.append(Buffer(name, dtype, extent, "inout" if argument in written else "in"))
    asked = {str(op.words[0]) for op in walk(function.body) if op.name in ("tt.get_program_id", "tt.get_num_programs")}
    places = [place for place, letter in enumerate(GRID) if letter in asked]
    sizes += [Size(f"grid_{place}") for place in places]
    axes = tuple(Axis(f"program_{place}", "program", symbol(f"grid_{place}")) for place in places)
    location = function.place.location if function.place else None
    return Kernel(plain(function.name), tuple(parameters), tuple(sizes), (), (), axes, Region(), location)


def _written(function: Function) -> set[Value]:
    """The values that a store's pointer is made of: among them, the arguments that it may reach."""
    sources: dict[Value, tuple[Value, ...]] = {}
    for operation in walk(function.body):
        if operation.name == "scf.for":
            last = ended(operation.body)[1]
            carried = operation.body.arguments[1:]
            pairs = zip(carried, operation.results, operation.operands[3:], last, strict=True)
            for argument, result, initial, final in pairs:
                sources[argument] = sources[result] = (initial, final)
        else:
            sources |= {result: operation.operands for result in operation.results}
    left = [op.operands[0] for op in walk(function.body) if op.name == "tt.store"]
    found: set[Value] = set()
    while left:
        value = left.pop()
        if value not in found:
            found.add(value)
            left += [each for each in sources.get(value, ()) if pointee(each.type) is not None]
    return found
