"""The ops beyond the first ones, each family in a small kernel of two programs: emitted, exported, run, and judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.backends.stablehlo import TARGET
from kdsl.diagnostics import KdslError
from kdsl.interpreter import run as run_oracle
from kdsl.ir.dtypes import DTYPES
from kdsl.ir.kernel import Kernel, bind
from kdsl.ir.ops import OPS
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import verify
from tests.ir.minimal import minimal

pytest.importorskip("jax", reason="an extra; tests/test_extras.py fails without it")

Array = np.ndarray[Any, Any]
AXES = "program p < 2\n axis m < 4\n axis n < 8\n axis k < 8\n axis two < 2\n axis h < 4\n axis flat < 32\n"


def kernel(parameters: str, body: str, axes: str = AXES) -> Kernel:
    return verify(parse_kernel(f"kernel probe({parameters}) {{\n {axes}{body}\n}}"))


def numbers(dtype: str, *shape: int, seed: int = 0, span: int = 4) -> Array:
    """Small integers: exact in every dtype and any order."""
    low = 0 if DTYPES[dtype].kind in ("uint", "bool") else -span
    return np.random.default_rng(seed).integers(low, span + 1, shape).astype(DTYPES[dtype].numpy)


def both(built: Kernel, arguments: dict[str, Any]) -> list[tuple[str, Array, Array]]:
    """What the target and the oracle give, for each written tensor."""
    got = TARGET.run(TARGET.emit(built, {}, {}), {}, arguments)
    want = run_oracle(built, arguments)
    return [(name, _plain(got[name]), _plain(want[name])) for name in want]


def _plain(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.kind == "V" or "float" in array.dtype.name else array


def assert_equal(built: Kernel, **arguments: Any) -> None:
    for name, got, want in both(built, arguments):
        np.testing.assert_array_equal(got, want, err_msg=name)


def lane_kernel(dtype: str, ops: list[tuple[str, int, str]]) -> Kernel:
    """A store for each pointwise op: its name, number of operands and result dtype."""
    outputs = ", ".join(f"o{i}: out {result}[2, 64]" for i, (_, _, result) in enumerate(ops))
    inputs = ", ".join(f"{name}: in {dtype}[2, 64]" for name in "xyz")
    body = "\n".join(f"%{name}: {dtype}[p, n] = load {name}[p, n]" for name in "xyz") + "\n"
    for i, (op, count, result) in enumerate(ops):
        operands = ", ".join(f"%{name}" for name in "xyz"[:count])
        body += f"%r{i}: {result}[p, n] = {op} {operands}\n store o{i}[p, n] = %r{i}\n"
    return kernel(f"{inputs}, {outputs}", body, "program p < 2\n axis n < 64\n")


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "i32", "u32", "i64", "u64"])
def test_integer_functions_hold_over_the_whole_range(dtype: str) -> None:
    limits, rng = np.iinfo(DTYPES[dtype].numpy), np.random.default_rng(1)
    x, y, z = (rng.integers(limits.min, limits.max, (2, 64), DTYPES[dtype].numpy, endpoint=True) for _ in range(3))
    y[0, ::4], y[0, 1::4], x[0, :8] = 0, limits.max, limits.min
    if dtype[0] == "i":
        y[0, 2::4] = -1
    y[1] %= 7
    ops = [("truncdiv", 2, dtype), ("truncmod", 2, dtype), ("mulhi", 2, dtype), ("clamp", 3, dtype)]
    assert_equal(lane_kernel(dtype, ops), x=x, y=y, z=z)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f64"])
def test_functions_that_round_nothing_give_the_oracles_bits(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, y, z = (rng.standard_normal((2, 64)).astype(DTYPES[dtype].numpy) * 3 for _ in range(3))
    x[0, :8] = [np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, -2.5]
    y[0, :8] = [1, np.nan, 2, np.nan, -3, 1, 2, -1]
    ops = [(name, 1, "bool") for name in ("is_nan", "is_inf", "is_finite")]
    ops += [(name, 1, dtype) for name in ("trunc", "round")]
    ops += [(name, 2, dtype) for name in ("maxnum", "minnum", "precise_div", "fmod", "copysign")]
    ops += [("clamp", 3, dtype)]
    word = {16: "i16", 32: "u32", 64: "i64"}[DTYPES[dtype].bits]
    ops += [("bitcast", 1, word)]
    z = np.abs(z)
    assert_equal(lane_kernel(dtype, ops), x=x, y=y, z=z)
    assert_equal(lane_kernel(dtype, [("precise_sqrt", 1, dtype)]), x=z, y=y, z=z)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_fma_rounds_once(dtype: str) -> None:
    rng, numpy = np.random.default_rng(3), DTYPES[dtype].numpy
    x, y = (rng.standard_normal((2, 64)).astype(numpy) for _ in range(2))
    z = (-x * y).astype(numpy)  # what is left is the product's rounding error
    z[1] = (rng.standard_normal(64) * 2.0 ** rng.integers(-9, 9, 64)).astype(numpy)
    assert_equal(lane_kernel(dtype, [("fma", 3, dtype)]), x=x, y=y, z=z)


@pytest.mark.parametrize("dtype", ["i32", "f32", "bf16", "bool"])
def test_scans(dtype: str) -> None:
    combines = ["maximum", "minimum"] + (["add", "mul"] if dtype != "bool" else [])
    combines += ["and", "or"] if dtype == "i32" else []
    body, outputs = f"%x: {dtype}[p, m, n] = load x[p, m, n]\n", ""
    for combine in combines:
        for axis, reverse in (("n", ""), ("m", ", reverse = true")):
            name = f"{combine}_{axis}"
            body += f"%{name}: {dtype}[p, m, n] = scan %x {{axis = {axis}, combine = {combine}{reverse}}}\n"
            body += f"store o_{name}[p, m, n] = %{name}\n"
            outputs += f", o_{name}: out {dtype}[2, 4, 8]"
    assert_equal(kernel(f"x: in {dtype}[2, 4, 8]{outputs}", body), x=numbers(dtype, 2, 4, 8, span=2))


COMBINE = """
  %x: f32[p, m, n] = load x[p, m, n]
  %i: i32[n] = index {form = n}
  OUT = reduce_by %x, %i {axis = n} (%a: f32[p, m, n], %b: i32[p, m, n], %c: f32[p, m, n], %d: i32[p, m, n]) {
    %wins: bool[p, m, n] = gt %c, %a
    %v: f32[p, m, n] = select %wins, %c, %a
    %j: i32[p, m, n] = select %wins, %d, %b
    yield %v, %j
  }
  store best[p, m] = %best
  store at[p, m] = %at
  RUN = scan_by %x {axis = n, reverse = true} (%e: f32[p, m, n], %f: f32[p, m, n]) {
    %minus: f32 = constant {value = 2.0}
    %g: f32[p, m, n] = mul %f, %minus
    %s: f32[p, m, n] = add %e, %g
    %half: f32[p, m, n] = sub %s, %f
    yield %half
  }
  store run[p, m, n] = %run
