"""A call gives the same whatever the strides of the arrays that it is given, on the oracle and on every target."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kdsl
from kdsl import InOut, Out, Tensor, Tile, f32, i32
from kdsl.equivalence.inputs import draw_for
from kdsl.runtime.examples import bound_examples, default_example
from kdsl.runtime.target import find_target
from kdsl.testing import LAYOUTS, arguments, arrays, examples, laid_out
from kdsl.testing.layouts import Layout
from tests.equivalence.examples import SMALL


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


@kdsl.kernel
@kdsl.example(M=5, N=12)
def counted(x: Tensor[M, N, f32], i: Tensor[M, i32], y: InOut[N, M, f32], total: Out[M, f32], *, B: Tile = 4) -> None:
    """An atomic, a store and a load of one tensor, and a row's sum."""
    for m in kdsl.grid(M.tiles(B)):
        y.atomic_add(i[m], m, value=kdsl.sum(x[m, :], over=N))
        total[m] = kdsl.sum(kdsl.exp(x[m, :]), over=N)


def called(kernel: kdsl.Kernel, values: dict[str, Any], example: Any) -> list[np.ndarray[Any, Any]]:
    names = {name: value for name, value in example.bindings.items() if not isinstance(value, type)}
    results = kernel(**values, **names)
    return list(results) if isinstance(results, tuple) else [results]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_keeps_the_elements_and_has_the_strides_it_is_named_for(layout: Layout) -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    view = laid_out(array, layout)
    strides = {
        "contiguous": (24, 4),
        "transposed": (4, 16),
        "sliced": (104, 8),
        "reversed": (-24, -4),
        "repeated": (24, 0),
    }
    assert view.strides == strides[layout]
    assert (view == (array[:, :1] if layout == "repeated" else array)).all()
    assert laid_out(np.float32(3) * np.ones(()), layout).shape == ()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [*SMALL, "counted"])
def test_a_call_gives_the_same_bits_for_every_layout(name: str, layout: Layout) -> None:
    kernel = {**SMALL, "counted": counted}[name]
    for example in bound_examples(kernel):
        values = draw_for(example, {}, "generic", (0,))
        views = {key: laid_out(value, layout) if np.ndim(value) else value for key, value in values.items()}
        if layout == "repeated":
            views |= {key: value for key, value in values.items() if np.ndim(value) and value.dtype == np.int32}
        plain = {key: np.array(value, order="C") if np.ndim(value) else value for key, value in views.items()}
        for got, expected in zip(called(kernel, views, example), called(kernel, plain, example), strict=True):
            assert got.tobytes() == expected.tobytes()


TOOL_CHAINS = {"cpu": "jax", "tpu": "jax", "gpu": "triton"}


@pytest.mark.parametrize("target", TOOL_CHAINS)
def test_a_target_gives_the_same_bits_for_every_layout(target: str) -> None:
    if importlib.util.find_spec(TOOL_CHAINS[target]) is None:
        pytest.skip(f"{TOOL_CHAINS[target]} is not installed")
    found = find_target(target)
    example = default_example(SMALL["softmax"])
    source = found.emit(example.kernel, example.tiles, example.sizes)
    values = draw_for(example, {}, "generic", (0,))
    for layout in LAYOUTS:
        view = laid_out(values["x"], layout)
        got = found.run(source, example.sizes, {"x": view})["y"]
        expected = found.run(source, example.sizes, {"x": np.array(view, order="C")})["y"]
        assert got.tobytes() == expected.tobytes(), layout


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_examples_and_arguments_are_ones_that_the_kernel_takes(data: st.DataObject) -> None:
    example = data.draw(examples(counted, sizes=6))
    assert set(example.sizes) == {"M", "N"}
    assert set(example.tiles) == {"B"}
    values = data.draw(arguments(example))
    y, total = counted(**values, **example.tiles)
    assert y.shape == (example.sizes["N"], example.sizes["M"])
    assert total.shape == (example.sizes["M"],)


@settings(max_examples=25, deadline=None)
@given(array=arrays(kdsl.bf16, (3, 4)))
def test_arrays_have_the_dtype_and_shape_that_is_asked_for(array: np.ndarray[Any, Any]) -> None:
    assert (array.dtype.name, array.shape) == ("bfloat16", (3, 4))
