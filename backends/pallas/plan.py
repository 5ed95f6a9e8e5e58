"""The plan of a kernel's grid form, as data: coordinates, one block per access site, scratch. Testable without jax.

The grid is the program axes; a top-level loop becomes one more axis, innermost and in order. What the loop carries
lives in scratch: set in the first step, changed in each step within the trip count, read in the last:

    for each program:  start (step 0) | step (every step < trips) | finish (last step)

Every tensor and index pattern is an operand, whose block the pipeline fetches before a step and, for outputs, writes
back after the last step that has it. An output block belongs to one program (checked), and is written whole; Mosaic
clips what lies beyond the tensor's edge. Stores that leave lanes of a block as they are need an in-out tensor, whose
old block is at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kdsl.analysis.validity import follows
from kdsl.codegen.layout import Layout
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr, wrap
from kdsl.ir.kernel import Bound, Kernel, Op, Value, walk
from kdsl.ir.ops import is_pointwise
from kdsl.ir.type_rules import batch_axes

from .access import Operand, operand, refuse
from .grid import Coordinate, check_inside, make_grid
from .layout import SOURCES, assign, factor_layout


@dataclass(frozen=True)
class Scratch:
    """What a loop carries, in VMEM from one step to the next."""

    name: str
    argument: Value
    shape: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True)
class Plan:
    """How a legalized kernel is laid over the grid.

    `inputs` and `outputs` are the operands in the order of the kernel's arguments; `loaded` gives the operand of each
    load by the name of its result, `stored` that of each written tensor. `aliases` maps inputs to the outputs that
    start as them. `loop` is the loop op that became the innermost coordinate, `before` and `after` what stands around
    it (without a loop, all is in `after`); `trips` is its trip count in a program. `masked` are the stores that keep
    lanes of their block, by tensor; `layouts` the layout of every value, None for what is written where it is used.
    """

    kernel: Kernel
    rank: int
    grid: tuple[Coordinate, ...]
    loop: Op | None
    trips: Expr | None
    before: tuple[Op, ...]
    after: tuple[Op, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    loaded: Mapping[str, Operand]
    stored: Mapping[str, Operand]
    aliases: Mapping[str, str]
    masked: Mapping[str, tuple[Bound, ...]]
    scratch: tuple[Scratch, ...]
    layouts: Mapping[str, Layout | None]

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (*self.inputs, *self.outputs)


def make_plan(kernel: Kernel) -> Plan:
    """The plan of a kernel after `legalize`. Raises KdslError K0308 for what the grid form cannot do."""
    loop, before, after = _split(kernel)
    rank = 1 if _is_flat(kernel) else 2
    sites = _operands(kernel, rank == 1)
    loads = [op for op in walk(kernel.body) if op.name == "load"]
    stores = {op.attributes["buffer"]: op for op in walk(kernel.body) if op.name == "store"}
    loaded = {op.result.name: sites[_pattern(op)] for op in loads}
    stored = {name: replace(sites[_pattern(op)], name=name) for name, op in stores.items()}
    masked = {name: bounds for name, op in stores.items() if (bounds := _partial(kernel, op, stored[name]))}
    inputs, aliases = _inputs(kernel, loaded, stored, masked)
    for buffer in kernel.written:
        if buffer.name not in stored:
            raise refuse(None, f"{buffer.name} is never stored to", "store to it, or declare it Tensor[...]", kernel)
    outputs = tuple(stored[buffer.name] for buffer in kernel.written)
    grid, trips = make_grid(kernel, loop, stores, stored)
    for op in loads:
        check_inside(kernel, op, loaded[op.result.name], grid)
    for name, op in stores.items():
        check_inside(kernel, op, stored[name], grid)
    layouts = assign(kernel, {name: site.layout for name, site in loaded.items()}, rank)
    _check_dots(kernel, layouts)
    scratch = _scratch(kernel, loop, layouts)
    return Plan(
        kernel,
        rank,
        grid,
        loop,
        trips,
        before,
        after,
        inputs,
        outputs,
        loaded,
        stored,
        aliases,
        masked,
        scratch,
        layouts,
    )


def _split(kernel: Kernel) -> tuple[Op | None, tuple[Op, ...], tuple[Op, ...]]:
    """The loop, what is before it and what after."""
    ops = kernel.body.ops
    places = [place for place, op in enumerate(ops) if op.name == "for"]
    if len(places) > 1:
        raise refuse(
            ops[places[1]],
            "it has two loops one after the other, and the grid has room for one",
            "take one of the dimensions whole (`:`), or split the kernel",
        )
    if not places:
        return None, (), ops
    loop = ops[places[0]]
    for op in walk(loop.regions[0]):
        if op.name == "for":
            raise refuse(
                op, "it has a loop inside a loop, and the grid has room for one", "take the inner dimension whole (`:`)"
            )
    return loop, ops[: places[0]], ops[places[0] + 1 :]


def _is_flat(kernel: Kernel) -> bool:
    """Whether all is elementwise on one-dimensional tensors, so that blocks and values may be one-dimensional too."""
    ops = list(walk(kernel.body))
    lanewise = {"load", "store", "broadcast", "bitcast", "philox", "for", "yield", *SOURCES}
    tiles = {name for op in ops for value in op.results for name in kernel.tile_axes(value)}
    return (
        len(tiles) == 1
        and all(is_pointwise(op) or op.name in lanewise for op in ops)
        and all(kernel.tile_axes(op.result) for op in ops if op.name == "load")
        and all(len(op.attributes["index"]) == 1 for op in ops if op.name in ("load", "store"))
    )


# -- operands ------------------------------------------------------------------------------------------------------


def _pattern(op: Op) -> tuple[str, tuple[Expr, ...]]:
    return op.attributes["buffer"], op.attributes["index"]


def _operands(kernel: Kernel, flat: bool) -> dict[tuple[str, tuple[Expr, ...]], Operand]:
    """The operand of each tensor and index pattern."""
    sites: dict[tuple[str, tuple[Expr, ...]], Operand] = {}
    stored: dict[str, Op] = {}
    for op in walk(kernel.body):
        if op.name not in ("load", "store"):
            continue
        buffer = op.attributes["buffer"]
        if op.name == "store" and buffer in stored:
            raise refuse(
                op, f"{buffer} is stored to in two places", "join the values with `kdsl.where`, and store once"
            )
        if op.name == "load" and kernel.buffer(buffer).role == "out":
            raise refuse(op, f"{buffer} is an output, and read", "declare it InOut[...]")
        if op.name == "load" and buffer in stored:
            raise refuse(op, f"{buffer} is read after it was stored to", "keep the value in a name")
        if op.name == "store":
            stored[buffer] = op
        if _pattern(op) not in sites:
            count = sum(1 for name, _ in sites if name == buffer)
            sites[_pattern(op)] = operand(kernel, op, f"{buffer}_{count + 1}" if count else buffer, flat)
    return sites


def _inputs(
    kernel: Kernel,
    loaded: Mapping[str, Operand],
    stored: Mapping[str, Operand],
    masked: Mapping[str, tuple[Bound, ...]],
) -> tuple[tuple[Operand, ...], dict[str, str]]:
    """What is fetched, in argument order; and which of it an in-out tensor starts as."""
    inputs: list[Operand] = []
    aliases: dict[str, str] = {}
    for buffer in kernel.buffers:
        found = list({site.name: site for site in loaded.values() if site.buffer == buffer}.values())
        if buffer.name not in stored:
            inputs += found
            continue
        site = stored[buffer.name]
        store = next(op for op in walk(kernel.body) if op.name == "store" and op.attributes["buffer"] == buffer.name)
        if any(other.dimensions != site.dimensions for other in found):
            raise refuse(
                store,
                f"{buffer.name} is read in other blocks than it is written in, which another program may have changed",
                "write to another tensor",
            )
        if buffer.role == "inout":
            aliases[buffer.name] = buffer.name
            inputs.append(replace(site, name=buffer.name))
        elif buffer.name in masked:
            raise refuse(
                store,
                f"the store leaves lanes of {buffer.name} as they are: {' and '.join(map(str, masked[buffer.name]))}",
                "declare it InOut[...], or store every lane",
            )
    return tuple(inputs), aliases


def _partial(kernel: Kernel, op: Op, site: Operand) -> tuple[Bound, ...]:
    """The bounds of a store that are not the tensor's own edge, at which blocks are clipped anyway."""
    edges = [Bound(form, None, extent) for form, extent in zip(op.attributes["index"], site.buffer.shape, strict=True)]
    return tuple(
        bound for bound in op.attributes.get("bounds", ()) if not any(follows(kernel, bound, edge) for edge in edges)
    )


