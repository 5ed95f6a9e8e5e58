"""Arithmetic on tiles: how operands promote, integers, bool tiles, and what a store may change."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kdsl
from kdsl import Out, Scalar, Tensor, bool_, f32, f64, i8, i32, i64, u8, u32
from kdsl.diagnostics import KdslError
from kdsl.ir.kernel import walk


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class T(kdsl.DType): ...


class U(kdsl.DType): ...


DTYPES: dict[str, Any] = {
    "bool": kdsl.bool_, "u8": kdsl.u8, "u16": kdsl.u16, "u32": kdsl.u32, "u64": kdsl.u64, "i8": kdsl.i8,
    "i16": kdsl.i16, "i32": kdsl.i32, "i64": kdsl.i64, "bf16": kdsl.bf16, "f16": kdsl.f16, "f32": kdsl.f32,
    "f64": kdsl.f64,
}  # fmt: skip

# What JAX documents for arrays and Python scalars ("Type promotion semantics", docs.jax.dev), written out by hand.
# Where JAX goes from u64 and a signed integer to a float, kdsl refuses (-). int and float are Python numbers; next to a
# tile that cannot hold them they are i32 and f32.
PROMOTION = """
         bool u8   u16  u32  u64  i8   i16  i32  i64  bf16 f16  f32  f64  int  float
    bool bool u8   u16  u32  u64  i8   i16  i32  i64  bf16 f16  f32  f64  i32  f32
    u8   u8   u8   u16  u32  u64  i16  i16  i32  i64  bf16 f16  f32  f64  u8   f32
    u16  u16  u16  u16  u32  u64  i32  i32  i32  i64  bf16 f16  f32  f64  u16  f32
    u32  u32  u32  u32  u32  u64  i64  i64  i64  i64  bf16 f16  f32  f64  u32  f32
    u64  u64  u64  u64  u64  u64  -    -    -    -    bf16 f16  f32  f64  u64  f32
    i8   i8   i16  i32  i64  -    i8   i16  i32  i64  bf16 f16  f32  f64  i8   f32
    i16  i16  i16  i32  i64  -    i16  i16  i32  i64  bf16 f16  f32  f64  i16  f32
    i32  i32  i32  i32  i64  -    i32  i32  i32  i64  bf16 f16  f32  f64  i32  f32
    i64  i64  i64  i64  i64  -    i64  i64  i64  i64  bf16 f16  f32  f64  i64  f32
    bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  f32  f64  bf16 bf16
    f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f16  f32  f64  f16  f16
    f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  f32  f32
    f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""
HEAD, *ROWS = [line.split() for line in PROMOTION.strip().splitlines()]
EXPECTED = {(row[0], column): kind for row in ROWS for column, kind in zip(HEAD, row[1:], strict=True)}


@kdsl.kernel
def of_tiles(x: Tensor[M, T], y: Tensor[M, U], z: Out[M, f64]) -> None:
    for m in kdsl.grid(M):
        z[m] = kdsl.maximum(x[m], y[m])


@kdsl.kernel
def of_numbers(x: Tensor[M, T], z: Out[M, f64], w: Out[M, f64]) -> None:
    for m in kdsl.grid(M):
        z[m] = kdsl.maximum(x[m], 2)
        w[m] = kdsl.maximum(0.5, x[m])


@kdsl.kernel
def of_sizes(x: Tensor[M, T], z: Out[M, f64], w: Out[M, f64]) -> None:
    for m in kdsl.grid(M.tiles(4)):
        z[m] = kdsl.maximum(x[m], M)
        w[m] = kdsl.maximum(x[m], m.index)


def maxima(kernel: kdsl.Kernel, **dtypes: Any) -> list[str]:
    """The dtypes in which a kernel takes its maxima; - where there is none, * where it is for storage."""
    try:
        body = kernel.elaborate(**dtypes).body
    except KdslError as error:
        if error.code == "K0206" and "is for storage: cast it before computing" in error.message:
            return ["*"]
        assert error.code == "K0207"
        return ["-"]
    return [op.result.dtype.name for op in walk(body) if op.name == "maximum"]


