"""Source for a kernel in grid form: a module that stands alone, from a plan, tile sizes and a frame."""

from __future__ import annotations

import textwrap
from pathlib import Path

from kdsl.codegen.expressions import print_constraint
from kdsl.codegen.jnp_helpers import helpers_in
from kdsl.ir.kernel import Buffer, Kernel

from .access import refuse
from .functions import HELPERS
from .host import Host, shown
from .plan import Plan
from .sections import kernel_function, kernel_name
from .text import WIDTH
from .tiles import Choice

MODULES = ("functools", "jax", "jnp", "pl", "pltpu")


def module_text(plan: Plan, choice: Choice) -> str:
    """The module's text, formatted."""
    import jinja2

    kernel = plan.kernel
    names = {size.name for size in kernel.sizes} | {tile.name for tile in kernel.tiles}
    names |= {coordinate.name for coordinate in plan.grid} | {kernel_name(plan), *MODULES, *HELPERS}
    names |= {f"{parameter.name}_ref" for parameter in kernel.parameters if not isinstance(parameter, Buffer)}
    for parameter in kernel.parameters:
        if parameter.name in names | {"interpret"}:
            raise refuse(None, f"an argument is named {parameter.name}", "give it another name", kernel)
    body, keywords = kernel_function(plan, names)
    host = Host(plan, choice, keywords)
    before, after = host.returned()
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    frame = environment.from_string(Path(__file__).with_name("module.py.j2").read_text(encoding="utf-8"))
    return frame.render(
        doc=_doc(kernel, host),
        helpers=[HELPERS[name].rstrip() for name in helpers_in(body, HELPERS)],
        kernel=body,
        static_names=_tuple(host.static_names),
        signature=host.signature(),
        summary=_summary(host),
        checks=host.checks(),
        tiles=host.tiles(),
        padding=host.padding(),
        result=before,
        call=host.pallas_call(),
        returned=after,
    )


def _tuple(names: list[str]) -> str:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"({quoted},)" if len(names) == 1 else f"({quoted})"


def _doc(kernel: Kernel, host: Host) -> str:
    """What the kernel computes on, what it requires, where it comes from."""
    title = kernel.doc.strip().split("\n")[0] or "a kernel for TPU, in Pallas"
    given = ", ".join(shown(p) if isinstance(p, Buffer) else f"{p.name}: {p.dtype}" for p in host.host.arguments)
    gives = ", ".join(shown(buffer) for buffer in kernel.written)
    # The title stands behind the opening quotes.
    lines = _wrapped(f"{kernel.name}: {title}", width=WIDTH - len('"""'))
    lines += ["", *_wrapped(f"{given} -> {gives}", "    ")]
    if host.host.keywords:
        lines += _wrapped(f"sizes: {', '.join(host.host.keywords)}", "    ")
    if kernel.constraints:
        lines += ["", *_wrapped(f"Requires {', '.join(map(print_constraint, kernel.constraints))}.")]
    if host.choice.tiles:
        rules = [
            f"{tile.name} a multiple of {tile.multiple}" if tile.multiple > 1 else tile.name
            for tile in host.choice.tiles
        ]
        lines += ["", *_wrapped(f"Tile sizes: {', '.join(rules)}; each is cut down to its dimension.")]
    if kernel.location is not None:
        name = Path(kernel.location.file).name  # the path is the author's own business
        lines += ["", *_wrapped(f"Made by kdsl from {name}, line {kernel.location.line}.")]
    return "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")


def _wrapped(text: str, indent: str = "", width: int = WIDTH) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)


def _summary(host: Host) -> str:
    results = host.host.results
    return f"Return {results[0]}." if len(results) == 1 else f"Return ({', '.join(results)})."
