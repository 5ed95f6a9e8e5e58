"""The ops beyond the first ones, each family in a small kernel of two programs: interpreted, judged, and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kdsl.backends.pallas import TARGET
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
M, N = 8, 128
AXES = f"program p < 2\n axis m < {M}\n axis n < {N}\n axis k < {N}\n axis h < 4\n axis two < 2\n axis j < {2 * N}\n"
TILE = f"[{2 * M}, {N}]"


def kernel(parameters: str, body: str) -> Kernel:
    return verify(parse_kernel(f"kernel probe({parameters}) {{\n {AXES}{body}\n}}"))


def load(dtype: str, *names: str) -> str:
    return "".join(f"%{name}: {dtype}[p, m, n] = load {name}[{M}*p + m, n]\n" for name in names)


def store(name: str, columns: str = "n") -> str:
    return f"store {name}_out[{M}*p + m, {columns}] = %{name}\n"


def both(built: Kernel, arguments: dict[str, Any], *archs: str) -> list[tuple[str, Array, Array]]:
    """What Pallas' interpreter and the oracle give; the same source compiles, for v5e if nothing else is said."""
    source = TARGET.emit(built, {}, {})
    got, want = TARGET.run(source, {}, arguments), run_oracle(built, arguments)
    for arch in archs or ("v5e",):
        report = TARGET.check(source, {}, arch)
        assert report.accepted, (arch, report.message)
    return [(name, _plain(got[name]), _plain(want[name])) for name in want]