""".replace("OUT", "%best: f32[p, m], %at: i32[p, m]").replace("RUN", "%run: f32[p, m, n]")


def test_combines_of_the_authors_own_keep_the_order_of_lanes() -> None:
    parameters = "x: in f32[2, 4, 8], best: out f32[2, 4], at: out i32[2, 4], run: out f32[2, 4, 8]"
    assert_equal(kernel(parameters, COMBINE), x=numbers("f32", 2, 4, 8, span=2))


@pytest.mark.parametrize("dtype", ["f32", "i32", "bf16"])
def test_sort_is_stable_and_puts_nan_last(dtype: str) -> None:
    x = numbers(dtype, 2, 4, 8, span=2)
    if dtype != "i32":
        x[0, :, 2::3] = np.nan
    body = f"""
      %x: {dtype}[p, m, n] = load x[p, m, n]
      %i: i32[n] = index {{form = n}}
      %u: {dtype}[p, m, n], %ui: i32[p, m, n] = sort %x, %i {{axis = n}}
      %d: {dtype}[p, m, n], %di: i32[p, m, n] = sort %x, %i {{axis = n, descending = true}}
      %t: {dtype}[p, m, h], %ti: i32[p, m, h] = topk %x {{axis = n, target = h}}
    """
    outputs = ""
    for name, axis, size in (("u", "n", 8), ("d", "n", 8), ("t", "h", 4)):
        body += f"store {name}[p, m, {axis}] = %{name}\n store {name}i[p, m, {axis}] = %{name}i\n"
        outputs += f", {name}: out {dtype}[2, 4, {size}], {name}i: out i32[2, 4, {size}]"
    assert_equal(kernel(f"x: in {dtype}[2, 4, 8]{outputs}", body), x=x)


REARRANGE = """
  %x: i32[p, m, n] = load x[p, m, n]
  %row: i32[p, k] = load x[p, 0, k]
  %g1: i32[p, m, n] = load g1[p, m, n]
  %g2: i32[p, h] = load g2[p, h]
  %a: i32[p, m, n] = gather %x, %g1 {axis = n}
  store a[p, m, n] = %a
  %b: i32[p, h] = gather %row, %g2 {axis = k}
  store b[p, h] = %b
  %g3: i32[p, m] = load g2[p, m]
  %c: i32[p, m] = gather %x, %g3 {axis = n}
  store c[p, m] = %c
  %flip: i32[p, m, n] = flip %x {axis = m}
  store d[p, m, n] = %flip
  %r: i32[p, m, k] = relabel %x {source = n, target = k}
  %sum: i32[p, m, n, k] = add %x, %r
  store e[p, m, n, k] = %sum
  %join: i32[p, m, n, two] = join %x, %a {axis = two}
  store f[p, m, n, two] = %join
  %back: i32[p, m, n], %other: i32[p, m, n] = split %join {axis = two}
  %diff: i32[p, m, n] = sub %back, %other
  store s[p, m, n] = %diff
  %hist: i32[p, m, h] = histogram %x {axis = n, target = h}
  store hist[p, m, h] = %hist
  %y: i32[p, n, h] = load x[p, h, n]
  %both: i32[p, n, e8] = concat %x, %y {source = [m, h], target = e8}
  store cat[p, n, e8] = %both
