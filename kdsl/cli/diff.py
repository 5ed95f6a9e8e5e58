"""kdsl diff: two kernels compared by the elements that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kdsl.cli import screen

if TYPE_CHECKING:
    from kdsl.runtime.examples import Binding

SHOWN = 10


def diff(
    first: Annotated[str, typer.Argument(metavar="SRC::KERNEL", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="SRC::KERNEL", show_default=False)],
    size: Annotated[
        list[str], typer.Option("--size", metavar="M=4", help="A size; the others are the example's, made small.")
    ] = [],  # noqa: B006  typer reads it, and nothing writes to it
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="S", help="What the inputs are drawn from.")] = 0,
) -> None:
    """Say which elements of the inputs one kernel reads for an element of an output, and the other does not."""
    from kdsl.equivalence.difference import bind_alike, differences, draw_arguments, element_count

    bindings = [_binding(source) for source in (first, second)]
    one, other, sizes = bind_alike(bindings[0], bindings[1], _parsed(size))
    found = list(differences(one, other, draw_arguments(one, bindings[0], seed)))
    for difference in found[:SHOWN]:
        typer.echo(str(difference))
    if len(found) > SHOWN:
        typer.echo(f"and {len(found) - SHOWN} more")
    where = ", ".join(f"{name} = {value}" for name, value in sizes.items())
    total = sum(element_count(buffer) for buffer in one.written)
    screen.say(f"{len(found)} of {total} elements differ in what they read ({where})")
    raise typer.Exit(3 if found else 0)


def _binding(source: str) -> Binding:
    """The first example of the one kernel that SRC::KERNEL names."""
    from kdsl.runtime.examples import bind_example, examples_of
    from kdsl.runtime.loading import load

    loaded = load(source)
    if len(loaded) > 1:
        names = ", ".join(each.kernel.name for each in loaded)
        raise typer.BadParameter(f"{source} has several kernels ({names}): name one with {source}::KERNEL")
    kernel = loaded[0].kernel
    return bind_example(kernel, examples_of(kernel)[0])


def _parsed(sizes: list[str]) -> dict[str, int]:
    given = {}
    for text in sizes:
        name, _, value = text.partition("=")
        if not name or not value.isdigit():
            raise typer.BadParameter(f"{text} is no size: write M=4", param_hint="--size")
        given[name] = int(value)
    return given
