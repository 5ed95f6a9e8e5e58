"""Every op of the table in every dtype that it takes: emitted code on special values against the oracle.

One kernel a dtype holds all ops, so that a test is one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kdsl.backends.triton import TARGET
from kdsl.backends.triton.dtypes import TYPES
from kdsl.interpreter import run
from kdsl.ir.dtypes import DTYPES, DType
from kdsl.ir.kernel import bind
from kdsl.ir.meaning import COMBINES
from kdsl.ir.ops import OPS
from kdsl.ir.verify import IRError
from kdsl.runtime.target import accuracy_of
from tests.backends.triton import kernels

pytest.importorskip("triton", reason="an extra; tests/test_extras.py fails without it")
pytest.importorskip("torch", reason="an extra; tests/test_extras.py fails without it")

LANES = 32
FLOATS, INTEGERS = ("f16", "bf16", "f32", "f64"), ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_nan", "is_inf", "is_finite")


def takes(name: str, dtype: DType) -> bool:
    """Whether an op's row takes operands of the dtype: its type rule decides."""
    condition = "bool" if name == "select" else dtype.name
    operands = {"%a": condition if name == "select" else dtype.name}
    text = f"""
kernel k(x: in {dtype.name}[4], m: in bool[4]) {{
  axis n < 4
  %a: {operands["%a"]}[n] = load {"m" if name == "select" else "x"}[n]
  %b: {dtype.name}[n] = load x[n]
  %r: {result(name, dtype)}[n] = {name} {", ".join(["%a", "%b", "%b"][: len(OPS[name].operands)])}
}}
"""
    try:
        kernels.kernel(text)
    except IRError:  # the row of the op does not take the dtype
        return False
    return True


def result(name: str, dtype: DType) -> str:
    return "bool" if name in COMPARISONS else dtype.name


def pointwise_ops(dtype: DType) -> list[str]:
    return [name for name, spec in OPS.items() if spec.pointwise is not None and takes(name, dtype)]


def special(dtype: DType) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Two operands whose pairs meet zeros, extremes, signs and, for floats, infinities and NaN."""
    generator = np.random.default_rng(1)
    if dtype.kind == "bool":
        return generator.random(LANES) < 0.5, generator.random(LANES) < 0.5
    if dtype.is_float:
        values: list[float] = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 3.0, 1e-3, 7.25, -7.25, 20.0]
        values += [-20.0, 0.1]
    else:
        limits = np.iinfo(dtype.numpy)
        values = [0, 1, 2, 3, 5, 7, limits.max, limits.max - 1, limits.min, limits.min + 1, 31, 33, 64, 6, 100, 8]
        values += [-1, -2, -3, -7] if dtype.kind == "int" else []
    chosen = np.array(values, dtype.numpy if not dtype.is_float else np.float64).astype(dtype.numpy)
    left = np.resize(chosen, LANES)
    right = generator.permutation(np.resize(chosen[::-1], LANES))
    right[:4] = np.array([0, 1, 3, 2]).astype(dtype.numpy)
    return left, right


def kernel_of(dtype: DType, lines: Iterator[tuple[str, str]]) -> str:
    """A kernel with one output for each (dtype of the result, op with operands)."""
    ops = list(lines)
    outputs = ", ".join(f"o{place}: out {out}[N]" for place, (out, _) in enumerate(ops))
    body = "\n".join(
        f"  %r{place}: {out}[n] = {op}\n  store o{place}[n] = %r{place}" for place, (out, op) in enumerate(ops)
    )
    return f"""
