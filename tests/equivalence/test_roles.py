"""Which range an integer input is drawn from, told from what the kernel does with it."""

from __future__ import annotations

import numpy as np
import pytest

import kdsl
from kdsl import InOut, Out, Scalar, Tensor, Tile, f32, i32
from kdsl.diagnostics import KdslError
from kdsl.equivalence.inputs import draw_for
from kdsl.equivalence.roles import Role, find_roles
from kdsl.interpreter import run
from kdsl.ir.kernel import bind
from kdsl.runtime.examples import default_example
from tests.frontends.python.samples import places, ragged


class N(kdsl.Dim): ...


class V(kdsl.Dim): ...


class S(kdsl.Dim): ...


@kdsl.kernel
@kdsl.example(N=40, V=9)
def shifted(x: Tensor[V, f32], i: Tensor[N, i32], out: Out[N, f32], *, B: Tile = 8) -> None:
    for n in kdsl.grid(N.tiles(B)):
        out[n] = x[2 * i[n] - 3]


@kdsl.kernel
@kdsl.example(N=40, V=9)
def clamped(x: Tensor[V, f32], i: Tensor[N, i32], out: Out[N, f32], *, B: Tile = 8) -> None:
    for n in kdsl.grid(N.tiles(B)):
        out[n] = x[kdsl.maximum(kdsl.minimum(i[n], V - 1), 0)]


@kdsl.kernel
@kdsl.example(N=40, V=9)
def wrapped(x: Tensor[V, f32], i: Tensor[N, i32], out: Out[N, f32], *, B: Tile = 8) -> None:
    for n in kdsl.grid(N.tiles(B)):
        place = i[n]
        out[n] = x[kdsl.where(place < 0, place + V, place)]


@kdsl.kernel
@kdsl.example(N=40, V=9)
def added(x: Tensor[V, f32], i: Tensor[N, i32], j: Tensor[N, i32], out: Out[N, f32], *, B: Tile = 8) -> None:
    for n in kdsl.grid(N.tiles(B)):
        out[n] = x[i[n] + j[n]]


@kdsl.kernel
@kdsl.example(N=40, V=9)
def masked_scatter(x: Tensor[N, f32], i: Tensor[N, i32], y: InOut[V, f32], *, B: Tile = 8) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y.atomic_add(i[n], value=x[n], mask=i[n] >= 0)