def test_tiles_promote_as_jax_promotes_arrays() -> None:
    found = {
        (left, right): maxima(of_tiles, T=DTYPES[left], U=DTYPES[right])[0]
        for left, right in itertools.product(DTYPES, DTYPES)
    }
    assert found == {pair: kind for pair, kind in EXPECTED.items() if pair[1] in DTYPES}


# Types for storage next to others. Where the common type is one for storage (*), the operation is refused: a cast has
# to say in which type to compute.
STORAGE = """
               bool u8   u64  i8   i32  bf16 f16  f32  int
    i4         *    i16  -    i8   i32  bf16 f16  f32  *
    u4         *    u8   u64  i8   i32  bf16 f16  f32  *
    f8e4m3     *    *    *    *    *    bf16 f16  f32  *
    f8e5m2     *    *    *    *    *    bf16 f16  f32  *
    f8e4m3fnuz *    *    *    *    *    bf16 f16  f32  *
    f4e2m1     *    *    *    *    *    bf16 f16  f32  *
"""


def test_storage_types_promote_but_are_not_computed_with() -> None:
    head, *rows = [line.split() for line in STORAGE.strip().splitlines()]
    found = []
    for name, *_ in rows:
        dtype = getattr(kdsl, name)
        of_each = [maxima(of_tiles, T=dtype, U=DTYPES[column])[0] for column in head[:-1]]
        found.append([name, *of_each, maxima(of_numbers, T=dtype)[0]])
    assert found == rows
    mixed = {("i4", "u4"): "i8", ("f8e4m3", "f8e5m2"): "f32", ("f8e4m3", "f4e2m1"): "*", ("i4", "f8e5m2"): "*"}
    for (left, right), expected in mixed.items():
        assert maxima(of_tiles, T=getattr(kdsl, left), U=getattr(kdsl, right)) == [expected]


def test_python_numbers_are_weak() -> None:
    found = {name: maxima(of_numbers, T=dtype) for name, dtype in DTYPES.items()}
    assert found == {name: [EXPECTED[name, "int"], EXPECTED[name, "float"]] for name in DTYPES}


def test_sizes_and_indices_are_i32() -> None:
    for name, dtype in DTYPES.items():
        kind = EXPECTED[name, "i32"]
        assert maxima(of_sizes, T=dtype) == ([kind] if kind == "-" else [kind, kind]), name


@kdsl.kernel
def integers(
    x: Tensor[M, T],
    y: Tensor[M, T],
    quotient: Out[M, T],
    remainder: Out[M, T],
    left: Out[M, T],
    right: Out[M, T],
    bits: Out[M, T],
) -> None:
    for m in kdsl.grid(M.tiles(4)):
        a, b = x[m], y[m]
        quotient[m], remainder[m] = a // b, a % b
        left[m], right[m] = a << (b & 3), a >> 1
        bits[m] = (a & b) | (a ^ ~b)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32])