def unneeded(kernel: Kernel, op: Op) -> list[Bound]:
    """Bounds of a load that need no mask: what it holds in such lanes only ever reaches lanes that no store writes."""
    moved: set[str] = set()  # axes whose lanes may come to lie elsewhere
    for inner in walk(kernel.body):
        for key in ("axis", "source", "left_group", "right_group"):
            named = inner.attributes.get(key, ())
            moved.update((named,) if isinstance(named, str) else named)
    stores = [inner for inner in walk(kernel.body) if inner.name == "store"]
    return [
        bound
        for bound in op.attributes.get("bounds", ())
        if not kernel.order(bound.symbols) or not set(kernel.order(bound.symbols)) & moved
        if all(any(follows(kernel, bound, other) for other in store.attributes.get("bounds", ())) for store in stores)
    ]


def _check_dots(kernel: Kernel, layouts: Mapping[str, Layout | None]) -> None:
    for op in walk(kernel.body):
        if op.name not in ("dot", "dot_scaled"):
            continue
        together = batch_axes(kernel, op)
        held = (layouts[value.name] or kernel.tile_axes(value) for value in op.operands[:: len(op.operands) // 2])
        ranks = [len(factor_layout(layout, together)) - len(together) for layout in held]
        if len(together) > 1 or max(ranks) > 2:
            problem = "a dot of tiles with more than two dimensions, besides one that both share and it keeps"
            raise refuse(op, problem, "let a grid or a loop run over the others")
        if together and min(ranks) < 2:
            raise refuse(
                op, f"a dot of a vector for each point of {together[0]}", "sum a product: kdsl.sum(x * y, ...)"
            )


# -- scratch -------------------------------------------------------------------------------------------------------


def _scratch(kernel: Kernel, loop: Op | None, layouts: Mapping[str, Layout | None]) -> tuple[Scratch, ...]:
    if loop is None:
        return ()
    found: list[Scratch] = []
    for argument in loop.regions[0].arguments:
        if argument.dtype.bits < 32 and argument.dtype.name != "bf16":
            raise refuse(loop, f"the loop carries {argument}, of {argument.dtype}", "carry i32 or f32")
        layout = layouts[argument.name] or ()
        name = argument.name.split(".")[0]
        if any(item.name == name for item in found):
            name = argument.name.replace(".", "_")
        found.append(Scratch(name, argument, shape_of(kernel, layout), argument.dtype))
    return tuple(found)


def shape_of(kernel: Kernel, layout: Iterable[str | None]) -> tuple[Expr, ...]:
    """The shape of an array of that layout, within one step."""
    return tuple(wrap(1) if name is None else kernel.axis(name).extent for name in layout)
