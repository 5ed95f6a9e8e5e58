"""kdsl show: a kernel's IR as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kdsl.cli.options import SourceArgument, pick_example

if TYPE_CHECKING:
    from kdsl.ir.kernel import Kernel
    from kdsl.lang.kernel import Kernel as KernelFunction


def show(
    source: SourceArgument,
    after: Annotated[
        str | None, typer.Option("--after", metavar="PASS", help="Run the passes up to this one.", show_default=False)
    ] = None,
    example: Annotated[
        int, typer.Option("--example", min=1, metavar="N", help="Which example gives dtypes and constants.")
    ] = 1,
    bound: Annotated[bool, typer.Option("--bind", help="Put in the example's sizes and tile sizes.")] = False,
    locations: Annotated[bool, typer.Option("--locations", help="Show each op's place in the source.")] = False,
) -> None:
    """Print the IR of each kernel."""
    from kdsl.ir.text import print_kernel
    from kdsl.passes import PASSES, find_pass, run_passes
    from kdsl.runtime.loading import load

    passes, wanted = list(PASSES), []
    if after is not None:
        try:
            find_pass(after)
        except KeyError:
            known = f"in order: {', '.join(passes)}; alone: batch(AXIS, K)"
            raise typer.BadParameter(f"there is no pass {after}; {known}", param_hint="--after") from None
        wanted = passes[: passes.index(after) + 1] if after in passes else [after]
    texts = [print_kernel(run_passes(_kernel(each.kernel, example, bound), wanted), locations) for each in load(source)]
    typer.echo("\n".join(texts), nl=False)


def _kernel(kernel: KernelFunction, number: int, bound: bool) -> Kernel:
    """The kernel's IR for the dtypes and constants of an example, from 1; for one without examples, as it stands."""
    from kdsl.ir.kernel import bind
    from kdsl.runtime.examples import bind_example

    if not kernel.examples and not bound:
        return kernel.elaborate()
    binding = bind_example(kernel, pick_example(kernel, number))
    return bind(binding.kernel, binding.sizes, binding.tiles) if bound else binding.kernel
