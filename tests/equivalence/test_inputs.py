from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import kdsl
from kdsl import Out, Tensor, Tile, f32, i32, u8
from kdsl.equivalence.inputs import draw_inputs, without_extremes
from kdsl.equivalence.logits import logits
from kdsl.interpreter import run
from kdsl.ir.kernel import Kernel, bind
from kdsl.kernels.softmax import softmax
from kdsl.runtime.examples import bound_examples
from tests.equivalence.examples import SMALL, each_dtype, scaled, vector_add


class N(kdsl.Dim): ...


@kdsl.kernel
@kdsl.example(N=500)
def integers(x: Tensor[N, i32], y: Tensor[N, u8], out: Out[N, i32], *, BN: Tile = 64) -> None:
    for n in kdsl.grid(N.tiles(BN)):
        out[n] = x[n] + y[n].to(i32)


@kdsl.kernel
@kdsl.example(N=500)
def gated(x: Tensor[N, f32], gate: Tensor[N, f32], out: Out[N, f32], *, BN: Tile = 64) -> None:
    for n in kdsl.grid(N.tiles(BN)):
        out[n] = x[n] * kdsl.exp(-gate[n])


@kdsl.kernel
@kdsl.example(N=2000)
def widened(x: Tensor[N, kdsl.f8e4m3], out: Out[N, f32], *, BN: Tile = 64) -> None:
    for n in kdsl.grid(N.tiles(BN)):
        out[n] = x[n].to(f32)


def bound(kernel: kdsl.Kernel) -> Kernel:
    example = bound_examples(kernel)[0]
    return bind(example.kernel, example.sizes, example.tiles)


def test_equal_seeds_give_equal_inputs_and_others_do_not() -> None:
    kernel = bound(SMALL["vector_add"])
    first, again, other = (draw_inputs(kernel, "generic", (seed,))["x"] for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_exact_inputs_are_small_integers_of_every_size_and_never_zero() -> None:
    arguments = draw_inputs(bound(integers), "exact", (0,))
    assert set(arguments["x"]) == {-4, -3, -2, -1, 1, 2, 3, 4}
    assert set(arguments["y"]) == {1, 2, 3, 4}


def test_outputs_are_not_drawn_and_the_rest_has_the_kernels_dtypes_and_shapes() -> None:
    kernel = bound(SMALL["matmul"])
    arguments = draw_inputs(kernel, "generic", (0,))
    assert {name: (array.shape, array.dtype) for name, array in arguments.items()} == {
        "a": ((20, 70), np.float32),
        "b": ((70, 33), np.float32),
        "bias": ((33,), np.float32),
    }


def test_a_scalar_is_the_examples_or_the_nearest_power_of_two_where_it_must_be_exact() -> None:
    kernel = bound(scaled)
    assert draw_inputs(kernel, "generic", (0,), {"scale": 0.3})["scale"] == 0.3
    assert draw_inputs(kernel, "exact", (0,), {"scale": 0.3})["scale"] == 0.25
    assert draw_inputs(kernel, "exact", (0,), {"scale": -0.3})["scale"] == -0.25
    assert isinstance(draw_inputs(kernel, "generic", (0,))["scale"], float)


def test_only_what_an_exponential_sees_is_a_logit() -> None:
    assert set(logits(bound(SMALL["attention"]))) == {"q", "k"}
    assert set(logits(bound(SMALL["softmax"]))) == {"x"}
    assert set(logits(bound(gated))) == {"gate"}
    assert logits(bound(SMALL["matmul"])) == {}


def test_special_inputs_hold_every_special_number_among_ordinary_ones() -> None:
    array = draw_inputs(bound(each_dtype(vector_add, N=5000)), "special", (0,))["x"]
    limits = np.finfo(np.float32)
    assert np.isnan(array).any()
    for number in (np.inf, limits.max, limits.smallest_normal, limits.smallest_subnormal):
        assert (array == number).any()
        assert (array == -number).any()
    zeros = array[array == 0]
    assert np.signbit(zeros).any()
    assert not np.signbit(zeros).all()
    assert 0.93 < np.mean(np.isfinite(array) & (abs(array) > 1e-30) & (abs(array) < 10)) < 0.99
    tamed = without_extremes({"x": array})["x"]
    assert tamed.dtype == np.float32
    assert np.isnan(tamed).sum() == np.isnan(array).sum()
    assert abs(tamed[np.isfinite(tamed)]).max() < 10
    assert np.nanmin(abs(tamed[tamed != 0])) == limits.smallest_normal


def test_a_dtype_without_infinity_has_what_its_casts_give() -> None:
    array = draw_inputs(bound(widened), "special", (0,))["x"]
    assert array.dtype == ml_dtypes.float8_e4m3fn
    assert np.isnan(array.astype(np.float32)).any()


def test_shifted_inputs_lie_far_from_zero_row_by_row() -> None:
    array = draw_inputs(bound(each_dtype(softmax, M=400, N=9)), "shifted", (0,))["x"].astype(np.float64)
    assert np.ptp(array, axis=1).max() < 10
    assert set(np.round(array.mean(axis=1), -1).astype(int)) == {-100000, -10000, -100, -30, 0, 30, 10000}


def test_cancelling_inputs_sum_to_little_beside_their_size() -> None:
    array = draw_inputs(bound(each_dtype(vector_add, N=5000)), "cancelling", (0,))["x"].astype(np.float64)
    pairs = abs(array[0::2] + array[1::2])
    assert (pairs == 0).any()
    assert (pairs > 0).any()
    assert pairs.sum() < 0.02 * abs(array).sum()
    assert abs(array).max() > 20


@pytest.mark.parametrize("name", ["softmax", "attention"])
def test_exact_logits_make_a_softmax_count_many_equal_lanes(name: str) -> None:
    kernel = bound(SMALL[name])
    arguments = draw_inputs(kernel, "exact", (0,), {"scale": 0.25})
    (array,) = run(kernel, arguments).values()
    if name == "softmax":
        counts = np.round(1 / array.max(axis=1))
        assert (counts > 15).all()
        assert set(np.unique(array)) == {0, *(np.float32(1) / counts.astype(np.float32))}
    else:
        # The last query sees all keys: its weights are 1 / count, and the values are integers.
        assert len(np.unique(array[0, 0, -1])) > 5