kernel all_ops(x: in {dtype.name}[N], y: in {dtype.name}[N], m: in bool[N], {outputs}) {{
  size N
  axis n < N
  %x: {dtype.name}[n] = load x[n]
  %y: {dtype.name}[n] = load y[n]
  %m: bool[n] = load m[n]
{body}
}}
"""


def operands_of(name: str) -> str:
    return "%m, %x, %y" if name == "select" else ", ".join(["%x", "%y", "%x"][: len(OPS[name].operands)])


def arguments(dtype: DType) -> dict[str, Any]:
    left, right = special(dtype)
    return {"x": left, "y": right, "m": np.arange(LANES) % 3 == 0}


def assert_same(got: Any, expected: Any, message: str) -> None:
    """Equal, NaN with NaN; NumPy sees no NaN in bf16."""
    assert got.dtype == expected.dtype
    floats = expected.dtype.kind not in "biu"
    np.testing.assert_array_equal(*(a.astype(np.float64) if floats else a for a in (got, expected)), message)


def assert_within(got: Any, expected: Any, op: str, dtype: DType, operands: dict[str, Any]) -> None:
    """Equal where the op is exact on the target, else within its accuracy."""
    message = f"{op} of {dtype}\nx = {operands['x']}\ny = {operands['y']}"
    allowed = accuracy_of(TARGET.accuracy, op, dtype)
    if not (dtype.is_float and expected.dtype == dtype.numpy) or allowed.ulp == 0.5:
        assert_same(got, expected, message)
        return
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    # The oracle itself may be one rounding off.
    ulp = 2.0**-dtype.mantissa * np.abs(expected)
    bound = (allowed.ulp + 0.5) * ulp + allowed.absolute + float(np.finfo(np.float32).tiny if dtype.bits < 64 else 0)
    with np.errstate(invalid="ignore"):
        close = (np.abs(got - expected) <= bound) | (got == expected) | (np.isnan(got) & np.isnan(expected))
    assert close.all(), f"{message}\ngot {got[~close]}, expected {expected[~close]}"


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *FLOATS])
def test_pointwise_ops(name: str) -> None:
    dtype = DTYPES[name]
    ops = pointwise_ops(dtype)
    kernel = kernels.kernel(kernel_of(dtype, ((result(op, dtype), f"{op} {operands_of(op)}") for op in ops)))
    sizes, given = {"N": LANES}, arguments(dtype)
    expected = run(bind(kernel, sizes), given)
    got = TARGET.run(TARGET.emit(kernel, {}, sizes), sizes, given)
    for place, op in enumerate(ops):
        assert_within(got[f"o{place}"], expected[f"o{place}"], op, dtype, given)


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *FLOATS, "f8e4m3", "f8e5m2"])
def test_casts_round_saturate_and_wrap(name: str) -> None:
    dtype = DTYPES[name]
    targets = [other for other in TYPES if other != name and (name, other[:2]) != ("f64", "f8")]
    kernel = kernels.kernel(kernel_of(dtype, ((other, "cast %x") for other in targets)))
    sizes, given = {"N": LANES}, arguments(dtype)
    if dtype.is_float:
        edges = [65504.0, -65504.0, 300.7, -300.7] + ([] if name == "f16" else [65519.9, 2.0**31, 3.4e38, -3.4e38])
        given["x"][-len(edges) :] = np.array(edges).astype(dtype.numpy)
    expected = run(bind(kernel, sizes), given)
    got = TARGET.run(TARGET.emit(kernel, {}, sizes), sizes, given)
    for place, other in enumerate(targets):
        message = f"{name} to {other}: {given['x']}"
        assert_same(got[f"o{place}"], expected[f"o{place}"], message)


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *FLOATS])
def test_reductions(name: str) -> None:
    dtype = DTYPES[name]
    combines = [combine for combine, row in COMBINES.items() if dtype.kind in row.kinds]
    outputs = ", ".join(f"o{p}: out {(COMBINES[c].result or dtype).name}[M]" for p, c in enumerate(combines))
    body = "\n".join(
        f"  %r{p}: {(COMBINES[c].result or dtype).name}[m] = reduce %x {{axis = n, combine = {c}}}\n"
        f"  store o{p}[m] = %r{p}"
        for p, c in enumerate(combines)
    )
    kernel = kernels.kernel(f"""
kernel reductions(x: in {name}[M, N], {outputs}) {{
  size M
  size N
  axis m < M
  axis n < N
  %x: {name}[m, n] = load x[m, n]
{body}
}}
""")
    generator = np.random.default_rng(0)
    values = generator.integers(0, 2, (5, 7)) if dtype.kind == "bool" else generator.integers(1, 3, (5, 7))
    x = values.astype(dtype.numpy)
    if dtype.is_float:
        x[1, 3] = np.nan
        x[2] = -np.inf
    for n in (7, 1, 0):
        sizes = {"M": 5, "N": n}
        expected = run(bind(kernel, sizes), {"x": x[:, :n]})
        got = TARGET.run(TARGET.emit(kernel, {}, sizes), sizes, {"x": x[:, :n]})
        for place, combine in enumerate(combines):
            message = f"{combine} of {name}, {n} lanes"
            assert_same(got[f"o{place}"], expected[f"o{place}"], message)


COMPILED = [
    *[("f32", "cuda:90"), ("bf16", "cuda:80"), ("f64", "cuda:90"), ("i32", "cuda:90"), ("u8", "cuda:90")],
    *[("bool", "cuda:90"), ("f32", "hip:gfx942"), ("i64", "hip:gfx942")],
]


@pytest.mark.parametrize(("name", "arch"), COMPILED)
def test_all_of_them_compile(name: str, arch: str) -> None:
    dtype = DTYPES[name]
    casts = [(other, "cast %x") for other in TYPES if other != name and other[:2] != "f8"]
    ops = [(result(op, dtype), f"{op} {operands_of(op)}") for op in pointwise_ops(dtype)]
    kernel = kernels.kernel(kernel_of(dtype, iter(ops + casts)))
    report = TARGET.check(TARGET.emit(kernel, {}, {"N": LANES}), {"N": LANES}, arch)
    assert report.accepted, report.message


@pytest.mark.parametrize("bound", ["m < 4", "2 <= m"])
def test_argmax_never_takes_an_invalid_lane(bound: str) -> None:
    kernel = kernels.kernel(f"""
