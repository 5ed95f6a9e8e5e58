from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kdsl.diagnostics import KdslError
from kdsl.interpreter import run
from kdsl.ir.kernel import Buffer, Kernel, bind, walk
from kdsl.ir.text import parse_kernel
from kdsl.passes import find_pass, run_passes
from tests.ir.strategies import Case, kernels
from tests.passes.batched_control import BRANCHES, EMBEDDING, HALVING, LENGTHS
from tests.passes.batched_kernels import (
    FLAT_ADD,
    FLAT_MATMUL,
    FLAT_SOFTMAX,
    GATHER,
    ROWS,
    TRIANGLE,
    ready_made,
)
from tests.passes.checking import assert_same_results

KERNELS = {
    "vector_add": lambda: ready_made("vector_add", 0),
    "softmax": lambda: ready_made("softmax", 0),
    "layernorm": lambda: ready_made("layernorm", 0),
    "matmul": lambda: ready_made("matmul", 1),
    "attention": lambda: ready_made("attention", 1),
    "causal_attention": lambda: ready_made("attention", 0),
    "rows": lambda: parse_kernel(ROWS),
    "gather": lambda: parse_kernel(GATHER),
    "triangle": lambda: parse_kernel(TRIANGLE),
    "flat_add": lambda: parse_kernel(FLAT_ADD),
    "flat_softmax": lambda: parse_kernel(FLAT_SOFTMAX),
    "flat_matmul": lambda: parse_kernel(FLAT_MATMUL),
    "branches": lambda: parse_kernel(BRANCHES),
    "halving": lambda: parse_kernel(HALVING),
    "lengths": lambda: parse_kernel(LENGTHS),
    "embedding": lambda: parse_kernel(EMBEDDING),
}
MERGED = {  # kernel, axis: the tile axis that grows, or None for rows
    ("vector_add", "n_block"): "n",
    ("softmax", "m_block"): "m",
    ("layernorm", "m_block"): "m",
    ("matmul", "m_block"): "m",
    ("matmul", "n_block"): "n",
    ("matmul", "k_block"): "k",
    ("attention", "m_block"): "m",
    ("attention", "b"): None,
    ("attention", "h"): None,
    # A bigger tile would multiply what a row must not see by 0, and 0 * inf is NaN.
    ("causal_attention", "m_block"): None,
    ("causal_attention", "b"): None,
    ("rows", "row"): None,
    ("gather", "m_block"): "m",
    ("gather", "n_block"): None,
    ("triangle", "row"): None,
    ("flat_add", "pid"): "i",
    ("flat_softmax", "pid"): None,
    ("flat_matmul", "pid_m"): "i",
    ("flat_matmul", "pid_n"): "j",
    ("flat_matmul", "step"): "k",
    ("branches", "row"): None,
    ("halving", "row"): None,
    ("lengths", "row"): None,
    ("embedding", "row"): None,
}

# A failing kernel is short enough to read as it is: shrinking it takes minutes.
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)


def small(kernel: Kernel, draw: Any) -> tuple[dict[str, int], dict[str, int], dict[str, Any]]:
    """Sizes, tile sizes, and arguments of small integers, so that sums are exact in any order."""
    names = [size.name for size in kernel.sizes if size.value is None]
    # Where a size multiplies an axis, 0 would make the axis vanish from a bound form, and from the types.
    least = 1 if kernel.name.startswith("flat") else 0
    sizes = {name: draw(st.integers(least, 9)) for name in names}
    if "stride" in sizes:
        sizes["stride"] = sizes["n_columns"] + draw(st.integers(0, 2))
    tiles = {tile.name: draw(st.integers(1, 4)) for tile in kernel.tiles}
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arguments: dict[str, Any] = {}
    for parameter in kernel.parameters:
        if isinstance(parameter, Buffer):
            shape = [int(extent.evaluate({**sizes, **tiles})) for extent in parameter.shape]
            arguments[parameter.name] = rng.integers(-3, 4, shape).astype(parameter.dtype.numpy)
        else:
            arguments[parameter.name] = 1.0
    # What numbers stand for: places in a table, and runs of a tensor.
    if kernel.name == "embedding":
        arguments["number"] = rng.integers(-2, sizes["V"], sizes["M"]).astype(np.int32)
    if kernel.name == "lengths":
        arguments["length"] = rng.integers(-1, sizes["N"] + 1, sizes["M"]).astype(np.int32)
        arguments["start"] = rng.integers(0, sizes["N"] - np.maximum(arguments["length"], 0) + 1).astype(np.int32)
    if kernel.name == "halving":
        arguments["x"] = rng.integers(0, 100, sizes["M"]).astype(np.int32)
    if kernel.name == "attention":  # scores of 0 and below -1e4 make each exp 0 or 1
        factor = arguments["k"].dtype.type(-1e4)
        arguments["q"], arguments["k"] = np.abs(arguments["q"]), factor * np.abs(arguments["k"])
    return sizes, tiles, arguments


