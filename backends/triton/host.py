"""The host function of an emitted module: reads sizes, checks, allocates, launches. Printed from the HostPlan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdsl.codegen.expressions import PYTHON, print_expr, print_factor
from kdsl.codegen.hostplan import HostPlan
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr, Function, symbol, wrap
from kdsl.ir.kernel import Buffer, Kernel, Scalar

from .dtypes import POINTERS, TORCH
from .legalize import least_lanes
from .names import Names
from .scope import Scope

FUNCTIONS: Mapping[str, Callable[..., str]] = {
    **PYTHON,
    "cdiv": lambda a, b: f"triton.cdiv({a}, {b})",
    # triton.next_power_of_2(0) is 0, but a tile has at least one lane.
    "next_pow2": lambda a: f"max(1, triton.next_power_of_2({a}))",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of the kernel function.

    `kind` is pointer, scalar, size, stride or constexpr. `of` names the argument that a pointer, scalar or stride
    belongs to; `form` is the value of an integer (of a stride, that of a contiguous tensor).
    """

    name: str
    kind: str
    of: str = ""
    dimension: int = 0
    form: Expr | None = None
    dtype: DType | None = None

    def signature(self, environment: Mapping[str, int]) -> str:
        """Its type in Triton's notation, with what a launch would specialise on."""
        if self.dtype is not None and self.kind == "pointer":
            name = self.dtype.name
            return POINTERS.get(name, f"*{name}") + ":16"  # torch aligns allocations to far more
        if self.form is not None:
            value = int(self.form.evaluate(environment))
            return "i32:1" if value == 1 else "i32:16" if value % 16 == 0 else "i32"
        assert self.dtype is not None
        if self.dtype.is_float:
            return "fp32"
        return "i1" if self.dtype.kind == "bool" else "i64" if self.dtype.bits == 64 else "i32"


def parameters(kernel: Kernel, scope: Scope, body: Sequence[str]) -> list[Parameter]:
    """The parameters that the kernel's body uses: pointers and scalars, sizes, strides, constexprs."""
    used = set(re.findall(r"[A-Za-z_]\w*", "\n".join(body)))
    found: list[Parameter] = []
    for parameter in kernel.parameters:
        kind = "pointer" if isinstance(parameter, Buffer) else "scalar"
        name = scope.names["argument", parameter.name]
        found.append(Parameter(name, kind, parameter.name, dtype=parameter.dtype))
    found += [Parameter(size.name, "size", form=symbol(size.name)) for size in kernel.sizes]
    for buffer in kernel.buffers:
        for dimension in range(len(buffer.shape)):
            stride = wrap(1)
            for extent in buffer.shape[dimension + 1 :]:
                stride = stride * extent
            name = scope.names["stride", buffer.name, dimension]
            found.append(Parameter(name, "stride", buffer.name, dimension, stride))
    found += [Parameter(tile.name, "constexpr", form=symbol(tile.name)) for tile in kernel.tiles]
    found += [Parameter(block.name, "constexpr", form=block.extent) for block in scope.blocks.values()]
    return [parameter for parameter in found if parameter.name in used]


