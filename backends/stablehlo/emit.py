"""The *sequential* form: one loop over the programs, which carries the tensors that the kernel writes.

The host part comes from the kernel's HostPlan, the loop's body from `body.py`, the frame from `module.py.j2`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdsl.codegen.expressions import print_constraint, print_expr, print_factor
from kdsl.codegen.hostplan import HostPlan, host_plan
from kdsl.codegen.jnp import JNP
from kdsl.codegen.jnp_helpers import helpers_in
from kdsl.codegen.wrap import wrap
from kdsl.ir.dtypes import F32
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Buffer, Kernel, Scalar, walk

from .arrays import as_tuple, as_value
from .body import Body
from .boxes import Extent
from .helpers import HELPERS
from .legalize import MODULE_NAMES
from .names import Names

if TYPE_CHECKING:
    import jinja2

ZERO = Expr(())
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def emit_module(kernel: Kernel, tiles: Mapping[str, int]) -> str:
    """The source of a legalised kernel, with these tile sizes as defaults."""
    plan = host_plan(kernel)
    module = _Module(kernel, plan, {tile.name: tiles.get(tile.name, tile.default) for tile in kernel.tiles})
    return _template().render(**module.fields())


@functools.cache
def _template() -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(Path(__file__).with_name("module.py.j2").read_text())


class _Module:
    """The parts of the module as lists of lines, each indented as it stands in the function."""

    def __init__(self, kernel: Kernel, plan: HostPlan, tiles: Mapping[str, int]) -> None:
        self.kernel, self.plan, self.tiles = kernel, plan, tiles
        # l, O and I are legal names that linters reject.
        fixed = [*MODULE_NAMES, *HELPERS, kernel.name, *"lOI"]
        fixed += [item.name for item in (*kernel.parameters, *kernel.sizes, *kernel.tiles)]
        counts = _counts(kernel, fixed)
        fixed += counts.values()
        axes = {axis.name: axis.name for axis in kernel.axes}
        for axis in kernel.axes:
            while axes[axis.name] in fixed:
                axes[axis.name] += "_lane" if axis.kind == "tile" else "_index"
        for integer in kernel.integers:
            axes[integer.name] = integer.name
            while axes[integer.name] in fixed:
                axes[integer.name] += "_value"
        self.counts, self.axes = counts, axes
        self.written = [buffer.name for buffer in kernel.written]
        self.body = Body(kernel, Names(kernel, [*fixed, *axes.values()]), axes, counts)
        self.program = self.program_lines()

    def fields(self) -> dict[str, Any]:
        parts = {
            "decorator": self.decorator(),
            "head": self.head(),
            "checks": self.checks(),
            "counts": [f"    {name} = {_bare(form)}" for form, name in self.counts.items()],
            "outputs": self.outputs(),
            "padding": self.padding(),
            "lanes": self.lanes(),
            "program": self.program,
            "call": self.call(),
            "results": self.results(),
        }
        code = {name: "".join(f"{line}\n" for line in part) for name, part in parts.items()}
        text = "".join(code.values())
        used = [name for name in ("cdiv", "next_power_of_2", "check", "pad") if f"{name}(" in text]
        helpers = [HELPERS[name] for name in helpers_in(text, HELPERS)]
        return {
            "name": self.kernel.name,
            "signature": self.signature(),
            "constraints": [print_constraint(item) for item in self.kernel.constraints],
            "origin": self.origin(),
            "used": used,
            "helpers": helpers,
            **code,
        }

    # -- head ------------------------------------------------------------------------------------------------------

    def signature(self) -> str:
        arguments = ", ".join(_typed(parameter) for parameter in self.plan.arguments)
        outputs = ", ".join(map(_typed, self.kernel.written))
        returned = f"({outputs})" if len(self.kernel.written) > 1 else outputs
        return "\n".join(wrap(f"    {self.kernel.name}({arguments}) -> {returned}"))

    def doc(self) -> str:
        """The first line of the author's docstring, if it can stand in one of the emitted module."""
        written = self.kernel.doc.strip().split("\n")[0]
        returned = f"Return {', '.join(map(_typed, self.kernel.written))}."
        default = returned if len(returned) < 100 else "Return the outputs."
        return default if not written or len(written) > 100 or set(written) & {'"', "\\"} else written

    def origin(self) -> str:
        place = self.kernel.location
        return f"From {place.file.rpartition('/')[2]}, line {place.line}" if place else "From IR text"

    def keywords(self) -> list[str]:
        return [*self.plan.keywords, *self.tiles]

    def decorator(self) -> list[str]:
        names = ", ".join(f'"{name}"' for name in self.keywords())
        comma = "," if len(self.keywords()) == 1 else ""
        return wrap(f"@functools.partial(jax.jit, static_argnames=({names}{comma}))") if names else ["@jax.jit"]

    def head(self) -> list[str]:
        arguments = [parameter.name for parameter in self.plan.arguments]
        keywords = [*self.plan.keywords, *(f"{name}={value}" for name, value in self.tiles.items())]
        parameters = [*arguments, *(["*", *keywords] if keywords else [])]
        return [*wrap(f"def {self.kernel.name}({', '.join(parameters)}):"), f'    """{self.doc()}"""']

    # -- host ------------------------------------------------------------------------------------------------------

    def checks(self) -> list[str]:
        arrays = [parameter for parameter in self.plan.arguments if isinstance(parameter, Buffer)]
        lines = [*_wide_check(self.kernel)]
        lines += [f'check("{b.name}", {b.name}, {JNP[b.dtype.name]}, {len(b.shape)})' for b in arrays]
        lines += self.sizes(arrays)
        lines += self.shape_checks(arrays)
        if self.tiles:
            least = f"min({', '.join(self.tiles)})" if len(self.tiles) > 1 else next(iter(self.tiles))
            lines += [f"if {least} < 1:", '    raise ValueError("tile sizes are at least 1")']
        for item in self.kernel.constraints:
            test = f"{print_expr(item.left)} {OPPOSITE[item.comparison]} {print_expr(item.right)}"
            lines += [f"if {test}:", f'    raise ValueError("{self.kernel.name} requires {print_constraint(item)}")']
        scalars = [parameter for parameter in self.plan.arguments if isinstance(parameter, Scalar)]
        lines += [f"{s.name} = jnp.asarray({s.name}, {JNP[s.dtype.name]})" for s in scalars]
        return [part for line in lines for part in wrap(f"    {line}")]

    def sizes(self, arrays: Sequence[Buffer]) -> list[str]:
        """Sizes read off shapes, a line for each array that shows new ones, then those that are computed."""
        lines = []
        for buffer in arrays:
            own = {size.dimension: size.name for size in self.plan.sizes if size.buffer == buffer.name}
            if len(own) == 1 and len(buffer.shape) > 1:
                ((dimension, name),) = own.items()
                lines.append(f"{name} = {buffer.name}.shape[{dimension}]")
            elif own:
                names = [own.get(dimension, "_") for dimension in range(len(buffer.shape))]
                lines.append(f"{as_tuple(names) if len(names) == 1 else ', '.join(names)} = {buffer.name}.shape")
        return lines + [f"{size.name} = {_bare(size.value)}" for size in self.plan.sizes if size.value is not None]

    def shape_checks(self, arrays: Sequence[Buffer]) -> list[str]:
        """For the arrays whose shapes do not hold by how the sizes were read."""
        shown = {(size.buffer, size.dimension) for size in self.plan.sizes}
        lines = []
        for buffer in arrays:
            if all((buffer.name, dimension) in shown for dimension in range(len(buffer.shape))):
                continue
            wanted = as_tuple([print_expr(size) for size in buffer.shape])
            names = ", ".join(map(str, buffer.shape))
            lines += [f"if {buffer.name}.shape != {wanted}:"]
            message = f'f"{buffer.name}[{names}]: expected shape {{{wanted}}}, got {{{buffer.name}.shape}}"'
            lines += [f"    raise ValueError({message})"]
        return lines

    def outputs(self) -> list[str]:
        lines = [
            f"    {b.name} = jnp.zeros({as_tuple([print_expr(size) for size in b.shape])}, {JNP[b.dtype.name]})"
            for b in self.plan.outputs
        ]
        if any(axis.extent.constant is None for axis in self.kernel.program_axes):
            lines += [f"    if {self.total()} == 0:", *wrap(f"        return {', '.join(self.written)}")]
        return lines

    def padding(self) -> list[str]:
        """Each tensor that must hold more than its elements, padded."""
        lines = []
        for buffer in self.kernel.buffers:
            extents = self.body.extents[buffer.name]
            if any(extent.needs_padding(size) for extent, size in zip(extents, buffer.shape, strict=True)):
                ranges = ", ".join(f"({self.body.size(e.low)}, {self.body.size(e.high)})" for e in extents)
                lines += wrap(f"    {buffer.name} = pad({buffer.name}, {ranges})")
        return lines

    # -- the loop over programs ------------------------------------------------------------------------------------

    def lanes(self) -> list[str]:
        used = [axis for axis in self.kernel.axes if axis.name in self.body.lanes]
        return [f"    {self.axes[axis.name]} = jnp.arange({self.body.size(axis.extent)})" for axis in used]

    def total(self) -> str:
        sizes = [self.counts.get(axis.extent) or print_factor(axis.extent) for axis in self.kernel.program_axes]
        return " * ".join(sizes) or "1"

    def program_lines(self) -> list[str]:
        axes = self.kernel.program_axes
        index = self.axes[axes[0].name] if len(axes) == 1 else "program_id" if axes else "_"
        with self.body.function("program", [index], self.written):
            if len(axes) > 1:
                names = ", ".join(self.axes[axis.name] for axis in axes)
                sizes = as_tuple([self.counts.get(axis.extent) or print_expr(axis.extent) for axis in axes])
                self.body.line(f"{names} = jnp.unravel_index(program_id, {sizes})")
            self.body.region(self.kernel.body)
            self.body.line(f"return {', '.join(self.written)}")
        return self.body.lines[:-1]

    def call(self) -> list[str]:
        outputs = as_value(self.written)
        return wrap(f"    {', '.join(self.written)} = jax.lax.fori_loop(0, {self.total()}, program, {outputs})")

    def results(self) -> list[str]:
        """The written tensors without their padding."""
        results = []
        for buffer in self.kernel.written:
            cuts = [_cut(e, size) for e, size in zip(self.body.extents[buffer.name], buffer.shape, strict=True)]
            while cuts and cuts[-1] == ":":
                cuts.pop()
            results.append(f"{buffer.name}[{', '.join(cuts)}]" if cuts else buffer.name)
        return wrap(f"    return {', '.join(results)}")


