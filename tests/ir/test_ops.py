"""The op table is complete, and each pointwise op means what Python's own arithmetic says."""

from __future__ import annotations

import numpy as np
import pytest

from kdsl.ir.dtypes import BF16, BOOL, DTYPES, F16, F32, F64, DType
from kdsl.ir.ops import OPS
from tests.ir.arithmetic import (
    FLOAT_EXPECTED,
    Array,
    assert_same,
    bits,
    evaluate,
    expectation,
    lanes,
    round_to,
    specials,
)
from tests.ir.strategies import POINTWISE, dtypes_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the operands overflow on purpose


# -- the table -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPS)
def test_a_row_says_everything_about_its_op(name: str) -> None:
    spec = OPS[name]
    assert spec.name == name
    assert spec.doc and spec.padding and callable(spec.error) and callable(spec.infer)
    assert set(spec.optional) <= {attribute for attribute, _ in spec.attributes}
    if name != "yield":
        assert (spec.pointwise is None) != (spec.evaluate is None)
    if spec.pointwise is not None:
        assert spec.padding == "lanewise" and spec.effect == "none" and not spec.attributes and not spec.regions


def test_only_memory_and_reports_have_effects() -> None:
    assert {name: spec.effect for name, spec in OPS.items() if spec.effect != "none"} == {
        "load": "read",
        "store": "write",
        "load_at": "read",
        "store_at": "write",
        "atomic": "atomic",
        "atomic_cas": "atomic",
        "assert": "report",
        "print": "report",
        "breakpoint": "report",
        "let": "define",
    }


def operands_of(name: str, dtype: DType) -> list[Array]:
    """Special values in all combinations, and random ones."""
    rng = np.random.default_rng(0)
    count = len(OPS[name].operands)
    special = specials(dtype)[:: 1 if count < 3 else 2]
    grids = [grid.ravel() for grid in np.meshgrid(*[special] * count)]
    if dtype == BOOL:
        more = [rng.integers(0, 2, 100).astype(bool) for _ in range(count)]
    elif dtype.is_integer:
        more = [rng.integers(0, 2**63, 500, np.uint64).astype(dtype.numpy) for _ in range(count)]
        more[-1][:250] %= dtype.numpy.type(70 if dtype.bits > 8 else 10)
    else:
        more = [(rng.normal(0, 1, 500) * 10.0 ** rng.integers(-3, 3, 500)).astype(dtype.numpy) for _ in range(count)]
    return [np.concatenate(pair) for pair in zip(grids, more, strict=True)]


# -- pointwise ops against expectations that share nothing with them -----------------------------------------------


EXACTLY_ROUNDED = {"add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "floor", "ceil", "sqrt"}
EXACTLY_ROUNDED |= {"maxnum", "minnum", "precise_div", "precise_sqrt", "clamp", "trunc", "round", "copysign", "fmod"}


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in POINTWISE for dtype in dtypes_of(name)], ids=str)
def test_a_pointwise_op_means_what_python_says(name: str, dtype: DType) -> None:
    operands = operands_of(name, dtype)
    got = evaluate(name, operands)
    expect = expectation(name, dtype)
    exact = [expect(*lane) for lane in lanes(operands)]
    if got.dtype != dtype.numpy or not dtype.is_float:
        assert_same(got, np.array(exact, got.dtype), *operands)
        return
    expected = np.array([round_to(value, dtype) for value in exact], dtype.numpy)
    if name in ("maximum", "minimum", "maxnum", "minnum", "clamp"):
        got, expected = got + 0, expected + 0  # either zero may be the larger
    if name == "fma" or (name in EXACTLY_ROUNDED and dtype != F64):
        assert_same(got, expected, *operands)
        return
    # f64 has nothing wider to be rounded from; NumPy's functions of f32 promise a few ulp, not the nearest.
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    finite = np.isfinite(expected) & np.isfinite(got)
    assert np.array_equal(got[~finite & ~np.isnan(got)], expected[~finite & ~np.isnan(got)])
    off = np.abs(got.astype(np.float64) - expected.astype(np.float64))[finite]
    spacing = np.spacing(np.abs(expected[finite])).astype(np.float64)
    assert np.all(off <= 4 * spacing), f"{np.max(off / spacing)} ulp"


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES.values() if not dtype.is_storage], ids=str)
def test_select_takes_nothing_from_the_other_arm(dtype: DType) -> None:
    y, z = operands_of("sub", dtype if dtype != BOOL else F32) if dtype != BOOL else operands_of("and", BOOL)
    condition = np.arange(len(y)) % 2 == 0
    expected = np.array([a if c else b for c, a, b in zip(condition, y, z, strict=True)], y.dtype)
    assert_same(evaluate("select", [condition, y, z]), expected, condition, y, z)


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "div", "sub"])
def test_sixteen_bit_arithmetic_rounds_once(name: str, dtype: DType) -> None:
    rng = np.random.default_rng(1)
    patterns = [rng.integers(0, 2**16, 20_000, np.uint16).view(dtype.numpy) for _ in range(2)]
    with np.errstate(all="ignore"):
        wide = [pattern.astype(np.float64) for pattern in patterns]
        exact = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name](*wide)
    expected = np.array([round_to(value, dtype) for value in exact.tolist()], dtype.numpy)
    assert_same(evaluate(name, patterns), expected, *patterns)


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_functions_without_rounding_are_exact_for_every_sixteen_bit_float(dtype: DType) -> None:
    """Their results, found in f64, are 16-bit floats; a square root is rounded once."""
    x = np.arange(2**16, dtype=np.uint16).view(dtype.numpy)
    wide = x.astype(np.float64)
    plain = {"neg": np.negative, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}
    for name, function in plain.items():
        assert_same(evaluate(name, [x]), function(wide).astype(dtype.numpy), x)
    roots = np.array([round_to(value, dtype) for value in np.sqrt(wide).tolist()], dtype.numpy)
    for name in ("sqrt", "precise_sqrt"):
        assert_same(evaluate(name, [x]), roots, x)


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
@pytest.mark.parametrize("name", ["exp", "log", "rsqrt", "tanh", "sigmoid", "erf", "sin"])
def test_sixteen_bit_functions_are_within_one_ulp_for_every_operand(name: str, dtype: DType) -> None:
    x = np.arange(2**16, dtype=np.uint16).view(dtype.numpy)[:: 1 if name == "exp" else 7]
    got = evaluate(name, [x])
    expected = np.array([round_to(FLOAT_EXPECTED[name](value), dtype) for value in x.astype(np.float64).tolist()])
    expected = expected.astype(dtype.numpy)
    order = [bits(array).astype(np.int64) for array in (got, expected)]
    assert np.max(np.abs(order[0] - order[1])) <= 1
    assert np.mean(order[0] != order[1]) < 0.001
