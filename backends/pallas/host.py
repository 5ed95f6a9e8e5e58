"""The host function: from arguments to one `pl.pallas_call` and back. Printed from the HostPlan and the plan."""

from __future__ import annotations

from kdsl.codegen.expressions import print_constraint, print_expr
from kdsl.codegen.hostplan import HostPlan, host_plan
from kdsl.codegen.jnp import JNP
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Buffer, Scalar

from .access import Operand
from .plan import Plan
from .sections import kernel_name, scalar_names
from .text import TRACED, call, condition, listed, raised, row, sequence, static, static_factor
from .tiles import MIB, Choice


class Host:
    """Prints the parts of the host function. Lines are without their first indentation of one level."""

    def __init__(self, plan: Plan, choice: Choice, keywords: tuple[str, ...]) -> None:
        self.plan, self.choice, self.keywords = plan, choice, keywords
        self.host: HostPlan = host_plan(plan.kernel)
        self.arrays = [p for p in self.host.arguments if isinstance(p, Buffer)]
        self.scalars = [p for p in self.host.arguments if isinstance(p, Scalar)]
        self.may_be_empty = self._looped_dimensions()

    @property
    def static_names(self) -> list[str]:
        return [*self.host.keywords, *self.choice.sizes, "interpret"]

    def signature(self) -> str:
        tiles = [f"{name}={size}" for name, size in self.choice.sizes.items()]
        names = [p.name for p in self.host.arguments]
        return call(f"def {self.host.name}", [*names, "*", *self.host.keywords, *tiles, "interpret=False"], 0, tail=":")

    # -- checks ----------------------------------------------------------------------------------------------------

    def checks(self) -> list[str]:
        return [*self._ranks(), *self._sizes(), *self._shapes(), *self._constraints(), *self._empty()]

    def _expected(self) -> list[str]:
        expected = ", ".join(shown(buffer) for buffer in self.arrays)
        got = ", ".join(f"{{{buffer.name}.dtype}}{{{buffer.name}.shape}}" for buffer in self.arrays)
        return [f"expected {expected}; ", f"got {got}"]

    def _ranks(self) -> list[str]:
        parts = [f"{buffer.name}.ndim != {len(buffer.shape)}" for buffer in self.arrays]
        parts += [f"{buffer.name}.dtype != {JNP[buffer.dtype.name]}" for buffer in self.arrays]
        return self._if(parts, self._expected()) if parts else []

    def _sizes(self) -> list[str]:
        lines = []
        for buffer in self.arrays:
            own = {size.dimension: size.name for size in self.host.sizes if size.buffer == buffer.name}
            if own and len(own) == len(buffer.shape):
                names = [own[place] for place in range(len(own))]
                lines.append(f"{row(names) if len(names) == 1 else ', '.join(names)} = {buffer.name}.shape")
            else:
                lines += [f"{name} = {buffer.name}.shape[{place}]" for place, name in own.items()]
        lines += [f"{size.name} = {static(size.value)}" for size in self.host.sizes if size.value is not None]
        return lines

    def _shapes(self) -> list[str]:
        read = {(size.buffer, size.dimension) for size in self.host.sizes}
        parts = [
            f"{name}.shape != {row([static(extent) for extent in shape])}"
            for name, shape in self.host.shapes
            if any((name, place) not in read for place in range(len(shape)))
        ]
        return self._if(parts, self._expected()) if parts else []

    def _constraints(self) -> list[str]:
        lines = []
        for rule in self.host.constraints:
            left, right = static(rule.left), static(rule.right)
            sizes = sorted(rule.left.symbols | rule.right.symbols)
            shown_sizes = ", ".join(f"{name} = {{{name}}}" for name in sizes)
            message = [f"{self.host.name} requires {print_constraint(rule)}; ", f"got {shown_sizes}"]
            lines += self._if([f"not {left} {rule.comparison} {right}"], message)
        return lines

    def _empty(self) -> list[str]:
        """Calls that have nothing to compute, and empty dimensions that no block can lie along."""
        shapes = [set(buffer.shape) for buffer in self.plan.kernel.written]
        shared = [e for e in self.plan.kernel.written[0].shape if e.constant is None and all(e in s for s in shapes)]
        lines = []
        if shared:
            given = {buffer.name for buffer in self.arrays}
            empties = [
                buffer.name if buffer.name in given else f"jnp.zeros({shape_text(buffer)}, {JNP[buffer.dtype.name]})"
                for buffer in self.plan.kernel.written
            ]
            test = f"{static(shared[0])} == 0" if len(shared) == 1 else f"0 in {row([static(e) for e in shared])}"
            lines += [f"if {test}:", f"    return {', '.join(empties)}"]
        extents = [d.extent for site in self.plan.operands for d in site.dimensions if d.extent.constant is None]
        needed = [e for e in dict.fromkeys(extents) if e not in shared and e not in self.may_be_empty]
        if needed:
            names = [static(extent) for extent in needed]
            got = ", ".join(f"{name} = {{{name}}}" for name in names)
            parts = [f"{static_factor(extent)} < 1" for extent in needed]
            lines += self._if(parts, [f"{listed(names)} must be at least 1; ", f"got {got}"])
        return lines

    def _looped_dimensions(self) -> set[Expr]:
        """Extents that only the loop runs along: with none of it, the loop has no step, and the result is what it
        starts with."""
        if self.plan.loop is None:
            return set()
        loop = self.plan.grid[-1].name
        dimensions = [d for site in self.plan.operands for d in site.dimensions]
        looped = {d.extent for d in dimensions if loop in d.index.symbols and d.size is not None}
        return looped - {d.extent for d in dimensions if loop not in d.index.symbols}

    def _if(self, parts: list[str], message: list[str]) -> list[str]:
        return f"{condition(parts, 1)}\n        {raised(message, 2)}".split("\n    ")

    # -- tiles -----------------------------------------------------------------------------------------------------

    def tiles(self) -> list[str]:
        """Tiles cut down to their dimensions, and the check that Mosaic takes what is left."""
        cut = [tile for tile in self.choice.tiles if tile.dimension is not None]
        lines = []
        if cut:
            limits = [f"min({tile.name}, {self._at_least_one(tile.dimension)})" for tile in cut if tile.dimension]
            names = [tile.name for tile in cut]
            line = f"{', '.join(names)} = {', '.join(limits)}"
            lines += [line] if len(line) <= 110 else [f"{n} = {limit}" for n, limit in zip(names, limits, strict=True)]
        parts, kinds = [f"min({', '.join(self.choice.sizes)}) < 1"], []
        if len(self.choice.tiles) == 1:
            parts = [f"{self.choice.tiles[0].name} < 1"]
        for tile in self.choice.tiles:
            if tile.multiple > 1:
                whole = f" and {tile.name} < {static(tile.dimension)}" if tile.dimension is not None else ""
                parts.append(f"({tile.name} % {tile.multiple}{whole})" if whole else f"{tile.name} % {tile.multiple}")
                kinds.append(f"{tile.name} of {tile.multiple}")
        if self.choice.tiles:
            rule = (
                f"tile sizes are multiples ({', '.join(kinds)}) or a whole dimension; "
                if kinds
                else "tile sizes are positive; "
            )
            got = ", ".join(f"{name} = {{{name}}}" for name in self.choice.sizes)
            lines += self._if(parts, [rule, f"got {got}"])
        return lines

    def _at_least_one(self, extent: Expr) -> str:
        return f"max({static(extent)}, 1)" if extent in self.may_be_empty else static(extent)

    def padding(self) -> list[str]:
        """Something to fetch where a looped dimension is empty."""
        lines = []
        for extent in sorted(self.may_be_empty, key=str):
            names = [buffer for buffer in self.arrays if extent in buffer.shape]
            if not names:
                continue
            lines += [f"if {static_factor(extent)} == 0:  # no step, but still a block to fetch"]
            for buffer in names:
                shape = row(["1" if size == extent else self._at_least_one(size) for size in buffer.shape])
                lines.append(f"    {buffer.name} = jnp.zeros({shape}, {buffer.name}.dtype)")
        return lines

    # -- the call --------------------------------------------------------------------------------------------------

    def pallas_call(self) -> str:
        plan = self.plan
        partial = f"functools.partial({', '.join([kernel_name(plan), *(f'{k}={k}' for k in self.keywords)])})"
        shapes = [f"jax.ShapeDtypeStruct({view(site)}, {JNP[site.dtype.name]})" for site in plan.outputs]
        outputs = [self._spec(site) for site in plan.outputs]
        arguments = [
            partial if self.keywords else kernel_name(plan),
            f"out_shape={shapes[0] if len(shapes) == 1 else sequence(shapes, 2)}",
            f"grid={row([self._steps(place) for place in range(len(plan.grid))])}",
        ]
        smem = ["pl.BlockSpec(memory_space=pltpu.SMEM)" for _ in scalar_names(plan)]
        if smem or plan.inputs:
            arguments.append(f"in_specs={sequence([*smem, *(self._spec(site) for site in plan.inputs)], 2)}")
        arguments.append(f"out_specs={outputs[0] if len(outputs) == 1 else sequence(outputs, 2)}")
        if plan.scratch:
            scratch = [f"pltpu.VMEM({row([static(e) for e in s.shape])}, {JNP[s.dtype.name]})" for s in plan.scratch]
            arguments.append(f"scratch_shapes={sequence(scratch, 2)}")
        if plan.aliases:
            arguments.append(f"input_output_aliases={self._aliases(len(smem))}")
        arguments += [f"compiler_params={self._compiler_params()}", "interpret=interpret", f'name="{self.host.name}"']
        inner = "".join(f"        {argument},\n" for argument in arguments)
        given = [_scalar(scalar) for scalar in self.scalars] + [self._given(site) for site in plan.inputs]
        # The second pair of brackets stands on the line that closes the first.
        return f"pl.pallas_call(\n{inner}    {call(')', given, 1)}"

    def _steps(self, place: int) -> str:
        coordinate = self.plan.grid[place]
        is_loop = self.plan.loop is not None and place == len(self.plan.grid) - 1
        text = static(coordinate.extent)
        # A grid without steps would start and finish nothing.
        return f"max({text}, 1)" if is_loop and coordinate.extent.constant is None else text

    def _spec(self, site: Operand) -> str:
        block = row(["None" if d.size is None else static(d.size) for d in site.dimensions])
        index = row([print_expr(d.index, functions=TRACED) for d in site.dimensions])
        names = ", ".join(coordinate.name for coordinate in self.plan.grid)
        return call("pl.BlockSpec", [block, f"lambda {names}: {index}" if names else f"lambda: {index}"], 3)

    def _aliases(self, offset: int) -> str:
        places = {site.name: place + offset for place, site in enumerate(self.plan.inputs)}
        outputs = [site.name for site in self.plan.outputs]
        return "{" + ", ".join(f"{places[i]}: {outputs.index(o)}" for i, o in self.plan.aliases.items()) + "}"

    def _compiler_params(self) -> str:
        kinds = [f'"{"parallel" if c.parallel else "arbitrary"}"' for c in self.plan.grid]
        arguments = [f"dimension_semantics={row(kinds) if kinds else '()'}"]
        if self.choice.vmem_limit is not None:
            arguments.append(f"vmem_limit_bytes={self.choice.vmem_limit * MIB}")
        return call("pltpu.CompilerParams", arguments, 2)

    def _given(self, site: Operand) -> str:
        name = site.buffer.name
        text = f"{name}.reshape{view(site, self.may_be_empty)}" if site.reshaped else name
        return text if site.dtype == site.buffer.dtype else f"{text}.astype({JNP[site.dtype.name]})"

    def returned(self) -> tuple[str, list[str]]:
        """What stands before the call, and the lines after it: results in the tensors' own shapes and dtypes."""
        outputs = self.plan.outputs
        if len(outputs) == 1 and not outputs[0].reshaped and outputs[0].dtype == outputs[0].buffer.dtype:
            return "return ", []
        names = ", ".join(site.name for site in outputs)
        return f"{names} = ", [f"return {', '.join(self._restored(site) for site in outputs)}"]

    def _restored(self, site: Operand) -> str:
        text = f"{site.name}.reshape({shape_text(site.buffer)})" if site.reshaped else site.name
        return text if site.dtype == site.buffer.dtype else f"{text}.astype({JNP[site.buffer.dtype.name]})"


def _scalar(scalar: Scalar) -> str:
    return f"jnp.full((1, 1), {scalar.name}, {JNP[scalar.dtype.name]})"


def shown(buffer: Buffer) -> str:
    """`a: bfloat16[M, K]`, as in messages and docs."""
    dtype = JNP[buffer.dtype.name].removeprefix("jnp.").rstrip("_")
    return f"{buffer.name}: {dtype}[{', '.join(map(static, buffer.shape))}]"


def shape_text(buffer: Buffer) -> str:
    return row([static(extent) for extent in buffer.shape])


def view(site: Operand, unknown: set[Expr] | None = None) -> str:
    """The shape a tensor is viewed in; -1 for an extent that may have been padded."""
    return row(["-1" if unknown and d.extent in unknown else static(d.extent) for d in site.dimensions])