"""


def test_lanes_are_gathered_flipped_joined_and_counted() -> None:
    parameters = (
        "x: in i32[2, 4, 8], g1: in i32[2, 4, 8], g2: in i32[2, 4], a: out i32[2, 4, 8], b: out i32[2, 4], "
        "c: out i32[2, 4], d: out i32[2, 4, 8], e: out i32[2, 4, 8, 8], f: out i32[2, 4, 8, 2], s: out i32[2, 4, 8], "
        "hist: out i32[2, 4, 4], cat: out i32[2, 8, 8]"
    )
    rng = np.random.default_rng(4)
    assert_equal(
        kernel(parameters, REARRANGE, AXES + "axis e8 < 8\n"),
        x=numbers("i32", 2, 4, 8),
        g1=rng.integers(0, 8, (2, 4, 8)).astype(np.int32),
        g2=rng.integers(0, 8, (2, 4)).astype(np.int32),
    )


PHILOX = """
  %c: u32[p, n] = load c[p, n]
  %key: u32 = constant {value = 3735928559}
  %zero: u32 = constant {value = 0}
  %r0: u32[p, n], %r1: u32[p, n], %r2: u32[p, n], %r3: u32[p, n] = philox %c, %zero, %key, %zero, %key, %c {rounds = 10}
  store r0[p, n] = %r0
  store r1[p, n] = %r1
  store r2[p, n] = %r2
  store r3[p, n] = %r3
