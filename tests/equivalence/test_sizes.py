from __future__ import annotations

import pytest

import kdsl
from kdsl import Out, Scalar, Tensor, Tile, f32, i32
from kdsl.equivalence.sizes import LARGEST_TENSOR, POOLS, draw_sizes, fits
from kdsl.equivalence.trials import draw_trials
from kdsl.ir.dtypes import F32
from kdsl.ir.kernel import Kernel
from kdsl.kernels.attention import attention
from kdsl.kernels.matmul import matmul
from kdsl.kernels.softmax import softmax
from kdsl.runtime.examples import bound_examples


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class S(kdsl.Dim): ...


@kdsl.kernel
@kdsl.example(M=8, N=16)
def constrained(x: Tensor[M, f32], y: Tensor[N, f32], out: Out[M, f32], *, BM: Tile = 8) -> None:
    kdsl.require(N == 2 * M)
    for m in kdsl.grid(M.tiles(BM)):
        out[m] = x[m]


@kdsl.kernel
@kdsl.example(M=8, N=8)
def equal_sizes(x: Tensor[M, f32], y: Tensor[N, f32], out: Out[M, f32], *, BM: Tile = 8) -> None:
    kdsl.require(N == M)
    for m in kdsl.grid(M.tiles(BM)):
        out[m] = x[m]


def drawn(kernel: kdsl.Kernel, count: int) -> tuple[list[Kernel], list[dict[str, int]]]:
    bound = bound_examples(kernel)
    kernels = [example.kernel for example in bound]
    return kernels, draw_sizes(kernels, bound[0].sizes, 0, count)


@pytest.mark.parametrize(("kernel", "names"), [(softmax, "MN"), (matmul, "MNK"), (attention, "LSD")])
def test_every_size_meets_every_value_of_the_pool(kernel: kdsl.Kernel, names: str) -> None:
    _, sizes = drawn(kernel, 28)
    for name in names:
        assert {chosen[name] for chosen in sizes} == set(POOLS[0])


def test_five_draws_already_meet_single_elements_ragged_tiles_and_large_sizes() -> None:
    _, sizes = drawn(matmul, 5)
    assert {1, 7, 33, 257} <= {chosen["M"] for chosen in sizes}
    assert {1, 100, 1023} <= {chosen["N"] for chosen in sizes}
    assert {1, 31, 512} <= {chosen["K"] for chosen in sizes}


def test_nothing_that_is_drawn_exceeds_the_budget() -> None:
    kernels, sizes = drawn(attention, 28)
    assert all(fits(kernel, chosen) for kernel in kernels for chosen in sizes)
    assert all(chosen["B"] * chosen["H"] * chosen["S"] * chosen["D"] <= LARGEST_TENSOR for chosen in sizes)


def test_constraints_hold_by_trying_and_by_the_example_where_nothing_is_found() -> None:
    assert len({chosen["M"] for chosen in drawn(equal_sizes, 10)[1]}) > 3
    assert all(chosen["M"] == chosen["N"] for chosen in drawn(equal_sizes, 10)[1])
    assert drawn(constrained, 3)[1] == [{"M": 8, "N": 16}] * 3


def test_the_authors_examples_come_first_then_both_float_types_with_each_choice_of_constants() -> None:
    trials = draw_trials(attention, 8, seed=0, authors=2)
    assert [trial.sizes["L"] for trial in trials[:2]] == [200, 33]
    met = {(trial.bindings["causal"], trial.kernel.buffer("q").dtype == F32) for trial in trials[2:]}
    assert met == {(True, True), (True, False), (False, True), (False, False)}


def test_equal_seeds_give_equal_trials() -> None:
    first, again = (draw_trials(matmul, 20, seed=3, authors=1) for _ in range(2))
    assert [trial.sizes for trial in first] == [trial.sizes for trial in again]


@kdsl.kernel
def limited(x: Tensor[N, f32], stops: Tensor[M, i32], y: Out[M, f32], *, BN: Tile = 8) -> None:
    for m in kdsl.grid(M):
        total = kdsl.zeros((), f32)
        for n in N.tiles(BN, stop=stops[m]):
            total += kdsl.sum(x[n], over=n)
        y[m] = total


def test_a_loop_that_data_limits_counts_as_long_as_it_can_be() -> None:
    kernel = limited.elaborate()
    assert fits(kernel, {"M": 2, "N": 64}) and not fits(kernel, {"M": 2, "N": 2**14})


@kdsl.kernel
def between_limits(x: Tensor[N, f32], limits: Tensor[M, i32], y: Out[N, f32], *, BN: Tile = 8) -> None:
    for m in kdsl.grid(M):
        for n in N.tiles(BN, start=limits[m], stop=limits[m]):
            y[n] = x[n]


def test_a_loop_between_two_limits_is_as_long_as_their_greatest_distance() -> None:
    kernel = between_limits.elaborate()
    assert fits(kernel, {"M": 2, "N": 64})
    assert not fits(kernel, {"M": 2, "N": 2**14})


class T(kdsl.DType): ...


class U(kdsl.DType): ...


@kdsl.kernel
@kdsl.example(N=40, T=kdsl.f16, U=kdsl.f16, scale=0.5)
def scaled(x: Tensor[N, T], y: Tensor[N, U], out: Out[N, f32], scale: Scalar[T], *, BN: Tile = 8) -> None:
    for n in kdsl.grid(N.tiles(BN)):
        out[n] = x[n].to(f32) * scale + y[n]


def test_the_dtype_of_a_scalar_is_the_authors() -> None:
    trials = draw_trials(scaled, 6, seed=0, authors=1)
    assert {trial.bindings["T"] for trial in trials} == {kdsl.f16}
    assert {trial.bindings["U"] for trial in trials[1:]} == {kdsl.f32, kdsl.bf16}
