"""Random small kernels that load and store at affine places and others, and what they touch, lane by lane."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import F32
from kdsl.ir.expr import Expr, cdiv, symbol, wrap
from kdsl.ir.kernel import Axis, Bound, Buffer, Kernel, Op, Region, Size, TileParameter, bind, walk
from kdsl.ir.type_rules import axis_bounds
from kdsl.ir.verify import verify

P, Q, M, N, B, L = (symbol(name) for name in ("p", "q", "M", "N", "B", "l"))
I, J = symbol("i"), symbol("j")


@dataclass(frozen=True)
class Case:
    kernel: Kernel
    sizes: dict[str, int]
    tiles: dict[str, int]

    @property
    def bound(self) -> Kernel:
        return bind(self.kernel, self.sizes, self.tiles)


def forms(draw: Any, loop: bool) -> Expr:
    """Tiles, points, strides, halos, diagonals, reversed and divided axes, rows of a flat tensor."""
    counter = [L] if loop else []
    families = [
        B * P + I,
        N * P + J,
        P,
        N * (B * P + I) + J,
        2 * (B * P + I),
        B * P + I + J,
        M - 1 - B * P - I,
        N * P + B * Q + I,
        Q + P,
        P // 2,
        2 * (P // 2) + P % 2,
        (B * P + I) // 2,
        3 * Q + P % 3,
        I,
        B * Q + I,
        *(each for c in counter for each in (B * c + I, N * P + c, B * P + I + c, N * c + J)),
    ]
    return draw(st.sampled_from(families)) * draw(st.sampled_from([1, 1, 1, 2, -1])) + draw(
        st.sampled_from([0, 0, 0, 1, -1])
    )


@st.composite
def cases(draw: Any, stores_only: bool = False) -> Case:
    """A verified kernel with one to three accesses to the buffer y, some of them in a loop."""
    flat = draw(st.booleans())
    shape = (draw(st.sampled_from([M, N, M * N])),) if flat else (M, N)
    axes = [
        Axis("p", "program", draw(st.sampled_from([cdiv(M, B), M, wrap(3)]))),
        Axis("q", "program", draw(st.sampled_from([wrap(1), cdiv(N, B), wrap(2)]))),
        Axis("l", "loop", draw(st.sampled_from([wrap(2), N, P + 1]))),
        Axis("i", "tile", B, draw(st.sampled_from([(), (Bound(B * P + I, None, M),)]))),
        Axis("j", "tile", draw(st.sampled_from([N, B, N + 2])), draw(st.sampled_from([(), (Bound(J, None, N),)]))),
    ]
    sizes, tiles = (Size("M"), Size("N")), (TileParameter("B", 2),)
    builder = Builder(Kernel("small", (Buffer("y", F32, shape, "inout"),), sizes, tiles, (), tuple(axes), Region()))
    zero = builder.emit("constant", attributes={"value": 0.0}, dtype=F32)

    def access(loop: bool) -> None:
        index = tuple(forms(draw, loop) for _ in shape)
        inside = tuple(Bound(form, wrap(0), size) for form, size in zip(index, shape, strict=True))
        attributes = {"buffer": "y", "index": index, "bounds": inside}
        if stores_only or draw(st.booleans()):
            builder.effect("store", (zero,), attributes)
        else:
            builder.emit("load", attributes=attributes)

    for _ in range(draw(st.integers(1, 2))):
        access(loop=False)
    if draw(st.booleans()):
        with builder.region() as ops:
            access(loop=True)
            ops.append(Op("yield"))
        builder.ops.append(Op("for", (), (), {"axis": "l"}, (Region((), tuple(ops)),)))
    values = {name: draw(st.integers(0, 4)) for name in ("M", "N")}
    return Case(verify(builder.finish()), values, {"B": draw(st.integers(1, 3))})


def lanes(kernel: Kernel, op: Op, loops: tuple[str, ...]) -> Iterator[tuple[dict[str, int], tuple[int, ...]]]:
    """Each lane of a load or store that touches memory: its place on every axis, and the element it touches."""
    forms = [*op.attributes["index"], *(bound.form for bound in op.attributes.get("bounds", ()))]
    named = {name for form in forms for name in form.symbols}
    tiles = [name for name in kernel.with_validity(kernel.order(named)) if kernel.axis(name).kind == "tile"]
    axes = [*(axis.name for axis in kernel.program_axes), *loops, *tiles]
    most = [range(_greatest(kernel, name)) for name in axes]
    for place in itertools.product(*most):
        point = dict(zip(axes, place, strict=True))
        bounds = (*op.attributes.get("bounds", ()), *axis_bounds(kernel, tiles))
        if all(point[name] < kernel.axis(name).extent.evaluate(point) for name in axes) and all(
            (bound.lower is None or bound.lower.evaluate(point) <= bound.form.evaluate(point))
            and (bound.upper is None or bound.form.evaluate(point) < bound.upper.evaluate(point))
            for bound in bounds
        ):
            yield point, tuple(int(form.evaluate(point)) for form in op.attributes["index"])


def _greatest(kernel: Kernel, name: str) -> int:
    extent = kernel.axis(name).extent
    return extent.constant if extent.constant is not None else 4  # p + 1


def accesses(kernel: Kernel) -> Iterator[tuple[Op, tuple[str, ...]]]:
    """Loads and stores, with the loops around them."""
    inside = {id(inner) for op in walk(kernel.body) for region in op.regions for inner in walk(region)}
    for op in walk(kernel.body):
        if op.name in ("load", "store"):
            yield op, ("l",) if id(op) in inside else ()


__all__ = ["Case", "accesses", "cases", "lanes"]