"""


def test_philox_gives_the_same_bits_without_64_bit_types() -> None:
    outputs = ", ".join(f"r{i}: out u32[2, 8]" for i in range(4))
    built = kernel(f"c: in u32[2, 8], {outputs}", PHILOX)
    assert not TARGET.emit(built, {}, {}).launch["x64"]
    assert_equal(built, c=np.random.default_rng(5).integers(0, 2**32, (2, 8), np.uint32))


@pytest.mark.parametrize("precision", ["ieee", "tf32", "tf32x3", "bf16"])
def test_a_dot_rounds_its_operands_as_its_precision_says(precision: str) -> None:
    body = f"""
      %x: f32[p, m, n] = load x[p, m, n]
      %y: f32[p, n, k] = load y[p, n, k]
      %d: f32[p, m, k] = dot %x, %y {{axis = n, precision = {precision}}}
      store d[p, m, k] = %d
    """
    built = kernel("x: in f32[2, 4, 8], y: in f32[2, 8, 8], d: out f32[2, 4, 8]", body)
    rng = np.random.default_rng(6)
    # One product a sum, so that its rounding is all there is.
    y = np.eye(8, dtype=np.float32)[None] * rng.standard_normal((2, 8, 1)).astype(np.float32)
    assert_equal(built, x=rng.standard_normal((2, 4, 8)).astype(np.float32), y=y)


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [("f8e4m3", "f8e5m2", "f32"), ("f8e4m3fnuz", "f8e4m3fnuz", "f32"), ("i4", "i4", "i32")],
)
def test_small_types_are_moved_cast_and_multiplied(left: str, right: str, result: str) -> None:
    body = f"""
      %x: {left}[p, m, n] = load x[p, m, n]
      %y: {right}[p, n, k] = load y[p, n, k]
      %d: {result}[p, m, k] = dot %x, %y {{axis = n, precision = ieee}}
      store d[p, m, k] = %d
      %f: f32[p, m, n] = cast %x
      store f[p, m, n] = %f
      %i: i32[p, m, n] = cast %x
      store i[p, m, n] = %i
      %z: f32[p, m, n] = load z[p, m, n]
      %c: {left}[p, m, n] = cast %z
      store c[p, m, n] = %c
    """
    shape = "[2, 4, 8]"
    parameters = f"x: in {left}{shape}, y: in {right}[2, 8, 8], z: in f32{shape}, d: out {result}{shape}, "
    built = kernel(parameters + f"f: out f32{shape}, i: out i32{shape}, c: out {left}{shape}", body)
    z = np.random.default_rng(7).standard_normal((2, 4, 8)).astype(np.float32) * 3
    assert_equal(built, x=numbers(left, 2, 4, 8), y=numbers(right, 2, 8, 8), z=z)


def test_a_dot_has_a_product_for_each_point_of_what_both_operands_keep() -> None:
    built = kernel(
        "x: in f32[4, 8, 8], y: in f32[8, 2, 4, 8], z: out f32[8, 2, 4, 8], v: out f32[4, 2]",
        """
      %x: f32[m, n, k] = load x[m, n, k]
      %y: f32[m, two, k, flat] = load y[k, two, m, flat]
      %z: f32[m, two, n, flat] = dot %x, %y {axis = k, precision = ieee}
      store z[flat, two, m, n] = %z
      %w: f32[m, n] = load x[m, 0, n]
      %u: f32[m, two, n] = load y[n, two, m, 0]
      %v: f32[m, two] = dot %w, %u {axis = n, precision = ieee}
      store v[m, two] = %v
    """,
        "axis m < 4\n axis two < 2\n axis n < 8\n axis k < 8\n axis flat < 8\n",
    )
    assert_equal(built, x=numbers("f32", 4, 8, 8), y=numbers("f32", 8, 2, 4, 8, seed=1))


def test_an_integer_that_varies_over_lanes_is_refused() -> None:
    body = """
      %i: i32[m] = load x[m]
      let %i {integer = place} at "k.py":7:1
      %y: i32[m] = load x[place]
      store y[m] = %y
    """
    built = kernel("x: in i32[4], y: out i32[4]", body, "integer place[m]\n axis m < 4\n")
    assert run_oracle(built, {"x": np.array([3, 2, 0, 1], np.int32)})["y"].tolist() == [1, 0, 3, 2]
    with pytest.raises(KdslError) as refusal:
        TARGET.emit(built, {}, {})
    assert (refusal.value.code, str(refusal.value.location)) == ("K0301", "k.py:7:1")


def test_scaled_dots() -> None:
    body = """
      %x: f8e4m3[p, m, n] = load x[p, m, n]
      %y: f4e2m1[p, n, k] = load y[p, n, k]
      %s: u8[p, m, two] = load s[p, m, two]
      %t: u8[h] = load t[h]
      %d: f32[p, m, k] = dot_scaled %x, %s, %y, %t {axis = n, left_group = two, right_group = h}
      store d[p, m, k] = %d
    """
    parameters = "x: in f8e4m3[2, 4, 8], y: in f4e2m1[2, 8, 8], s: in u8[2, 4, 2], t: in u8[4], d: out f32[2, 4, 8]"
    s, t = np.full((2, 4, 2), 127, np.uint8), np.array([126, 127, 128, 129], np.uint8)
    s[1, :, 1] = 130
    s[1, 2, 0] = 255
    x, y = numbers("f8e4m3", 2, 4, 8), numbers("f4e2m1", 2, 8, 8, span=3)
    assert_equal(kernel(parameters, body), x=x, y=y, s=s, t=t)


INDEXED = """
  %i: i32[p, m, n] = load i[p, m, n]
  %row: i32[m] = index {form = m}
  %ok: bool[p, m, n] = load ok[p, m, n]
  %v: f32[p, m, n] = load v[p, m, n]
  %a: f32[p, m, n] = load_at %row, %i, %ok {buffer = x, masked = true, fill = -1.5}
  store a[p, m, n] = %a
  store_at %v, %row, %i, %ok {buffer = b, masked = true}
  %last: f32[p, n] = load v[p, 3, n]
  %zero: i32 = constant {value = 0}
  store_at %last, %zero, %zero {buffer = b}
  atomic %v, %row, %i, %ok {buffer = sums, masked = true, combine = add}
  atomic %i, %i {buffer = most, combine = maximum}
  %old: f32[p, m, n] = atomic %v, %zero, %i {buffer = sums, combine = exchange}
  store old[p, m, n] = %old
  %two: i32[p, n] = load i[p, 2, n]
  %swap: i32[p, n] = atomic_cas %zero, %two, %two {buffer = most}
  store swap[p, n] = %swap