def _bare(form: Expr) -> str:
    """A form that stands alone: a single division needs no parentheses."""
    text = print_expr(form)
    single = len(form.terms) == 1 and form.terms[0][1] == 1 and len(form.terms[0][0]) == 1
    return text[1:-1] if single and text.startswith("(") else text


def _cut(extent: Extent, size: Expr) -> str:
    """The slice of one dimension that takes the padding off."""
    if not extent.needs_padding(size):
        return ":"
    low, high = print_expr(-extent.low), print_expr(size - extent.low)
    simple = low.isalnum() and high.isalnum()
    if extent.low == ZERO:
        return f":{high}" if simple else f": {high}"
    return f"{low}:{high}" if simple else f"{low} : {high}"


def _typed(parameter: Buffer | Scalar) -> str:
    shape = f"[{', '.join(map(str, parameter.shape))}]" if isinstance(parameter, Buffer) else ""
    return f"{parameter.name}: {parameter.dtype}{shape}"


def _counts(kernel: Kernel, taken: Sequence[str]) -> dict[Expr, str]:
    """Names for trip counts that the host computes: those that are more than a size or a number."""
    counts: dict[Expr, str] = {}
    for axis in kernel.axes:
        name = f"{axis.name}s"
        simple = axis.extent.constant is not None or str(axis.extent).isidentifier()
        varies = axis.extent.symbols & {integer.name for integer in kernel.integers} or kernel.order(
            axis.extent.symbols
        )
        if axis.kind == "tile" or simple or varies or axis.extent in counts:
            continue
        counts[axis.extent] = name if name not in taken else f"{name}_count"
    return counts


def is_wide(kernel: Kernel) -> bool:
    """Whether the kernel holds or computes anything in 64 bits, as it does for an exact f32 product."""
    ops = list(walk(kernel.body))
    held = [value.dtype for op in ops for value in op.results] + [parameter.dtype for parameter in kernel.parameters]
    return any(dtype.bits == 64 for dtype in held) or any(op.name == "fma" and op.result.dtype == F32 for op in ops)


def _wide_check(kernel: Kernel) -> list[str]:
    if not is_wide(kernel):
        return []
    message = f"{kernel.name} computes in 64 bits: set jax.config.update('jax_enable_x64', True)"
    return ["if not jax.config.jax_enable_x64:", f'    raise ValueError("{message}")']