@kdsl.kernel
@kdsl.example(N=9, V=12)
def permuted(x: Tensor[N, f32], i: Tensor[N, i32], y: InOut[V, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        y.store(i[n], value=x[n])


@kdsl.kernel
@kdsl.example(N=9, V=5, at=7)
def picked(x: Tensor[V, f32], out: Out[N, f32], at: Scalar[i32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        out[n] = x[at]


@kdsl.kernel
@kdsl.example(N=9, V=5)
def of_floats(x: Tensor[V, f32], i: Tensor[N, f32], out: Out[N, f32], *, B: Tile = 4) -> None:
    for n in kdsl.grid(N.tiles(B)):
        out[n] = x[i[n].to(i32)]


def roles_of(kernel: kdsl.Kernel, **sizes: int) -> dict[str, Role]:
    example = default_example(kernel)
    ends = {name: (value, value) for name, value in example.scalars.items() if isinstance(value, int)}
    return find_roles(bind(example.kernel, {**example.sizes, **sizes}, example.tiles), ends)


@pytest.mark.parametrize(
    ("kernel", "low", "high"),
    [
        (shifted, 2, 5),
        (wrapped, -9, 8),
        (masked_scatter, -2, 8),
        (places.embedding, 0, 6),
        (places.cross_entropy, 0, 6),
    ],
)
def test_the_range_takes_arithmetic_and_guards_into_account(kernel: kdsl.Kernel, low: int, high: int) -> None:
    (role,) = roles_of(kernel).values()
    assert (role.low, role.high, role.pattern) == (low, high, "any")


def test_what_the_kernel_clamps_may_lie_far_outside() -> None:
    role = roles_of(clamped)["i"]
    assert role.low < -9
    assert role.high > 9


def test_two_terms_of_an_index_share_the_room() -> None:
    roles = roles_of(added)
    assert roles["i"].high + roles["j"].high == 8
    assert min(roles["i"].high, roles["j"].high) >= 2


def test_pages_and_lengths_stay_inside_what_they_count() -> None:
    assert roles_of(ragged.paged_attention) == {"lengths": Role(0, 12), "table": Role(0, 6)}
    assert roles_of(ragged.paged_attention, J=5, PAGE=3) == {"lengths": Role(0, 15), "table": Role(0, 6)}


@pytest.mark.parametrize("kernel", [ragged.varlen_attention, ragged.grouped_matmul])
def test_neighbours_that_limit_a_loop_are_offsets_that_cover_the_dimension(kernel: kdsl.Kernel) -> None:
    ((name, role),) = roles_of(kernel).items()
    assert (role.low, role.high, role.pattern) == (0, 11, "offsets")
    empty = 0
    for seed in range(20):
        drawn = draw_for(default_example(kernel), {}, "exact", (seed,))[name]
        assert drawn[0] == 0
        assert drawn[-1] == 11
        assert (np.diff(drawn) >= 0).all()
        empty += int((np.diff(drawn) == 0).any())
    assert 0 < empty < 20


def test_places_that_are_stored_to_differ_and_too_many_of_them_are_refused() -> None:
    drawn = draw_for(default_example(permuted), {}, "generic", (0,))["i"]
    assert len(set(drawn.tolist())) == 9
    assert set(drawn.tolist()) <= set(range(12))
    with pytest.raises(KdslError) as failure:
        roles_of(permuted, V=8)
    assert failure.value.code == "K0410"
    assert "fewer places" in failure.value.message


def test_a_scalar_that_does_not_suit_the_sizes_is_drawn() -> None:
    assert roles_of(picked) == {"at": Role(0, 4)}
    assert roles_of(picked, V=8) == {}


@pytest.mark.parametrize(("kernel", "name"), [(of_floats, "i"), (places.pack, "taken")])
def test_what_cannot_be_told_is_refused_by_name_and_line(kernel: kdsl.Kernel, name: str) -> None:
    with pytest.raises(KdslError) as failure:
        roles_of(kernel)
    assert failure.value.code == "K0410"
    assert failure.value.message.startswith(f"cannot tell what {name} may hold")
    assert failure.value.location is not None


def test_every_drawn_table_is_in_range_and_has_both_repeats_and_shuffles() -> None:
    example = default_example(ragged.paged_attention)
    drawn = [draw_for(example, {}, "generic", (seed,)) for seed in range(30)]
    assert all(((each["table"] >= 0) & (each["table"] < 7)).all() for each in drawn)
    shuffles = sum(len(set(each["table"].ravel().tolist())) == 6 for each in drawn)
    assert 5 < shuffles < 25
    lengths = {int(length) for each in drawn for length in each["lengths"]}
    assert {0, 12} <= lengths
    for arguments in drawn[:3]:
        run(bind(example.kernel, example.sizes, example.tiles), {**arguments, "scale": 0.5})


def declared(inputs: dict[str, object]) -> kdsl.Kernel:
    return kdsl.example(N=9, V=5, inputs=inputs)(kdsl.kernel(of_floats.function))


def test_an_example_may_say_how_to_draw() -> None:
    for draw in (3, lambda generator, shape, sizes: generator.integers(0, sizes["V"], shape)):
        drawn = draw_for(default_example(declared({"i": draw})), {}, "generic", (0,))["i"]
        assert drawn.dtype == np.float32
        assert set(drawn) <= ({3.0} if draw == 3 else {0.0, 1.0, 2.0, 3.0, 4.0})


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"nothing": 0}, "it is no input"),
        ({"out": 0}, "it is no input"),
        ({"i": lambda generator, shape, sizes: np.zeros(3)}, "shape (3,), expected (9,)"),
        ({"i": lambda generator, shape, sizes: sizes["Q"]}, "Q"),
    ],
)
def test_declared_inputs_that_do_not_fit_are_refused(inputs: dict[str, object], problem: str) -> None:
    with pytest.raises(KdslError) as failure:
        draw_for(default_example(declared(inputs)), {}, "generic", (0,))
    assert failure.value.code == "K0411"
    assert problem in failure.value.message
