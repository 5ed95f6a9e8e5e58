"""Emitted code against the oracle, and through libtpu for each generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kdsl.backends.pallas import TARGET
from kdsl.diagnostics import KdslError
from kdsl.interpreter import run
from kdsl.ir.kernel import bind
from kdsl.runtime.target import Source
from tests.backends.pallas import kernels
from tests.backends.pallas.kernels import Array, inputs, kernel

pytest.importorskip("jax", reason="an extra; tests/test_extras.py fails without it")

# f32: sums in another order, XLA's functions. bf16: one rounding to 8 bits, which may fall the other way.
TOLERANCE = {"f32": 2e-5, "bf16": 2.0**-7}
TEXTS = {
    "matmul": (kernels.MATMUL, {}),
    "softmax": (kernels.SOFTMAX, {}),
    "layernorm": (kernels.LAYERNORM, {}),
    "vector_add": (kernels.VECTOR_ADD, {}),
    "attention": (kernels.ATTENTION, kernels.FULL),
    "causal": (kernels.ATTENTION, kernels.CAUSAL),
}
MATMULS = [(1, 1, 1), (7, 100, 31), (33, 1023, 512), (257, 1, 31), (257, 100, 1)]
ROWS = [(1, 1), (7, 100), (33, 1023), (257, 1)]
HEADS = [(1, 1, 16), (33, 100, 64), (257, 33, 80)]  # L, S, D


def sizes_of(name: str) -> list[dict[str, int]]:
    if name == "matmul":
        return [{"M": M, "N": N, "K": K} for M, N, K in MATMULS]
    if name == "vector_add":
        return [{"N": N} for N in (1, 100, 1023, 5000)]
    if name in ("attention", "causal"):
        return [{"B": 1, "H": 2, "L": L, "S": S, "D": D} for L, S, D in HEADS]
    return [{"M": M, "N": N} for M, N in ROWS]


# Every size in f32, every other one in bf16.
CASES = [
    (name, sizes, dtype)
    for name in TEXTS
    for step, dtype in ((1, "f32"), (2, "bf16"))
    for sizes in sizes_of(name)[step - 1 :: step]
]


def build(text: str, dtype: str = "f32", sizes: Mapping[str, int] | None = None, **replaced: str) -> Source:
    """A source made for a large example, so that one text is tried on many sizes."""
    each = kernel(text, dtype, **replaced)
    example = {size.name: 512 for size in each.sizes}
    return TARGET.emit(each, {}, sizes or example)


def both(source: Source, sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> list[tuple[Array, Array]]:
    """What the emitted code gives and what the oracle gives, for each written tensor."""
    # The chosen tiles: a loop then rounds in the same places.
    bound = bind(source.kernel, sizes, source.tiles)
    expected, got = run(bound, arguments), TARGET.run(source, sizes, arguments)
    assert list(got) == list(expected)
    for name in expected:
        assert (got[name].dtype, got[name].shape) == (expected[name].dtype, expected[name].shape)
    return [(got[name], expected[name]) for name in expected]


@pytest.mark.parametrize(("name", "sizes", "dtype"), CASES)
def test_generic_inputs_give_what_the_oracle_gives(name: str, sizes: dict[str, int], dtype: str) -> None:
    text, replaced = TEXTS[name]
    source = build(text, dtype, **replaced)
    for got, expected in both(source, sizes, inputs(source.kernel, sizes)):
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", ["matmul", "vector_add"])
def test_small_integers_give_the_oracles_bits(name: str, dtype: str) -> None:
    source = build(TEXTS[name][0], dtype)
    for sizes in sizes_of(name):
        for got, expected in both(source, sizes, inputs(source.kernel, sizes, exact=True)):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (kernels.STATISTICS, {"M": 257, "N": 100}),
        (kernels.STATISTICS, {"M": 1, "N": 1}),
        (kernels.COLUMN_SUM, {"M": 33, "N": 100}),
        (kernels.COLUMN_SUM, {"M": 257, "N": 1}),
        (kernels.AXPY, {"M": 33, "N": 300, "S": 200}),
        (kernels.AXPY, {"M": 3, "N": 5, "S": 0}),
        (kernels.BOOLS, {"M": 33, "N": 100}),
        (kernels.BOOLS, {"M": 1, "N": 1}),
        (kernels.TRANSPOSE, {"M": 257, "N": 100}),
        (kernels.INTEGERS, {"M": 33, "N": 100}),
    ],
)
def test_other_forms_of_access_give_the_oracles_bits(text: str, sizes: dict[str, int]) -> None:
    source = build(text)
    arguments = inputs(source.kernel, sizes, exact=True)
    if "w" in arguments:  # divisors and shift counts: also 0, negative ones and those past the width
        arguments["w"] = arguments["w"] % 43 - 3
    for got, expected in both(source, sizes, arguments):
        np.testing.assert_array_equal(got, expected)
    assert_compiles(source, sizes, "v5e")


@pytest.mark.parametrize("sizes", [{"B": 2, "M": 130, "H": 4}, {"B": 1, "M": 3, "H": 8}])
def test_a_sum_around_the_kept_dimension_gives_the_oracles_bits(sizes: dict[str, int]) -> None:
    source = build(kernels.OUTER_SUM, sizes=sizes)
    for got, expected in both(source, sizes, inputs(source.kernel, sizes, exact=True)):
        np.testing.assert_array_equal(got, expected)
    assert_compiles(source, sizes, "v5e")


def test_one_row_a_program_is_right_and_compiles() -> None:
    source, sizes = build(kernels.ROW_SUM), {"M": 33, "N": 100}
    for got, expected in both(source, sizes, inputs(source.kernel, sizes)):
        np.testing.assert_allclose(got, expected, rtol=1e-4)
    assert_compiles(source, sizes)


def test_argmax_takes_the_first_of_equals_and_a_nan_before_all() -> None:
    source, sizes = build(kernels.STATISTICS), {"M": 9, "N": 300}
    x = np.zeros((9, 300), np.float32)
    x[1, [200, 250]], x[2, 7], x[3, :] = 5, np.nan, -np.inf
    got = TARGET.run(source, sizes, {"x": x, "r": np.ones(9, np.float32)})
    np.testing.assert_array_equal(got["top"], [0, 200, 7, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (kernels.MATMUL, {"M": 3, "N": 5, "K": 0}),
        (kernels.MATMUL, {"M": 0, "N": 5, "K": 4}),
        (kernels.VECTOR_ADD, {"N": 0}),
        (kernels.COLUMN_SUM, {"M": 0, "N": 4}),
    ],
)
def test_empty_dimensions_give_what_the_oracle_gives(text: str, sizes: dict[str, int]) -> None:
    source = build(text)
    for got, expected in both(source, sizes, inputs(source.kernel, sizes)):
        np.testing.assert_array_equal(got, expected)


def test_nan_beyond_the_edge_of_a_contraction_stays_there() -> None:
    """Interpret mode fills what lies beyond the edge with NaN, as a TPU may."""
    source, sizes = build(kernels.MATMUL), {"M": 9, "N": 130, "K": 129}
    for got, _ in both(source, sizes, inputs(source.kernel, sizes)):
        assert np.isfinite(got).all()


# -- the compiler --------------------------------------------------------------------------------------------------


def assert_compiles(source: Source, sizes: Mapping[str, int], *archs: str) -> None:
    for arch in archs or TARGET.archs:
        report = TARGET.check(source, sizes, arch)
        assert report.accepted, (arch, sizes, report.message)
        assert report.figures["custom_calls"] >= 1


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", TEXTS)
def test_ragged_sizes_compile(name: str, dtype: str) -> None:
    """The largest for every generation, the others for one each: generations hardly differ in what they take."""
    text, replaced = TEXTS[name]
    source = build(text, dtype, **replaced)
    *others, largest = sorted(sizes_of(name), key=lambda sizes: sum(sizes.values()))
    assert_compiles(source, largest)
    for place, sizes in enumerate(others):
        assert_compiles(source, sizes, TARGET.archs[place % len(TARGET.archs)])


def test_blocks_beyond_the_default_vmem_limit_compile() -> None:
    sizes = {"M": 64, "N": 32768}
    source = build(kernels.SOFTMAX, sizes=sizes)
    assert "vmem_limit_bytes=" in source.text
    assert_compiles(source, sizes)  # v7x has the smallest VMEM


def test_what_the_compiler_refuses_is_reported_with_its_message() -> None:
    source = build(kernels.VECTOR_ADD)
    broken = Source(**{**vars(source), "text": source.text.replace("(BN,), lambda", "(BN, BN), lambda")})
    report = TARGET.check(broken, {"N": 5000}, "v5e")
    assert not report.accepted
    assert "Block shape" in report.message


def test_tile_sizes_that_mosaic_lacks_are_an_error_in_the_emitted_function() -> None:
    source = build(kernels.VECTOR_ADD)
    broken = Source(**{**vars(source), "text": source.text.replace("BN=1024", "BN=1000")})
    with pytest.raises(KdslError, match="tile sizes are multiples") as caught:
        TARGET.run(broken, {"N": 5000}, inputs(source.kernel, {"N": 5000}))
    assert caught.value.code == "K0307"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros(7, np.float64).astype(np.int32)}, r"expected x: float32\[N\].*got int32"),
        ({"x": np.zeros((7, 1), np.float32)}, r"got float32\(7, 1\)"),
        ({"y": np.zeros(8, np.float32)}, r"float32\(8,\)"),
    ],
)
def test_wrong_arguments_are_named_by_the_emitted_function(change: dict[str, Array], message: str) -> None:
    source, sizes = build(kernels.VECTOR_ADD), {"N": 7}
    with pytest.raises(KdslError, match=message):
        TARGET.run(source, sizes, inputs(source.kernel, sizes) | change)


def test_the_tool_chain_is_described() -> None:
    found = TARGET.toolchain()
    assert found.archs == dict.fromkeys(TARGET.archs)
    assert found.versions["jax"] == "0.10.2"