@pytest.mark.parametrize(("name", "axis"), MERGED)
@settings(max_examples=8, deadline=None, phases=QUICK, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_same_bits_come_out(name: str, axis: str, data: Any) -> None:
    kernel = KERNELS[name]()
    sizes, tiles, arguments = small(kernel, data.draw)
    factor = data.draw(st.sampled_from([2, 3, 4, 8]))
    before, extents = bind(kernel, sizes, tiles), {axis.name: axis.extent for axis in kernel.axes}
    batched = run_passes(kernel, [f"batch({axis}, {factor})"])
    grown = {axis.name for axis in batched.axes if axis.kind == "tile" and axis.extent != extents.get(axis.name)}
    assert grown == {MERGED[name, axis] or f"{axis}_lane"}
    assert_same_results(before, bind(batched, sizes, tiles), arguments)
    assert_same_results(before, run_passes(before, [f"batch({axis}, {factor})"]), arguments)


@pytest.mark.parametrize(
    ("name", "axis", "reason"),
    [
        ("attention", "n_block", "does not only gather"),
        ("triangle", "column", "does not only gather"),
        ("softmax", "rows", "rows is no program or loop axis"),
    ],
)
def test_what_cannot_be_batched_is_refused(name: str, axis: str, reason: str) -> None:
    with pytest.raises(KdslError) as refusal:
        run_passes(KERNELS[name](), [f"batch({axis}, 4)"])
    assert refusal.value.code == "K0801"
    assert reason in refusal.value.message


HEAD = """
kernel refused(x: in f32[M, N], y: inout f32[M, N], z: inout f32[M], counts: inout i32[M]) {
  size M
  size N
  program row < M
  program column < N
  loop step < N
  axis m < M
  %one: f32 = constant {value = 1.0}
  %unit: i32 = constant {value = 1}
  %row: i32[row] = index {form = row}
"""


@pytest.mark.parametrize(
    ("body", "axis", "reason"),
    [
        ('store z[0] = %one at "k.py":7:1', "row", "not proven that points are independent"),
        ('%y: f32 = load y[0, 0]\n store y[row, column] = %y at "k.py":7:1', "row", "load and store of y"),
        (
            '%old: i32[row, column] = atomic %unit, %row {buffer = counts, combine = add} at "k.py":7:1',
            "row",
            "depends on the order of the programs",
        ),
        ('print %row {message = "row"} at "k.py":7:1', "row", "a print shows one program at a time"),
        (
            "%t: f32 = for step (%t.1: f32[step] = %one) {\n"
            ' %t.2: f32[step] = mul %t.1, %t.1 at "k.py":7:1\n yield %t.2\n}',
            "step",
            "%t.1 does not only gather",
        ),
        (
            'for step () {\n %z: f32[step] = load z[step]\n store z[0] = %z at "k.py":7:1\n yield\n}',
            "step",
            "independent",
        ),
        (
            'for step () {\n atomic %unit, %row {buffer = counts, combine = add} at "k.py":7:1\n yield\n}',
            "step",
            "happens once for each iteration",
        ),
    ],
)
def test_a_refusal_names_the_op(body: str, axis: str, reason: str) -> None:
    with pytest.raises(KdslError) as refusal:
        run_passes(parse_kernel(HEAD + body + "\n}"), [f"batch({axis}, 2)"])
    assert refusal.value.code == "K0801"
    assert reason in refusal.value.message
    assert str(refusal.value.location) == "k.py:7:1"


def test_atomics_without_results_happen_in_every_lane() -> None:
    body = """
      %place: i32 = constant {value = 0}
      atomic %unit, %place {buffer = counts, combine = add}
      atomic %unit, %row {buffer = counts, combine = add}
    }"""
    before = bind(parse_kernel(HEAD + body), {"M": 5, "N": 3})
    arguments = {name: np.zeros((5, 3), np.float32) for name in "xy"}
    arguments |= {"z": np.zeros(5, np.float32), "counts": np.zeros(5, np.int32)}
    for axis in ("row", "column"):
        assert_same_results(before, run_passes(before, [f"batch({axis}, 2)"]), arguments)


def test_lanes_past_the_last_point_are_invalid_and_only_then() -> None:
    kernel = parse_kernel(ROWS)
    for sizes, where in (({"M": 8, "N": 3}, []), ({"M": 9, "N": 3}, ["4*row + row_lane < 9"])):
        batched = run_passes(bind(kernel, sizes), ["batch(row, 4)"])
        assert [str(bound) for bound in batched.axis("row_lane").bounds] == where


def test_a_loop_runs_as_often_as_its_longest_lane_needs() -> None:
    batched = run_passes(parse_kernel(TRIANGLE), ["batch(row, 4)"])
    assert str(batched.axis("column").extent) == "min(3, M - 4*row - 1) + 4*row + 1"
    (store,) = [op for op in walk(batched.body) if op.attributes.get("buffer") == "steps"]
    assert [str(bound) for bound in store.attributes["bounds"]] == ["column < 4*row + row_lane + 1"]


def test_batching_twice_is_batching_by_the_product() -> None:
    kernel = ready_made("matmul", 1)
    twice = run_passes(kernel, ["batch(m_block, 2)", "batch(m_block, 3)"])
    assert str(twice.axis("m").extent) == str(run_passes(kernel, ["batch(m_block, 6)"]).axis("m").extent) == "6*BM"


WIDENED = """
kernel widened(y: inout f32[4, 4, 4]) {
  program p < 4
  loop t < 2
  axis m < 4
  axis n < 4 where n < m + 1
  %two: f32 = constant {value = 2.0}
  %wide: f32[m, n] = for t (%a: f32[t, m, n] = %two) {
    yield %two
  }
  %powers: f32[m, n] = scan %wide {axis = m, combine = mul}
  store y[p, m, n] = %powers
}
"""


def test_lanes_that_are_invalid_by_what_a_value_is_declared_with_stay_so() -> None:
    kernel = bind(parse_kernel(WIDENED), {})
    batched = run_passes(kernel, ["batch(p, 2)"])
    (result,) = run(batched, {"y": np.zeros((4, 4, 4), np.float32)}).values()
    rows, columns = np.ogrid[:4, :4]  # a scan down a column starts at its first valid lane, m = n
    expected = np.where(columns <= rows, 2.0 ** (rows - columns + 1), 0)
    np.testing.assert_array_equal(result, np.broadcast_to(expected, result.shape))


@pytest.mark.parametrize("name", ["lengths", "rows", "triangle"])
@settings(max_examples=5, deadline=None, phases=QUICK)
@given(data=st.data())
def test_rows_are_batched_twice(name: str, data: Any) -> None:
    kernel = KERNELS[name]()
    sizes, tiles, arguments = small(kernel, data.draw)
    twice = run_passes(kernel, ["batch(row, 2)", "batch(row, 3)"])
    assert_same_results(bind(kernel, sizes, tiles), bind(twice, sizes, tiles), arguments)


def test_masked_boxes_are_computed_places_which_are_not_proven_apart_again() -> None:
    with pytest.raises(KdslError, match="places are computed"):
        run_passes(KERNELS["halving"](), ["batch(row, 2)", "batch(row, 2)"])


def test_a_name_that_is_no_pass_is_a_key_error() -> None:
    for name in ("batch", "batch()", "batch(m)", "batch(m, x)"):
        with pytest.raises(KeyError):
            find_pass(name)


AXES, FACTORS = st.sampled_from(["m_block", "n_block", "k_step"]), st.sampled_from([2, 3, 5])


@settings(max_examples=40, deadline=None, phases=QUICK, suppress_health_check=[HealthCheck.too_slow])
@given(case=kernels(), axis=AXES, factor=FACTORS)
def test_random_kernels_keep_their_results_or_are_refused(case: Case, axis: str, factor: int) -> None:
    check_random(case, axis, factor)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, phases=QUICK, suppress_health_check=[HealthCheck.too_slow])
@given(case=kernels(), axis=AXES, factor=FACTORS)
def test_many_random_kernels_keep_their_results_or_are_refused(case: Case, axis: str, factor: int) -> None:
    check_random(case, axis, factor)


def check_random(case: Case, axis: str, factor: int) -> None:
    before = bind(case.kernel, case.sizes)
    try:
        after = run_passes(case.kernel, [f"batch({axis}, {factor})"])
    except KdslError as refusal:
        assert refusal.code == "K0801"
        return
    assert_same_results(before, bind(after, case.sizes), case.arguments)