kernel k(x: in f32[8], y: out i32[1]) {{
  axis m < 8 where {bound}
  %x: f32[m] = load x[m]
  %r: i32 = reduce %x {{axis = m, combine = argmax}}
  store y[0] = %r
}}
""")
    x = np.array([5, 5, 1, 1, 5, 5, 5, 5], np.float32)
    for given in (x, np.full(8, -np.inf, np.float32)):
        expected = run(bind(kernel, {}), {"x": given})["y"]
        assert TARGET.run(TARGET.emit(kernel, {}, {}), {}, {"x": given})["y"].tolist() == expected.tolist()


@pytest.mark.parametrize(("dtype", "rows"), [("f32", "i, t"), ("bf16", "i, t"), ("i8", "i, t"), ("f32", "t, i")])
def test_dot_transposes_and_pads_what_is_narrow(dtype: str, rows: str) -> None:
    accumulator = "i32" if dtype == "i8" else "f32"
    kernel = kernels.kernel(f"""
kernel k(x: in {dtype}[{"I, T" if rows == "i, t" else "T, I"}], y: in {dtype}[N, T], z: out {accumulator}[N, I]) {{
  size I
  size T
  size N
  axis i < I
  axis t < T
  axis n < N
  %x: {dtype}[i, t] = load x[{rows}]
  %y: {dtype}[t, n] = load y[n, t]
  %z: {accumulator}[i, n] = dot %x, %y {{axis = t, precision = ieee}}
  store z[n, i] = %z
}}
""")
    sizes = {"I": 5, "T": 3, "N": 18}
    given = kernels.generic(kernel, sizes, integers=True)
    expected = run(bind(kernel, sizes), given)["z"]
    source = TARGET.emit(kernel, {}, sizes)
    np.testing.assert_array_equal(TARGET.run(source, sizes, given)["z"], expected)
    report = TARGET.check(source, sizes, "cuda:90")
    assert report.accepted, report.message


def test_a_matrix_times_a_vector_is_a_sum_of_products() -> None:
    kernel = kernels.kernel("""
kernel k(x: in bf16[M, T], y: in bf16[T], z: out f32[M]) {
  size M
  size T
  axis m < M
  axis t < T
  %x: bf16[m, t] = load x[m, t]
  %y: bf16[t] = load y[t]
  %z: f32[m] = dot %x, %y {axis = t, precision = ieee}
  store z[m] = %z
}
""")
    sizes = {"M": 5, "T": 7}
    given = kernels.generic(kernel, sizes, integers=True)
    expected = run(bind(kernel, sizes), given)["z"]
    source = TARGET.emit(kernel, {}, sizes)
    assert "tl.dot" not in source.text
    np.testing.assert_array_equal(TARGET.run(source, sizes, given)["z"], expected)


def test_forms_with_floors_strides_and_two_axes() -> None:
    kernel = kernels.kernel("""
kernel k(x: in f32[N], y: out f32[P, 4], i: out i64[P, 4]) {
  size N
  size P
  program p < P
  axis c < 4
  axis r < 2
  %x: f32[p, c] = load x[floordiv(p - 3, 2) + 2*c + 2] where floordiv(p - 3, 2) + 2*c + 2 < N fill 0.0
  %h: f32[c, r] = load x[2*c + r]
  %s: f32[c] = reduce %h {axis = r, combine = add}
  %z: f32[p, c] = add %x, %s
  %i: i64[p, c] = index {form = mod(p - 3, 4) + c}
  store y[p, c] = %z
  store i[p, c] = %i
}
""")
    sizes = {"N": 9, "P": 6}
    given = {"x": np.arange(9, dtype=np.float32)}
    expected = run(bind(kernel, sizes), given)
    source = TARGET.emit(kernel, {}, sizes)
    got = TARGET.run(source, sizes, given)
    for name in ("y", "i"):
        np.testing.assert_array_equal(got[name], expected[name], source.text)
    report = TARGET.check(source, sizes, "cuda:90")
    assert report.accepted, report.message