class Host:
    """Prints one host function. `name` gives the host's spelling of an argument, size or tile parameter."""

    def __init__(
        self, kernel: Kernel, plan: HostPlan, scope: Scope, used: list[Parameter], options: Mapping[str, Any]
    ) -> None:
        self.kernel, self.plan, self.scope, self.used, self.options = kernel, plan, scope, used, options
        self.names = Names([kernel.name, f"{kernel.name}_kernel", "num_warps", "device", "programs"])
        for name in [*(size.name for size in plan.sizes), *(tile.name for tile in plan.tiles)]:
            self.names.give(name, name)
        for block in scope.blocks.values():
            self.names.give(block.name, block.name)
        for parameter in kernel.parameters:
            self.names.give(("argument", parameter.name), parameter.name)

    def argument(self, name: str) -> str:
        return self.names["argument", name]

    def expr(self, expr: Expr) -> str:
        return print_expr(expr, functions=FUNCTIONS)

    @property
    def arrays(self) -> list[Buffer]:
        return [parameter for parameter in self.plan.arguments if isinstance(parameter, Buffer)]

    @property
    def needs_device(self) -> bool:
        return not self.arrays

    @property
    def device(self) -> str:
        return "device" if self.needs_device else f"{self.argument(self.arrays[0].name)}.device"

    def header(self, tiles: Mapping[str, int]) -> str:
        """The `def` line."""
        given = [
            f"{self.argument(p.name)}: {'torch.Tensor' if isinstance(p, Buffer) else _python_type(p)}"
            for p in self.plan.arguments
        ]
        keywords = [f"{name}: int" for name in self.plan.keywords]
        keywords += [f"{tile.name}: int = {tiles[tile.name]}" for tile in self.plan.tiles]
        keywords += [f"num_warps: int = {self.options['num_warps']}"]
        keywords += ['device: torch.device | str = "cuda"'] if self.needs_device else []
        results = ["torch.Tensor"] * len(self.plan.results)
        returns = results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"
        return f"def {self.kernel.name}({', '.join([*given, '*', *keywords])}) -> {returns}:"

    def sizes(self) -> list[str]:
        """The tensors' ranks and dtypes, then the sizes."""
        lines = [
            f'_check_tensor("{b.name}", {self.argument(b.name)}, torch.{TORCH[b.dtype.name]}, {len(b.shape)}, '
            f"{self.device})"
            for b in self.arrays
        ]
        whole: set[str] = set()
        for buffer in self.arrays:
            if _reads_whole(self.plan, buffer):
                names = ", ".join(self.expr(extent) for extent in buffer.shape)
                target = f"({names},)" if len(buffer.shape) == 1 else names
                lines.append(f"{target} = {self.argument(buffer.name)}.shape")
                whole |= {source.name for source in self.plan.sizes if source.buffer == buffer.name}
        for source in self.plan.sizes:
            if source.value is not None:
                lines.append(f"{source.name} = {self.expr(source.value)}")
            elif source.buffer is not None and source.name not in whole:
                lines.append(f"{source.name} = {self.argument(source.buffer)}.shape[{source.dimension}]")
        return lines

    def checks(self) -> list[str]:
        """The shapes that are not where sizes were read from, and what the kernel requires."""
        lines = []
        for buffer in self.arrays:
            if not _reads_whole(self.plan, buffer):
                lines.append(f'_check_shape("{buffer.name}", {self.argument(buffer.name)}, {self.shape(buffer.shape)})')
        for constraint in self.plan.constraints:
            left, right = self.expr(constraint.left), self.expr(constraint.right)
            names = sorted(constraint.left.symbols | constraint.right.symbols)
            shown = ", ".join(f"{name} = {{{name}}}" for name in names)
            condition = f"{left} {constraint.comparison} {right}"
            lines.append(f"if not {condition if len(condition) < 60 else f'({condition})'}:")
            lines.append(f'    raise ValueError(f"{self.kernel.name} needs {condition}, but {shown}")')
        return lines + self.tile_checks()

    def tile_checks(self) -> list[str]:
        least = least_lanes(self.kernel)
        lines = []
        for tile in self.plan.tiles:
            axes = [axis for axis in self.kernel.axes if axis.kind == "tile" and tile.name in axis.extent.symbols]
            if axes:
                whole = [least.get(axis.name, 1) for axis in axes if axis.extent == symbol(tile.name)]
                lines.append(f'_check_tile("{tile.name}", {tile.name}, {max([1, *whole])})')
        return lines

    def shape(self, extents: Sequence[Expr]) -> str:
        return f"({', '.join(map(self.expr, extents))}{',' if len(extents) == 1 else ''})"

    def allocations(self) -> list[str]:
        return [
            f"{self.argument(buffer.name)} = torch.empty({self.shape(buffer.shape)}, "
            f"dtype=torch.{TORCH[buffer.dtype.name]}, device={self.device})"
            for buffer in self.plan.outputs
        ]

    def offsets(self) -> str:
        names = [self.argument(buffer.name) for buffer in self.kernel.buffers]
        return f"_check_offsets({', '.join(names)})"

    def launch(self) -> list[str]:
        """The constexprs, the grid and the launch."""
        lines = [f"{block.name} = {self.block(block.extent)}" for block in self.scope.blocks.values()]
        factors = [axis.extent for axis in self.kernel.program_axes if axis.extent.constant != 1]
        grid = " * ".join(print_factor(extent, functions=FUNCTIONS) for extent in factors)
        if len(factors) == 1:
            grid = self.expr(factors[0])
        options = [f"{name}={'num_warps' if name == 'num_warps' else value}" for name, value in self.options.items()]
        passed = ", ".join([*map(self.value, self.used), *options])
        call = f"{self.kernel.name}_kernel[(programs,)]({passed})"
        return [*lines, f"programs = {grid or 1}", "if programs > 0:", f"    {call}"]

    def value(self, parameter: Parameter) -> str:
        """What a launch passes for a parameter."""
        if parameter.kind == "constexpr":
            return f"{parameter.name}={parameter.name}"
        if parameter.kind == "size":
            return parameter.name
        stride = f".stride({parameter.dimension})" if parameter.kind == "stride" else ""
        return self.argument(parameter.of) + stride

    def block(self, extent: Expr) -> str:
        """A padded extent. Next to another lower limit, the 1 that `next_pow2` needs for a size of 0 says nothing."""
        atom = extent.terms[0][0][0] if len(extent.terms) == 1 and len(extent.terms[0][0]) == 1 else None
        if isinstance(atom, Function) and atom.name == "max":
            functions = {**FUNCTIONS, "next_pow2": lambda a: f"triton.next_power_of_2({a})"}
            return print_expr(extent, functions=functions)
        return self.expr(extent)

    def results(self) -> str:
        return ", ".join(self.argument(name) for name in self.plan.results)


def _reads_whole(plan: HostPlan, buffer: Buffer) -> bool:
    """Whether every dimension of a buffer is where a size is read from."""
    places = {(source.buffer, source.dimension) for source in plan.sizes}
    return bool(buffer.shape) and all((buffer.name, place) in places for place in range(len(buffer.shape)))


def _python_type(scalar: Scalar) -> str:
    return "float" if scalar.dtype.is_float else "bool" if scalar.dtype.kind == "bool" else "int"


def describe(parameter: Any) -> str:
    """A parameter in a docstring: `x: float32[M, N]`."""
    if isinstance(parameter, Buffer):
        return f"{parameter.name}: {TORCH[parameter.dtype.name]}[{', '.join(map(str, parameter.shape))}]"
    return f"{parameter.name}: {TORCH[parameter.dtype.name]}"