def test_integers_divide_downwards_and_wrap(dtype: Any) -> None:
    chance = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    x, y = chance.integers(limits.min, limits.max, 50, dtype), chance.integers(-9 if limits.min else 0, 9, 50, dtype)
    wanted_y = np.where(y == 0, 1, y).astype(dtype)
    quotient, remainder, left, right, bits = integers(x, y)
    with np.errstate(all="ignore"):
        assert (quotient == np.where(y == 0, 0, x // wanted_y)).all()
        assert (remainder == np.where(y == 0, 0, x % wanted_y)).all()
    assert (left == x << (y & 3).astype(dtype)).all() and (right == x >> 1).all()
    assert (bits == (x & y) | (x ^ ~y)).all()


@kdsl.kernel
def logic(x: Tensor[M, N, f32], mask: Tensor[M, N, bool_], y: Out[M, N, f32], z: Out[M, bool_], w: Out[M, i32]) -> None:
    for m, n in kdsl.grid(M.tiles(4), N.tiles(100)):
        chosen = mask[m, n] & ~(x[m, n] < 0) ^ (x[m, n] == 0)
        y[m, n] = kdsl.where(chosen, kdsl.sqrt(x[m, n]), -1.0)
        z[m] = kdsl.any(chosen, over=n) & kdsl.all(0.0 <= x[m, n] < 9.0, over=n)
        w[m] = kdsl.sum(chosen, over=n)


def test_bool_tiles_choose_and_count() -> None:
    chance = np.random.default_rng(0)
    x, mask = chance.standard_normal((7, 10)).astype(np.float32), chance.random((7, 10)) < 0.5
    x[3] = np.abs(x[3])
    y, z, w = logic(x, mask)
    chosen = mask & ~(x < 0)
    np.testing.assert_allclose(y, np.where(chosen, np.sqrt(np.abs(x)), -1), rtol=1e-6)
    assert (z == chosen.any(1) & ((x >= 0) & (x < 9)).all(1)).all() and z[3] and (w == chosen.sum(1)).all()


@kdsl.kernel
def products(a: Tensor[M, N, T], b: Tensor[N, T], y: Out[M, U]) -> None:
    for m in kdsl.grid(M.tiles(4)):
        y[m] = kdsl.dot(a[m, :], b[:])


def test_dot_accumulates_in_a_wider_type() -> None:
    a, b = np.full((3, 300), 100, np.int8), np.full(300, -100, np.int8)
    assert (products(a, b, U=i32) == -3_000_000).all()
    half = np.full((3, 300), 0.1, ml_dtypes.bfloat16), np.ones(300, ml_dtypes.bfloat16)
    result = products(*half, U=f32)
    np.testing.assert_allclose(result, 300 * float(half[0][0, 0]), rtol=1e-5)


@kdsl.kernel
def sums(x: Tensor[M, N, T], y: Out[T]) -> None:
    for _ in kdsl.grid(M.tiles(1, stop=1)):
        y[()] = kdsl.sum(x[:, :], over=(M, N))


def test_a_sum_over_several_axes_rounds_a_16_bit_float_once() -> None:
    x = np.ones((3, 257), ml_dtypes.bfloat16)  # 257 is no bf16: rounded by row it would give 3 * 256
    assert sums(x) == ml_dtypes.bfloat16(771)


SCALARS = [(name, dtype, 1 if name == "bool" else 3) for name, dtype in DTYPES.items()]


@kdsl.kernel
def scalar(s: Scalar[T], y: Out[M, T]) -> None:
    for m in kdsl.grid(M):
        y[m] = s


@pytest.mark.parametrize(("name", "dtype", "value"), SCALARS, ids=DTYPES)
def test_scalars_of_every_dtype(name: str, dtype: Any, value: int) -> None:
    result = scalar(bool(value) if name == "bool" else value, M=2, T=dtype)
    assert (result == value).all() and result.shape == (2,)


@kdsl.kernel
def stored(x: Tensor[M, T], y: Out[M, U]) -> None:
    for m in kdsl.grid(M):
        y[m] = x[m]


@pytest.mark.parametrize(
    ("source", "target", "legal"),
    [
        (f64, f32, True), (i32, f32, True), (bool_, i8, True), (i8, i64, True), (u8, i32, True),
        (f32, i32, False), (i64, i32, False), (i32, u32, False), (u32, i32, False), (i32, bool_, False),
        (i64, u8, False), (bool_, f32, True),
    ],
)  # fmt: skip
def test_a_store_rounds_but_does_not_cut(source: Any, target: Any, legal: bool) -> None:
    if legal:
        stored.elaborate(T=source, U=target)
    else:
        with pytest.raises(KdslError, match=r"K0206.*more than rounding"):
            stored.elaborate(T=source, U=target)
