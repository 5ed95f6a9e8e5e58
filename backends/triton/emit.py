"""From a kernel to the module's text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from kdsl.codegen.expressions import print_constraint, print_expr
from kdsl.codegen.hostplan import host_plan
from kdsl.codegen.wrap import wrap
from kdsl.diagnostics import fail
from kdsl.ir.kernel import Kernel, size_values, walk
from kdsl.runtime.target import Source

from .checks import CHECKS
from .emitter import INDENT, Emitter
from .helpers import used_helpers
from .host import Host, Parameter, describe, parameters
from .legalize import least_lanes, legalize
from .limits import NAME

if TYPE_CHECKING:
    import jinja2

# Above this many lanes of the widest value, 8 warps keep what a thread holds within its registers.
LANES_FOR_8_WARPS = 1 << 13


def emit(kernel: Kernel, tiles: Mapping[str, int], sizes: Mapping[str, int]) -> Source:
    """Source for an unbound kernel, as kdsl.runtime.target.Target.emit says. Raises KdslError K0301 to K0304."""
    chosen = {tile.name: int(tiles.get(tile.name, tile.default)) for tile in kernel.tiles}
    legal = legalize(kernel)
    check_tiles(legal, chosen)
    emitter = Emitter(legal)
    body = emitter.run()
    used = parameters(legal, emitter.scope, body)
    environment = {**size_values(kernel, sizes), **chosen}
    num_warps = 8 if widest(legal, environment) >= LANES_FOR_8_WARPS else 4
    options = launch_options(legal, num_warps)
    host = Host(legal, host_plan(legal), emitter.scope, used, options)
    lines = [
        *host.sizes(), *host.checks(), *host.allocations(), host.offsets(), *host.launch(), f"return {host.results()}",
    ]  # fmt: skip
    heads = [f"{p.name}: tl.constexpr" if p.kind == "constexpr" else p.name for p in used]
    code = [f"def {kernel.name}_kernel({', '.join(heads)}):", *(body or [f"{INDENT}pass"])]
    host_text = "\n".join(lines)
    text = _template().render(
        title=f"{kernel.name}: a Triton kernel{_origin(kernel)}.",
        signature="\n".join(wrap(_signature(legal))),
        requirements=_requirements(kernel),
        helpers=[*used_helpers("\n".join([*body, *emitter.functions])), *emitter.functions],
        library="libdevice." in "\n".join([*body, *emitter.functions]),
        kernel=[part for line in code for part in wrap(line)],
        header="\n".join(wrap(host.header(chosen))),
        summary=_summary(kernel),
        host=[part[len(INDENT) :] for line in lines for part in wrap(INDENT + line)],
        checks=[text for name, text in CHECKS.items() if name in host_text],
    )
    return Source(NAME, kernel, kernel.name, text, "grid", chosen, notes(legal), options)


def launch_options(kernel: Kernel, num_warps: int) -> dict[str, Any]:
    """What a launch sets besides arguments."""
    # Triton 3.9 fuses multiplications and additions unless told otherwise, 3.10 does not: pinned.
    options: dict[str, Any] = {"num_warps": num_warps, "enable_fp_fusion": True}
    if any(op.name == "assert" for op in walk(kernel.body)):
        # Asserts are compiled in debug mode only, which would also trap on integers that wrap.
        options |= {"debug": True, "sanitize_overflow": False}
    return options


def notes(kernel: Kernel) -> tuple[str, ...]:
    """Where a GPU leaves open, or does otherwise, what the op table says."""
    found: dict[str, None] = {}
    for op in walk(kernel.body):
        place = f"line {op.location.line}: " if op.location else ""
        if op.name == "store_at":
            found[f"{place}where lanes store to one element of {op.attributes['buffer']}, any of them may win"] = None
        if op.name == "atomic" and op.operands[0].dtype.is_float and op.attributes["combine"] in ("maximum", "minimum"):
            found[f"{place}an element of {op.attributes['buffer']} that holds NaN before keeps it"] = None
        if op.name == "print":
            found[f"{place}lanes past an edge are printed too"] = None
    return tuple(found)


def launch_parameters(kernel: Kernel) -> list[Parameter]:
    """The parameters of the kernel function that `emit` writes for a kernel."""
    legal = legalize(kernel)
    emitter = Emitter(legal)
    return parameters(legal, emitter.scope, emitter.run())


def check_tiles(kernel: Kernel, tiles: Mapping[str, int]) -> None:
    """Raise KdslError K0304 for a tile size that Triton cannot have."""
    least = least_lanes(kernel)
    for axis in kernel.axes:
        names = sorted(axis.extent.symbols & tiles.keys()) if axis.kind == "tile" else []
        for name in names:
            value = tiles[name]
            if value < 1 or value & (value - 1):
                problem = "it is no power of two"
            elif axis.extent.symbols <= tiles.keys() and axis.extent.evaluate(tiles) < least.get(axis.name, 1):
                problem = f"a dot contracts, or topk searches, at least {least[axis.name]} lanes"
            else:
                continue
            raise fail("K0304", kernel.location, target=NAME, name=name, value=value, problem=problem)


def widest(kernel: Kernel, environment: Mapping[str, int]) -> int:
    """The number of lanes of the widest value."""
    most = 1
    for op in walk(kernel.body):
        for value in op.results:
            lanes = 1
            for name in kernel.tile_axes(value):
                lanes *= int(kernel.axis(name).extent.evaluate(environment))
            most = max(most, lanes)
    return most


def _origin(kernel: Kernel) -> str:
    return f", generated from {PurePath(kernel.location.file).name}:{kernel.location.line}" if kernel.location else ""


def _summary(kernel: Kernel) -> str:
    """The first line of the author's docstring, fit for a docstring."""
    first, *_ = kernel.doc.strip().splitlines() or [f"Launch {kernel.name}_kernel."]
    return textwrap.shorten(first, 100, placeholder=" ...").replace("\\", "/").replace('"', "'")


def _signature(kernel: Kernel) -> str:
    plan = host_plan(kernel)
    written = {buffer.name: buffer for buffer in kernel.written}
    given = [*map(describe, plan.arguments)]
    keywords = ["*", *(f"{name}: int" for name in plan.keywords)] if plan.keywords else []
    results = ", ".join(describe(written[name]) for name in plan.results)
    return f"{kernel.name}({', '.join([*given, *keywords])}) -> {results}"


def _requirements(kernel: Kernel) -> list[str]:
    lines = ["", f"Requires {', '.join(map(print_constraint, kernel.constraints))}."] if kernel.constraints else []
    computed = [f"{size.name} = {print_expr(size.value)}" for size in kernel.sizes if size.value is not None]
    return [*lines, *(["", f"Where {', '.join(computed)}."] if computed else [])]


def _template() -> jinja2.Template:
    import jinja2

    folder = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=folder, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    return environment.get_template("module.py.j2")