"""


def test_access_at_computed_places_takes_lanes_in_order() -> None:
    parameters = (
        "x: in f32[4, 8], i: in i32[2, 4, 8], ok: in bool[2, 4, 8], v: in f32[2, 4, 8], a: out f32[2, 4, 8], "
        "b: inout f32[4, 8], sums: inout f32[4, 8], most: inout i32[8], old: out f32[2, 4, 8], swap: out i32[2, 8]"
    )
    rng = np.random.default_rng(8)
    assert_equal(
        kernel(parameters, INDEXED),
        x=numbers("f32", 4, 8),
        i=rng.integers(0, 8, (2, 4, 8)).astype(np.int32),
        ok=rng.random((2, 4, 8)) < 0.7,
        v=rng.standard_normal((2, 4, 8)).astype(np.float32),
        b=numbers("f32", 4, 8),
        sums=numbers("f32", 4, 8),
        most=np.array([0, 3, 0, 0, 9, 0, 0, 1], np.int32),
    )


CONTROL = """
  %x: f32[p, n] = load x[p, n]
  %here: i32[p] = index {form = p}
  %one: i32 = constant {value = 1}
  %first: bool[p] = lt %here, %one
  %y: f32[p, n] = if %first () {
    store side[p, n] = %x
    %minus: f32[p, n] = neg %x
    yield %minus
  } () {
    %c: f32 = constant {value = 2.0}
    yield %c
  }
  store y[p, n] = %y
  if %first () {
    %seven: f32 = constant {value = 7.0}
    store side[p, 0] = %seven
    yield
  } () {
    yield
  }
  %limit: f32 = constant {value = 100.0}
  %half: f32 = constant {value = 3.0}
  %start: f32[p] = load x[p, 0]
  %z: f32[p], %count: i32[p] = while %start, %one (%t: f32[p], %tc: i32[p]) {
    %more: bool[p] = lt %t, %limit
    yield %more
  } (%b: f32[p], %bc: i32[p]) {
    %next: f32[p] = add %b, %half
    %counted: i32[p] = add %bc, %one
    store trace[p] = %next
    yield %next, %counted
  }
  store z[p] = %z
  store count[p] = %count
  %zero: i32 = constant {value = 0}
  while () {
    %old: i32[p] = atomic %one, %zero {buffer = lock, combine = add}
    %five: i32 = constant {value = 5}
    %again: bool[p] = lt %old, %five
    yield %again
  } () {
    atomic %one, %one {buffer = lock, combine = add}
    yield
  }