def _plain(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.kind == "V" or "float" in array.dtype.name else array


def assert_equal(built: Kernel, **arguments: Any) -> None:
    for name, got, want in both(built, arguments):
        np.testing.assert_array_equal(got, want, err_msg=name)


def numbers(dtype: str, *shape: int, seed: int = 0, span: int = 4) -> Array:
    """Small integers: exact in every dtype and any order."""
    return np.random.default_rng(seed).integers(-span, span + 1, shape).astype(DTYPES[dtype].numpy)


def lane_kernel(dtype: str, ops: list[tuple[str, int, str]]) -> Kernel:
    """A store for each pointwise op: its name, number of operands and result dtype."""
    parameters = ", ".join(f"{name}: in {dtype}{TILE}" for name in "xyz")
    body = load(dtype, *"xyz")
    for i, (op, count, result) in enumerate(ops):
        body += f"%r{i}: {result}[p, m, n] = {op} {', '.join(f'%{name}' for name in 'xyz'[:count])}\n" + store(f"r{i}")
        parameters += f", r{i}_out: out {result}{TILE}"
    return kernel(parameters, body)


@pytest.mark.parametrize("dtype", ["i32", "u32"])
def test_integer_functions_hold_over_the_whole_range(dtype: str) -> None:
    limits, rng = np.iinfo(DTYPES[dtype].numpy), np.random.default_rng(1)
    x, y, z = (rng.integers(limits.min, limits.max, (2 * M, N), DTYPES[dtype].numpy, endpoint=True) for _ in range(3))
    y[:, ::4], y[1::2] = 0, y[1::2] % 7
    ops = [
        ("truncdiv", 2, dtype),
        ("truncmod", 2, dtype),
        ("mulhi", 2, dtype),
        ("clamp", 3, dtype),
        ("bitcast", 1, "f32"),
    ]
    assert_equal(lane_kernel(dtype, ops), x=x & limits.max >> 1, y=y, z=z)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_functions_that_round_nothing_give_the_oracles_bits(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, y, z = (rng.standard_normal((2 * M, N)).astype(DTYPES[dtype].numpy) * 3 for _ in range(3))
    x[0, :8] = [np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, -2.5]
    y[0, :8] = [1, np.nan, 2, np.nan, -3, 1, 2, -1]
    ops = [(name, 1, "bool") for name in ("is_nan", "is_inf", "is_finite")]
    ops += [(name, 1, dtype) for name in ("trunc", "round")]
    ops += [(name, 2, dtype) for name in ("maxnum", "minnum", "copysign")] + [("clamp", 3, dtype)]
    assert_equal(lane_kernel(dtype, ops), x=x, y=y, z=np.abs(z))


FUNCTIONS = [
    "log10",
    "log1p",
    "expm1",
    "cbrt",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
]
FUNCTIONS += ["pow", "atan2"]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_functions_are_as_near_as_the_accuracy_table_says(dtype: str) -> None:
    rng, numpy = np.random.default_rng(3), DTYPES[dtype].numpy
    x, y = (rng.uniform(0.01, 0.99, (2 * M, N)).astype(numpy) for _ in range(2))
    built = lane_kernel(dtype, [(op, 1 + (op in ("pow", "atan2")), dtype) for op in FUNCTIONS])
    # acosh starts at 1.
    for op, got, want in both(built, {"x": x, "y": y, "z": y}):
        name = FUNCTIONS[int(op.removeprefix("r").removesuffix("_out"))]
        unit = 2.0 ** (np.floor(np.log2(np.abs(want.astype(np.float64)))) - DTYPES[dtype].mantissa)
        error = np.abs(got.astype(np.float64) - want.astype(np.float64)) / unit
        assert (
            name == "acosh" or error.max() <= TARGET.accuracy.get((name, dtype), TARGET.accuracy[name, "*"]).ulp + 0.5
        ), name


@pytest.mark.parametrize("dtype", ["i32", "f32", "bf16"])
def test_scans(dtype: str) -> None:
    combines = ["add", "mul", "maximum", "minimum"] + (["and", "or"] if dtype == "i32" else [])
    parameters, body = f"x: in {dtype}{TILE}", load(dtype, "x")
    for combine in combines:
        for axis, reverse in (("n", ""), ("m", ", reverse = true")):
            name = f"{combine}_{axis}"
            body += f"%{name}: {dtype}[p, m, n] = scan %x {{axis = {axis}, combine = {combine}{reverse}}}\n" + store(
                name
            )
            parameters += f", {name}_out: out {dtype}{TILE}"
    x = numbers(dtype, 2 * M, N, span=1)
    x[:, 20:] = 1  # so that no product or sum leaves the integers that bfloat16 holds
    assert_equal(kernel(parameters, body), x=x)


COMBINES = """
  %i: i32[n] = index {form = n}
  %best: f32[p, m], %at: i32[p, m] = reduce_by %x, %i {axis = n} (
    %a: f32[p, m, n], %b: i32[p, m, n], %c: f32[p, m, n], %d: i32[p, m, n]
  ) {
    %wins: bool[p, m, n] = gt %c, %a
    %v: f32[p, m, n] = select %wins, %c, %a
    %which: i32[p, m, n] = select %wins, %d, %b
    yield %v, %which
  }
  store best_out[p, m] = %best
  store at_out[p, m] = %at
  %run: f32[p, m, n] = scan_by %x {axis = n, reverse = true} (%e: f32[p, m, n], %f: f32[p, m, n]) {
    %minus: f32 = constant {value = 2.0}
    %double: f32[p, m, n] = mul %f, %minus
    %s: f32[p, m, n] = add %e, %double
    %less: f32[p, m, n] = sub %s, %f
    yield %less
  }
"""


def test_combines_of_the_authors_own_keep_the_order_of_lanes() -> None:
    parameters = f"x: in f32{TILE}, best_out: out f32[2, {M}], at_out: out i32[2, {M}], run_out: out f32{TILE}"
    assert_equal(kernel(parameters, load("f32", "x") + COMBINES + store("run")), x=numbers("f32", 2 * M, N, span=2))


LANES = """
  %i: i32[p, m] = load i[p, m]
  %pick: i32[p, m] = gather %x, %i {axis = n}
  store pick_out[p, m] = %pick
  %g: i32[p, m, n] = load g[p, m, n]
  %rows: i32[p, m, n] = gather %x, %g {axis = n}
  %few: i32[h] = load few[h]
  %some: i32[p, m, h] = gather %x, %few {axis = n}
  %top: i32[p, m, h], %place: i32[p, m, h] = topk %x {axis = n, target = h}
  %y: i32[p, m, k] = relabel %x {source = n, target = k}
  %cat: i32[p, m, j] = concat %x, %y {source = [n, k], target = j}
  %first: i32[p, n] = load row[p, n]
  %counts: i32[p, h] = histogram %first {axis = n, target = h}
  store counts_out[p, h] = %counts
"""


def test_lanes_are_picked_ranked_joined_and_counted() -> None:
    parameters = (
        f"x: in i32{TILE}, i: in i32[2, {M}], row: in i32[2, {N}], g: in i32[2, {M}, {N}], few: in i32[4], "
        f"rows_out: out i32{TILE}, some_out: out i32[{2 * M}, 4], pick_out: out i32[2, {M}], "
        f"top_out: out i32[{2 * M}, 4], place_out: out i32[{2 * M}, 4], cat_out: out i32[{2 * M}, 256], "
        f"counts_out: out i32[2, 4]"
    )
    body = load("i32", "x") + LANES + store("top", "h") + store("place", "h") + store("cat", "j") + store("rows")
    body += store("some", "h")
    rng = np.random.default_rng(4)
    i, g = (rng.integers(0, N, shape).astype(np.int32) for shape in ((2, M), (2, M, N)))
    x, row, few = numbers("i32", 2 * M, N, span=9), numbers("i32", 2, N), np.array([127, 0, 5, 5], np.int32)
    assert_equal(kernel(parameters, body), x=x, i=i, g=g, few=few, row=row)


def test_sort_is_stable_and_puts_nan_last() -> None:
    body = load("f32", "x") + "%i: i32[m] = index {form = m}\n"
    body += "%u: f32[p, m, n], %ui: i32[p, m, n] = sort %x, %i {axis = m}\n"
    body += "%d: f32[p, m, n], %di: i32[p, m, n] = sort %x, %i {axis = m, descending = true}\n"
    outputs = ", ".join(f"{name}_out: out {'i32' if name[1:] else 'f32'}{TILE}" for name in ("u", "ui", "d", "di"))
    x = numbers("f32", 2 * M, N, span=2)
    x[2, ::5] = x[5] = np.nan
    assert_equal(kernel(f"x: in f32{TILE}, {outputs}", body + "".join(map(store, ("u", "ui", "d", "di")))), x=x)


def test_lanes_are_flipped_interleaved_and_taken_apart() -> None:
    body = (
        load("f32", "x")
        + """
      %row: f32[p, n] = load row[p, n]
      %across: f32[p, m, n] = flip %x {axis = n}
      %down: f32[p, m, n] = flip %x {axis = m}
      %pair: f32[p, m, n, two] = join %x, %across {axis = two}
      %woven: f32[p, m, j] = reshape %pair {source = [n, two], target = [j]}
      %rows: f32[p, n, two] = join %row, %row {axis = two}
      store rows_out[p, n, two] = %rows
      %given: f32[p, m, n, two] = reshape %w {source = [j], target = [n, two]}
      %even: f32[p, m, n], %odd: f32[p, m, n] = split %given {axis = two}
    """
    )
    body = body.replace("%row: f32", f"%w: f32[p, m, j] = load w[{M}*p + m, j]\n %row: f32", 1)
    names = ("across", "down", "even", "odd")
    outputs = ", ".join(f"{name}_out: out f32{TILE}" for name in names)
    wide = f"[{2 * M}, {2 * N}]"
    parameters = f"x: in f32{TILE}, w: in f32{wide}, row: in f32[2, {N}], {outputs}, woven_out: out f32{wide}, "
    built = kernel(
        parameters + f"rows_out: out f32[2, {N}, 2]", body + "".join(map(store, names)) + store("woven", "j")
    )
    x, w, row = numbers("f32", 2 * M, N), numbers("f32", 2 * M, 2 * N, seed=1), numbers("f32", 2, N, seed=2)
    assert_equal(built, x=x, w=w, row=row)


def test_topk_ranks_nan_first_and_minus_infinity_last() -> None:
    parameters = f"x: in f32{TILE}, top_out: out f32[{2 * M}, 4], place_out: out i32[{2 * M}, 4]"
    body = load("f32", "x") + "%top: f32[p, m, h], %place: i32[p, m, h] = topk %x {axis = n, target = h}\n"
    x = np.full((2 * M, N), -np.inf, np.float32)
    x[1, [5, 90]], x[2, 7] = np.nan, 3
    assert_equal(kernel(parameters, body + store("top", "h") + store("place", "h")), x=x)


def test_philox_gives_the_oracles_bits() -> None:
    body = load("u32", "x") + "%key: u32 = constant {value = 3735928559}\n %zero: u32 = constant {value = 0}\n"
    words = [f"r{i}" for i in range(4)]
    body += ", ".join(f"%{word}: u32[p, m, n]" for word in words)
    body += " = philox %x, %zero, %key, %zero, %key, %x {rounds = 10}\n" + "".join(map(store, words))
    parameters = f"x: in u32{TILE}, " + ", ".join(f"{word}_out: out u32{TILE}" for word in words)
    assert_equal(kernel(parameters, body), x=np.random.default_rng(5).integers(0, 2**32, (2 * M, N), np.uint32))


@pytest.mark.parametrize("precision", ["ieee", "tf32", "bf16x3", "bf16"])
def test_a_dot_rounds_its_operands_as_its_precision_says(precision: str) -> None:
    body = (
        load("f32", "x")
        + f"%w: f32[n, k] = load w[n, k]\n %d: f32[p, m, k] = dot %x, %w {{axis = n, precision = {precision}}}\n"
    )
    built = kernel(f"x: in f32{TILE}, w: in f32[{N}, {N}], d_out: out f32{TILE}", body + store("d", "k"))
    rng = np.random.default_rng(6)
    # One product a sum, so that its rounding is all there is.
    w = np.diag(rng.standard_normal(N)).astype(np.float32)
    assert_equal(built, x=rng.standard_normal((2 * M, N)).astype(np.float32), w=w)


@pytest.mark.parametrize(("left", "right", "result"), [("f8e4m3", "f8e5m2", "f32"), ("i4", "i4", "i32")])
def test_small_types_are_moved_cast_and_multiplied(left: str, right: str, result: str) -> None:
    body = (
        load(left, "x")
        + load("f32", "z")
        + f"""
      %w: {right}[n, k] = load w[n, k]
      %d: {result}[p, m, k] = dot %x, %w {{axis = n, precision = ieee}}
      %f: f32[p, m, n] = cast %x
      %i: i32[p, m, n] = cast %x
      %c: {left}[p, m, n] = cast %z
    """
    )
    parameters = f"x: in {left}{TILE}, w: in {right}[{N}, {N}], z: in f32{TILE}, d_out: out {result}{TILE}, "
    parameters += f"f_out: out f32{TILE}, i_out: out i32{TILE}, c_out: out {left}{TILE}"
    built = kernel(parameters, body + store("d", "k") + store("f") + store("i") + store("c"))
    z = np.random.default_rng(7).standard_normal((2 * M, N)).astype(np.float32) * 3
    assert_equal(built, x=numbers(left, 2 * M, N), w=numbers(right, N, N), z=z)


BATCHED = """kernel batched(x: in f32[8, 8, 128], y: in f32[8, 128, 128], z: out f32[8, 8, 128]) {
  program p < 2
  axis b < 4
  axis m < 8
  axis n < 128
  axis k < 128
  %x: f32[p, b, m, k] = load x[4*p + b, m, k]
  %y: f32[p, b, n, k] = load y[4*p + b, k, n]
  %z: f32[p, b, m, n] = dot %x, %y {axis = k, precision = ieee}
  store z[4*p + b, m, n] = %z
}
"""


def test_a_dot_has_a_matrix_for_each_point_of_an_axis_that_both_operands_keep() -> None:
    arguments = {"x": numbers("f32", 8, 8, 128), "y": numbers("f32", 8, 128, 128, seed=1)}
    for name, got, want in both(verify(parse_kernel(BATCHED)), arguments, "v5e", "v6e", "v7x"):
        np.testing.assert_array_equal(got, want, err_msg=name)


@pytest.mark.parametrize(
    ("dot", "columns", "problem"),
    [
        (
            "%w: f32[p, b, k] = load x[4*p + b, 0, k]\n"
            '%z: f32[p, b, n] = dot %w, %y {axis = k, precision = ieee} at "k.py":7:1',
            "n < 128",
            "a dot of a vector for each point of b",
        ),
        (
            '%z: f32[p, b, m] = dot %x, %x {axis = k, precision = ieee} at "k.py":7:1',
            "m < 8",
            "more than two dimensions",
        ),
    ],
)
def test_other_dots_over_shared_axes_are_refused(dot: str, columns: str, problem: str) -> None:
    axis, extent = columns.split(" < ")
    head = BATCHED.split("  %z", 1)[0].replace("z: out f32[8, 8, 128]", f"z: out f32[8, {extent}]")
    built = verify(parse_kernel(f"{head}{dot}\n store z[4*p + b, {axis}] = %z\n}}"))
    with pytest.raises(KdslError) as refusal:
        TARGET.emit(built, {}, {})
    assert (refusal.value.code, str(refusal.value.location)) == ("K0308", "k.py:7:1")
    assert problem in refusal.value.message


def test_scaled_dots() -> None:
    body = (
        load("f8e4m3", "x")
        + f"""
      %w: f8e5m2[n, k] = load w[n, k]
      %s: u8[p, m, h] = load s[{M}*p + m, h]
      %t: u8[h] = load t[h]
      %d: f32[p, m, k] = dot_scaled %x, %s, %w, %t {{axis = n, left_group = h, right_group = h}}
    """
    )
    parameters = f"x: in f8e4m3{TILE}, w: in f8e5m2[{N}, {N}], s: in u8[{2 * M}, 4], t: in u8[4], d_out: out f32{TILE}"
    s, t = np.full((2 * M, 4), 127, np.uint8), np.array([126, 127, 128, 129], np.uint8)
    s[1, 1], s[2, 0] = 130, 255
    built = kernel(parameters, body + store("d", "k"))
    arguments = {"x": numbers("f8e4m3", 2 * M, N), "w": numbers("f8e5m2", N, N), "s": s, "t": t}
    ((_, got, want),) = both(built, arguments, *TARGET.archs)
    np.testing.assert_array_equal(got, want)


CONTROL = """
  %here: i32[p] = index {form = p}
  %one: i32 = constant {value = 1}
  %first: bool[p] = lt %here, %one
  %y: f32[p, m, n] = if %first () {
    %minus: f32[p, m, n] = neg %x
    yield %minus
  } () {
    %c: f32 = constant {value = 2.0}
    yield %c
  }
  %limit: f32 = constant {value = 100.0}
  %start: f32[p, m] = reduce %x {axis = n, combine = maximum}
  %z: f32[p, m, n], %count: i32[p] = while %y, %one (%t: f32[p, m, n], %tc: i32[p]) {
    %row: f32[p, m] = reduce %t {axis = n, combine = maximum}
    %all: f32[p] = reduce %row {axis = m, combine = maximum}
    %more: bool[p] = lt %all, %limit
    yield %more
  } (%b: f32[p, m, n], %bc: i32[p]) {
    %abs: f32[p, m, n] = abs %x
    %twice: f32[p, m, n] = add %b, %abs
    %next: f32[p, m, n] = add %twice, %start
    %counted: i32[p] = add %bc, %one
    yield %next, %counted
  }
  store count_out[p] = %count
"""


def test_branches_are_selects_and_while_loops_carry_tiles() -> None:
    parameters = f"x: in f32{TILE}, y_out: out f32{TILE}, z_out: out f32{TILE}, count_out: out i32[2]"
    built = kernel(parameters, load("f32", "x") + CONTROL + store("y") + store("z"))
    for name, got, want in both(built, {"x": np.abs(numbers("f32", 2 * M, N))}, *TARGET.archs):
        np.testing.assert_array_equal(got, want, err_msg=name)


@pytest.mark.parametrize(
    ("line", "code", "problem"),
    [
        ("%f: f32[p, m, n] = fma %x, %x, %x", "K0301", "not rounded correctly"),
        ("%f: f32[p, m, n] = precise_div %x, %x", "K0301", "not rounded correctly"),
        ("%f: f32[p, m, n] = fmod %x, %x", "K0301", "not exact"),
        ("%f: f32[n] = load_at %i, %i {buffer = x}", "K0308", "no gather"),
        ("%f: f32[p, m, k, h] = gather %x, %kh {axis = n}", "K0308", "two axes of its own"),
        ("%f: i32[p, m, h] = histogram %ix {axis = n, target = h}", "K0308", "two dimensions"),
        ("atomic %x, %i, %i {buffer = f_out, combine = add}", "K0308", "atomics"),
        ("%f: bf16[p, m, n] = cast %x {rounding = zero}", "K0301", "rounds to nearest"),
        ('assert %ok {message = "no"}', "K0301", "cannot stop"),
        ('print %x {message = "x"}', "K0301", "stays on the device"),
        ("if %uniform () {\n store f_out[0, 0] = %zero at 7:3\n yield\n } () {\n yield\n }", "K0308", "in a branch"),
    ],
)
def test_what_mosaic_lacks_is_refused_at_its_line(line: str, code: str, problem: str) -> None:
    body = (
        load("f32", "x")
        + """
      %i: i32[n] = index {form = n}
      %ix: i32[p, m, n] = cast %x
      %kh: i32[k, h] = index {form = k + h}
      %ok: bool[p, m, n] = gt %x, %x
      %zero: f32 = constant {value = 0.0}
      %uniform: bool = gt %zero, %zero
    """
    )
    with pytest.raises(KdslError, match=problem) as refusal:
        TARGET.emit(kernel(f"x: in f32{TILE}, f_out: inout f32{TILE}", f"{body}{line} at 7:3"), {}, {})
    assert refusal.value.code == code
    assert refusal.value.location is not None and refusal.value.location.line == 7


def test_a_float_type_that_mosaic_lacks_is_refused() -> None:
    built = lane_kernel("f8e4m3fnuz", [("bitcast", 1, "i8")])
    with pytest.raises(KdslError, match="f8e4m3fnuz") as refusal:
        TARGET.emit(built, {}, {})
    assert refusal.value.code == "K0302"


RAGGED = """
kernel ragged(x: in f32[2, N], a: out f32[2, N], c: out f32[2, 1], d: out f32[2, N]) {
  size N
  program p < 2
  axis n < 128 where n < N
  %x: f32[p, n] = load x[p, n]
  %a: f32[p, n] = scan %x {axis = n, combine = maximum, reverse = true}
  store a[p, n] = %a
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
    assert refused - said == {
        *("assert", "print", "let", "load_at", "store_at", "atomic", "atomic_cas"),
        *("fma", "fmod", "precise_div", "precise_sqrt"),
    }
    assert said | refused == OPS.keys()
