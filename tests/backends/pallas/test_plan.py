"""The plan of the grid form, as data: no jax needed."""

from __future__ import annotations

import pytest

from kdsl.backends.pallas.legalize import legalize
from kdsl.backends.pallas.plan import Plan, make_plan
from kdsl.backends.pallas.tiles import MIB, choose_tiles
from kdsl.diagnostics import KdslError
from tests.backends.pallas import kernels
from tests.backends.pallas.kernels import kernel


def plan_of(text: str, dtype: str = "f32", **replaced: str) -> Plan:
    return make_plan(legalize(kernel(text, dtype, **replaced)))


def blocks(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    """Block size and number along each dimension, by operand."""
    return {
        site.name: [(str(dimension.size), str(dimension.index)) for dimension in site.dimensions]
        for site in plan.operands
    }


def test_a_loop_becomes_the_innermost_ordered_axis_with_its_carried_values_in_scratch() -> None:
    plan = plan_of(kernels.MATMUL)
    assert [(c.name, str(c.extent), c.parallel) for c in plan.grid] == [
        ("m_block", "cdiv(M, BM)", True),
        ("n_block", "cdiv(N, BN)", True),
        ("k_block", "cdiv(K, BK)", False),
    ]
    assert [(s.name, [str(size) for size in s.shape], s.dtype.name) for s in plan.scratch] == [
        ("acc", ["BM", "BN"], "f32")
    ]


def test_each_tensor_has_one_block_a_step_and_a_row_vector_is_viewed_in_two_dimensions() -> None:
    assert blocks(plan_of(kernels.MATMUL)) == {
        "a": [("BM", "m_block"), ("BK", "k_block")],
        "b": [("BK", "k_block"), ("BN", "n_block")],
        "bias": [("1", "0"), ("BN", "n_block")],
        "c": [("BM", "m_block"), ("BN", "n_block")],
    }


def test_single_points_are_dropped_dimensions_and_whole_axes_are_one_block() -> None:
    plan = plan_of(kernels.ATTENTION, **kernels.FULL)
    assert blocks(plan)["k"] == [("None", "b"), ("None", "h"), ("BS", "n_block"), ("D", "0")]
    assert blocks(plan)["out"] == [("None", "b"), ("None", "h"), ("BL", "l_block"), ("D", "0")]


def test_a_single_row_gets_a_dimension_of_one_below_it() -> None:
    plan = plan_of(kernels.ROW_SUM)
    assert blocks(plan) == {
        "x": [("None", "m"), ("1", "0"), ("N", "0")],
        "y": [("None", "m"), ("1", "0"), ("N", "0")],
        "s": [("None", "m"), ("1", "0"), ("1", "0")],
    }


def test_elementwise_kernels_on_vectors_stay_one_dimensional() -> None:
    plan = plan_of(kernels.VECTOR_ADD)
    assert plan.rank == 1
    assert blocks(plan)["x"] == [("BN", "n_block")]


def test_a_trip_count_that_varies_is_bounded_by_what_does_not() -> None:
    plan = plan_of(kernels.ATTENTION, **kernels.CAUSAL)
    assert str(plan.grid[-1].extent) == "cdiv(min(L, S), BS)"
    assert str(plan.trips) == "cdiv(min(BL*l_block + BL, L, S), BS)"


def test_reduced_axes_stay_and_carried_values_have_the_layout_of_what_is_yielded() -> None:
    plan = plan_of(kernels.ATTENTION, **kernels.FULL)
    assert plan.layouts["row_max"] == ("l", None)
    assert plan.layouts["s"] == ("l", "n")
    causal = plan_of(kernels.ATTENTION, **kernels.CAUSAL)
    assert causal.layouts["seen"] is None  # masks are written where they are used


def test_an_in_out_tensor_starts_as_its_old_block_and_keeps_the_lanes_that_are_not_stored() -> None:
    plan = plan_of(kernels.AXPY)
    assert plan.aliases == {"y": "y"}
    assert [str(bound) for bound in plan.masked["y"]] == ["BN*n_block + n < S"]


# -- tiles ---------------------------------------------------------------------------------------------------------


def test_tiles_are_rounded_up_to_what_their_places_need_and_it_is_said() -> None:
    choice = choose_tiles(plan_of(kernels.MATMUL), {"BM": 20}, {"M": 1024, "N": 1000, "K": 512})
    assert choice.sizes == {"BM": 24, "BN": 128, "BK": 128}
    assert choice.notes == (
        "BM 20 -> 24: the second-minor dimension of a block is a multiple of 8",
        "BK 64 -> 128: the minor dimension of a block is a multiple of 128",
    )
    assert choice.vmem_limit is None


def test_one_dimensional_blocks_are_multiples_of_1024() -> None:
    assert choose_tiles(plan_of(kernels.VECTOR_ADD), {"BN": 1500}, {"N": 9000}).sizes == {"BN": 2048}


def test_a_row_statistic_makes_the_rows_lanes_of_its_block() -> None:
    assert choose_tiles(plan_of(kernels.STATISTICS), {}, {"M": 500, "N": 100}).sizes == {"BM": 128}


def test_a_larger_vmem_limit_is_asked_for_where_the_default_is_too_small() -> None:
    choice = choose_tiles(plan_of(kernels.SOFTMAX), {}, {"M": 1024, "N": 32768})
    assert choice.sizes == {"BM": 32}
    assert choice.vmem_bytes == 6 * 32 * 32768 * 4  # two buffers each of x and y, two values in between
    assert choice.vmem_limit == 30


def test_tiles_shrink_until_they_fit_vmem_and_it_is_said() -> None:
    choice = choose_tiles(plan_of(kernels.SOFTMAX), {}, {"M": 1024, "N": 131072})
    assert choice.sizes == {"BM": 16}
    assert choice.notes == ("BM 32 -> 16: larger blocks do not fit VMEM",)
    assert choice.vmem_bytes <= 48 * MIB


def test_what_never_fits_vmem_is_refused() -> None:
    with pytest.raises(KdslError, match="of VMEM") as caught:
        choose_tiles(plan_of(kernels.SOFTMAX), {}, {"M": 1024, "N": 10_000_000})
    assert caught.value.code == "K0304"


# -- refusals ------------------------------------------------------------------------------------------------------

ROWS = """
kernel rows(x: in f32[M, N], y: ROLE f32[M, N]) at "rows.py":1:1 {
  size M
  size N
  size S
  tile BM = 8
  program m_block < cdiv(M, BM)
  loop n_block < cdiv(N, BM)
  loop i_block < cdiv(N, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  BODY
}
"""
LOAD = "%x: f32[m_block, m, n] = load x[BM*m_block + m, n] at 3:5"
STORE = "store y[BM*m_block + m, n] = %x at 4:5"
LOOP = "for n_block () { yield } at 5:5"

REFUSED = {
    "a nested loop": (
        f"for n_block () {{ for i_block () {{ {LOAD} {STORE} yield }} at 7:5 yield }} at 5:5",
        7,
        "inside a loop",
    ),
    "two loops": (
        f"for n_block () {{ {LOAD} {STORE} yield }} at 5:5 for i_block () {{ yield }} at 6:5",
        6,
        "two loops",
    ),
    "a halo": (f"%x: f32[m_block, m, n] = load x[BM*m_block + m + 1, n] at 3:5 {STORE}", 3, "multiple of BM"),
    "a stride": (f"%x: f32[m_block, m, n] = load x[BM*m_block + 2*m, n] at 3:5 {STORE}", 3, "stride 1"),
    "an overlapping write": (
        f"{LOAD} %s: f32[m_block, n] = reduce %x {{axis = m, combine = add}} at 4:5 store y[0, n] = %s at 5:5",
        5,
        "all programs along m_block write the same block of y",
    ),
    "a store in the loop to one place": (
        f"for n_block () {{ {LOAD} {STORE} yield }} at 2:5",
        4,
        "stored to in the loop",
    ),
    "a partial store of an output": (f"{LOAD} {STORE.replace(' at', ' where n < S at')}", 4, "leaves lanes of y"),
    "two stores": (f"{LOAD} {STORE} {STORE.replace('4:5', '9:5')}", 9, "two places"),
    "an output that is not written": (LOAD, 1, "never stored to"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_grid_form_is_refused_at_its_line(what: str) -> None:
    body, line, reason = REFUSED[what]
    text = ROWS.replace("ROLE", "out").replace("BODY", body)
    with pytest.raises(KdslError) as caught:
        # Two loops: the second does nothing, and would go away.
        make_plan(kernel(text) if what == "two loops" else legalize(kernel(text)))
    assert caught.value.code == "K0308"
    assert reason in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == line


def test_reading_an_in_out_tensor_in_other_blocks_than_are_written_is_refused() -> None:
    body = "%x: f32[n] = load y[0, n] at 3:5 %z: f32[m_block, m, n] = load x[BM*m_block + m, n] at 3:9 "
    body += "%s: f32[m_block, m, n] = add %x, %z at 4:5 store y[BM*m_block + m, n] = %s at 5:5"
    with pytest.raises(KdslError, match="read in other blocks") as caught:
        plan_of(ROWS.replace("ROLE", "inout").replace("BODY", body))
    assert caught.value.code == "K0308"


@pytest.mark.parametrize("dtype", ["f16", "f64"])
def test_tensors_of_a_dtype_that_tpus_lack_are_refused(dtype: str) -> None:
    with pytest.raises(KdslError, match=f"tpu has no {dtype} tensors") as caught:
        legalize(kernel(kernels.VECTOR_ADD, dtype))
    assert caught.value.code == "K0302"


def test_arithmetic_on_bytes_is_refused_at_its_line() -> None:
    with pytest.raises(KdslError, match="tpu has no i8 add") as caught:
        legalize(kernel(kernels.VECTOR_ADD, "i8"))
    assert caught.value.code == "K0302"
    assert caught.value.location is not None
    assert caught.value.location.line == 5


def test_a_product_along_an_axis_is_refused() -> None:
    text = kernels.COLUMN_SUM.replace("combine = add", "combine = mul")
    with pytest.raises(KdslError, match="a reduction by mul of f32") as caught:
        legalize(kernel(text))
    assert caught.value.code == "K0301"