"""


def test_branches_and_while_loops_carry_what_they_write() -> None:
    parameters = (
        "x: in f32[2, 8], y: out f32[2, 8], side: inout f32[2, 8], z: out f32[2], count: out i32[2], "
        "trace: inout f32[2], lock: inout i32[2]"
    )
    assert_equal(
        kernel(parameters, CONTROL),
        x=numbers("f32", 2, 8),
        side=np.zeros((2, 8), np.float32),
        trace=np.zeros(2, np.float32),
        lock=np.zeros(2, np.int32),
    )


LET = """
  %e: i32[p] = load ends[p]
  let %e {integer = stop}
  %zero: f32 = constant {value = 0.0}
  %sum: f32[p] = for b (%acc: f32[p] = %zero) {
    %x: f32[p, b, n] = load x[8*b + n]
    %s: f32[p, b] = reduce %x {axis = n, combine = add}
    %next: f32[p, b] = add %acc, %s
    yield %next
  }
  store y[p] = %sum
"""


def test_loops_end_at_integers_that_a_program_loads() -> None:
    axes = "program p < 3\n integer stop[p]\n loop b < cdiv(stop, 8)\n axis n < 8 where 8*b + n < stop\n"
    built = kernel(
        "ends: in i32[3], x: in f32[20], y: out f32[3]", LET.replace("%acc: f32[p]", "%acc: f32[p, b]"), axes
    )
    assert_equal(built, ends=np.array([20, -3, 9], np.int32), x=numbers("f32", 20))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('%x: f32[p] = load x[p]\n %ok: bool[p] = gt %x, %x\n assert %ok {message = "no"} at 7:3', "K0301"),
        ('%x: f32[p] = load x[p]\n print %x {message = "x"} at 7:3', "K0301"),
        ("%w: f64 = constant {value = 1.0}\n %f: f64 = fma %w, %w, %w at 7:3", "K0302"),
        ("%x: f32[p] = load x[p]\n %f: bf16[p] = cast %x {rounding = zero} at 7:3", "K0301"),
        ("%x: f32[p] = load x[p]\n %f: f8e4m3[p] = cast %x {saturate = true} at 7:3", "K0301"),
    ],
)
def test_what_xla_cannot_say_is_refused_at_its_line(body: str, code: str) -> None:
    with pytest.raises(KdslError) as refusal:
        TARGET.emit(kernel("x: in f32[2], y: inout f32[2]", body), {}, {})
    assert refusal.value.code == code
    assert refusal.value.location is not None and refusal.value.location.line == 7


RAGGED = """
kernel ragged(x: in f32[2, N], a: out f32[2, N], b: out f32[2, N], c: out f32[2, 1], d: out f32[2, N]) {
  size N
  program p < 2
  axis n < 128 where n < N
  %x: f32[p, n] = load x[p, n]
  %a: f32[p, n] = scan %x {axis = n, combine = maximum, reverse = true}
  store a[p, n] = %a
  %b: f32[p, n] = sort %x {axis = n, descending = true}
  store b[p, n] = %b
  %c: f32[p] = reduce_by %x {axis = n} (%c0: f32[p, n], %c1: f32[p, n]) {
    %product: f32[p, n] = mul %c0, %c1
    yield %product
  }
  store c[p, 0] = %c
  %i: i32[n] = index {form = n}
  %d: f32[p, n] = gather %x, %i {axis = n}
  store d[p, n] = %d
}
"""


def test_lanes_beyond_the_edge_take_no_part() -> None:
    built, sizes = verify(parse_kernel(RAGGED)), {"N": 77}
    arguments = {"x": np.random.default_rng(9).choice([-1, 1, 2], (2, 77), p=[0.5, 0.4, 0.1]).astype(np.float32)}
    got, want = TARGET.run(TARGET.emit(built, {}, sizes), sizes, arguments), run_oracle(bind(built, sizes), arguments)
    for name in want:
        np.testing.assert_array_equal(got[name], want[name], err_msg=name)


def test_every_op_is_emitted_or_refused_with_a_code() -> None:
    said, refused = set(), set()
    for op in OPS:
        for dtype in ("f32", "i32", "bool", "u32"):
            built = minimal(op, DTYPES[dtype])
            if built is None:
                continue
            try:
                compile(TARGET.emit(built, {}, {}).text, op, "exec")
                said.add(op)
            except KdslError as refusal:
                assert refusal.code in ("K0301", "K0302", "K0308"), (op, dtype, refusal)
                refused.add(op)
    assert refused - said == {"assert", "print"}
    assert said | refused == OPS.keys()
