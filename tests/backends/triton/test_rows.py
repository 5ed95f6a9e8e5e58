"""Every op of the table that is not pointwise: emitted code against the oracle, compiled, or refused with a code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from kdsl.backends.triton import TARGET
from kdsl.diagnostics import KdslError
from kdsl.interpreter import run
from kdsl.ir.dtypes import DTYPES, DType
from kdsl.ir.kernel import Buffer, Kernel, bind
from kdsl.ir.ops import OPS
from kdsl.ir.text import parse_kernel
from tests.backends.triton import kernels, kernels_control, kernels_tiles
from tests.backends.triton.test_ops import assert_same
from tests.ir.minimal import LANES, minimal

pytest.importorskip("triton", reason="an extra; tests/test_extras.py fails without it")
pytest.importorskip("torch", reason="an extra; tests/test_extras.py fails without it")

ARCHS = ("cuda:90", "hip:gfx942")
REARRANGING = [name for name, spec in OPS.items() if spec.pointwise is None and name not in ("load", "yield", "index")]


def integers(kernel: Kernel, sizes: Mapping[str, int], **ranges: tuple[int, int]) -> dict[str, Any]:
    """Small integers for every input, in ranges by name; sums of them are exact in any order."""
    generator = np.random.default_rng(0)
    arguments: dict[str, Any] = {}
    for parameter in bind(kernel, sizes).parameters:
        if isinstance(parameter, Buffer) and parameter.role != "out":
            low, high = ranges.get(parameter.name, (0, 2) if parameter.dtype.bits < 16 else (-3, 5))
            low = max(low, 0) if parameter.dtype.kind in ("uint", "bool") else low
            shape = [extent.evaluate({}) for extent in parameter.shape]
            arguments[parameter.name] = generator.integers(low, high, shape).astype(parameter.dtype.numpy)
        elif not isinstance(parameter, Buffer):
            arguments[parameter.name] = True if parameter.dtype.kind == "bool" else 1
    return arguments


def assert_agrees(
    kernel: Kernel, sizes: Mapping[str, int], given: Mapping[str, Any], unmasked: Mapping[str, Any] | None = None
) -> None:
    expected = run(bind(kernel, sizes), given)
    source = TARGET.emit(kernel, {}, sizes)
    got = TARGET.run(source, sizes, given)
    for name in expected:
        touched = (unmasked or {}).get(name, ...)
        assert_same(got[name][touched], expected[name][touched], f"{name}\n{source.text}")


def minimal_kernels(dtype: DType) -> Iterator[tuple[str, Kernel]]:
    for op in REARRANGING:
        kernel = minimal(op, dtype)
        if kernel is not None:
            yield op, kernel


@pytest.mark.parametrize("name", ["f32", "bf16", "i8", "u32", "i64", "bool", "f8e4m3"])
def test_every_op_is_as_the_oracle_says_or_refused(name: str) -> None:
    refused = []
    for op, kernel in minimal_kernels(DTYPES[name]):
        mask = np.arange(LANES) % 3 != 0
        given = integers(kernel, {}) | {"i": np.random.default_rng(0).permutation(LANES).astype(np.int32), "m": mask}
        given = {key: value for key, value in given.items() if key in {p.name for p in kernel.parameters}}
        given |= {"m": mask[:1]} if op == "if" else {}
        if "z" in given and op == "dot_scaled":
            given["z"] = np.arange(120, 136, dtype=np.uint8).reshape(LANES, 1)
        try:
            # What an atomic gives in a lane that the mask leaves out means nothing.
            assert_agrees(kernel, {}, given, {"p": mask} if op == "atomic" else None)
        except KdslError as error:
            assert error.code == "K0302", op
            refused.append(op)
    assert refused == REFUSED.get(name, [])


REFUSED = {
    "bf16": ["atomic_cas"],
    "f32": ["atomic_cas", "dot_scaled"],
    "i8": ["atomic", "atomic_cas"],
    "i64": ["dot"],
    "bool": ["atomic_cas"],
    "f8e4m3": ["argument"],
}


RAGGED = {
    "SCANS": {"M": 5, "N": 7},
    "ORDERS": {"M": 5, "N": 7},
    "MOVES": {"M": 7},
    "GATHERS": {},
    "PRODUCTS": {"M": 5, "N": 7, "K": 9},
    "BRANCHES": {"M": 9, "N": 11},
    "SEARCH": {"M": 5, "N": 6},
    "REPORTS": {"N": 5},
    "RUNS": {"T": 30, "B": 4},
}


def ragged(name: str) -> tuple[Kernel, Mapping[str, int], dict[str, Any]]:
    text = getattr(kernels_tiles, name, None) or getattr(kernels_control, name)
    kernel, sizes = kernels.kernel(text), RAGGED[name]
    given = integers(kernel, sizes, i=(0, 8), j=(0, 8), ends=(0, 10), **({"x": (0, 9)} if name == "REPORTS" else {}))
    if name == "ORDERS":
        given["x"][1, 2:5] = np.nan, -np.inf, -0.0
    return kernel, sizes, given


@pytest.mark.parametrize("name", [name for name in RAGGED if name != "RUNS"])
def test_ragged_axes_and_nested_branches(name: str) -> None:
    assert_agrees(*ragged(name))


def test_access_at_computed_places_happens_once_a_lane_and_a_program() -> None:
    kernel, sizes = kernels.kernel(kernels_control.ACCESSES), {"N": 13}
    given = integers(kernel, sizes) | {"i": np.random.default_rng(0).permutation(13).astype(np.int32)}
    given["x"][3] = np.nan
    given["total"][0] = 0
    assert_agrees(kernel, sizes, given)


def test_every_kind_of_atomic() -> None:
    kernel = kernels.kernel(kernels_control.ATOMICS)
    given = integers(kernel, {}, x=(0, 16), lock=(0, 1)) | {"m": np.array([True, False] + [True] * 5 + [False])}
    assert_agrees(kernel, {}, given)


def test_loops_and_masks_end_where_a_loaded_number_says() -> None:
    kernel, sizes = kernels.kernel(kernels_control.RUNS), RAGGED["RUNS"]
    given = {
        "x": np.arange(30, dtype=np.float32),
        "starts": np.array([0, 5, 9, 20], np.int32),
        "stops": np.array([5, 9, 9, 30], np.int64),
        "p": np.zeros(30, np.float32),
    }
    assert_agrees(kernel, sizes, given)


COMPILED = ["SCANS", "ORDERS", "MOVES", "GATHERS", "ACCESSES", "BRANCHES", "SEARCH", "REPORTS", "RUNS", "ATOMICS"]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", COMPILED)
def test_it_compiles(name: str, arch: str) -> None:
    text = getattr(kernels_tiles, name, None) or getattr(kernels_control, name)
    kernel = kernels.kernel(text)
    sizes = {"N": 13} if name == "ACCESSES" else RAGGED.get(name, {})
    report = TARGET.check(TARGET.emit(kernel, {}, sizes), sizes, arch)
    assert report.accepted, report.message


def test_a_dot_rounds_f32_operands_as_its_precision_says() -> None:
    """Factors with bits past those that a precision keeps, times powers of two: exact once rounded."""
    kernel, sizes = kernels.kernel(kernels_tiles.PRODUCTS), {"M": 16, "N": 16, "K": 16}
    a = np.diag(1 + np.arange(16) * 2.0**-13 + 2.0**-9).astype(np.float32)
    given = {"a": a, "b": np.eye(16, dtype=np.float32), "v": np.full(16, 2.0, np.float32)}
    source = TARGET.emit(kernel, {}, sizes)
    got, expected = TARGET.run(source, sizes, given), run(bind(kernel, sizes), given)
    for name in "cdefg":
        assert_same(got[name], expected[name], f"{name}\n{source.text}")
    assert len({got[name].tobytes() for name in "cde"}) == 3


BATCHED = """kernel batched(x: in f32[B, 16, K], y: in f32[K, B, 16], z: out f32[16, B, 16], v: out f32[B, 16]) {
  size B
  size K
  program p < cdiv(B, 2)
  axis b < 2 where 2*p + b < B
  axis i < 16
  axis j < 16
  axis k < 32 where k < K
  %x: f32[p, b, i, k] = load x[2*p + b, i, k]
  %y: f32[p, b, j, k] = load y[k, 2*p + b, j]
  %z: f32[p, b, i, j] = dot %x, %y {axis = k, precision = ieee}
  store z[i, 2*p + b, j] = %z
  %w: f32[p, b, k] = load x[2*p + b, 0, k]
  %v: f32[p, b, j] = dot %w, %y {axis = k, precision = ieee}
  store v[2*p + b, j] = %v
}
"""


def test_a_dot_has_a_matrix_for_each_point_of_an_axis_that_both_operands_keep() -> None:
    kernel = parse_kernel(BATCHED)
    assert_agrees(kernel, {"B": 3, "K": 21}, integers(kernel, {"B": 3, "K": 21}))


@pytest.mark.parametrize("arch", ["cuda:80", "hip:gfx942"])
def test_a_dot_of_a_matrix_for_each_point_compiles(arch: str) -> None:
    source = TARGET.emit(parse_kernel(BATCHED), {}, {"B": 3, "K": 21})
    report = TARGET.check(source, {"B": 3, "K": 21}, arch)
    assert report.accepted, report.message


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (
            "%x: f32[a, b, i, k] = load x[a, b, i, k]\n"
            '%z: f32[a, b, i, j] = dot %x, %x.1 {axis = k, precision = ieee} at "k.py":7:1',
            "share two tile axes",
        ),
        ('%n: i32[i] = index {form = i}\n let %n {integer = place} at "k.py":7:1', "varies over the lanes"),
    ],
)
def test_more_batch_axes_and_integers_over_lanes_are_refused(body: str, problem: str) -> None:
    axes = "".join(f"axis {name} < 16\n" for name in "abijk")
    other = "%x.1: f32[a, b, j, k] = load x[a, b, j, k]\n"
    kernel = parse_kernel(f"kernel refused(x: in f32[16, 16, 16, 16]) {{\n integer place[i]\n {axes}{other}{body}\n}}")
    with pytest.raises(KdslError) as refusal:
        TARGET.emit(kernel, {}, {})
    assert (refusal.value.code, str(refusal.value.location)) == ("K0301", "k.py:7:1")
    assert problem in refusal.value.message


def test_dots_of_every_precision_and_of_8_bits_compile() -> None:
    kernel, sizes = kernels.kernel(kernels_tiles.PRODUCTS), RAGGED["PRODUCTS"]
    report = TARGET.check(TARGET.emit(kernel, {}, sizes), sizes, "cuda:90")
    assert report.accepted, report.message
    for op in ("dot", "dot_scaled"):
        eight = minimal(op, DTYPES["f8e4m3"])
        assert eight is not None
        source = TARGET.emit(eight, {}, {})
        assert op != "dot" or "max_num_imprecise_acc=0" in source.text
        report = TARGET.check(source, {}, "cuda:90")
        assert report.accepted, report.message


def test_a_failed_assertion_stops_the_kernel_with_its_message() -> None:
    kernel, sizes, given = ragged("REPORTS")
    source = TARGET.emit(kernel, {}, sizes)
    assert source.launch["debug"] and not source.launch["sanitize_overflow"]
    given["x"][2] = -1
    with pytest.raises(KdslError, match='x is "negative"'):
        TARGET.run(source, sizes, given)


def test_philox_is_the_known_answer() -> None:
    """The first vector of Random123's known-answer tests: all words zero, ten rounds."""
    kernel = minimal("philox", DTYPES["u32"])
    assert kernel is not None
    given = {"x": np.zeros(LANES, np.uint32), "y": np.zeros(LANES, np.uint32)}
    got = TARGET.run(TARGET.emit(kernel, {}, {}), {}, given)
    assert [int(got[name][0]) for name in "opqr"] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


WAYS = [" {rounding = zero}", " {saturate = true}", " {rounding = zero, saturate = true}", ""]


def casts(*targets: str) -> Kernel:
    """Every way to cast an f32 to each of the dtypes."""
    ops = [(target, way) for target in targets for way in WAYS]
    body = "\n".join(f"  %r{p}: {to}[n] = cast %x{way}\n  store o{p}[n] = %r{p}" for p, (to, way) in enumerate(ops))
    return kernels.kernel(f"""
kernel k(x: in f32[N], {", ".join(f"o{place}: out {to}[N]" for place, (to, _) in enumerate(ops))}) {{
  size N
  axis n < N
  %x: f32[n] = load x[n]
{body}
}}
""")


@pytest.mark.parametrize(("third", "arch"), [("f8e5m2", "cuda:90"), ("f8e4m3fnuz", "hip:gfx942")])
def test_casts_to_narrow_floats_compile(third: str, arch: str) -> None:
    kernel = casts("f16", "bf16", "f8e4m3", third)
    report = TARGET.check(TARGET.emit(kernel, {}, {"N": 128}), {"N": 128}, arch)
    assert report.accepted, report.message


@pytest.mark.parametrize("target", ["f16", "bf16", "f8e4m3", "f8e5m2", "f8e4m3fnuz"])
def test_casts_that_saturate_or_cut_off(target: str) -> None:
    kernel = casts(target)
    magnitudes = 2.0 ** np.random.default_rng(0).uniform(-30, 20, 4000)
    edges = [0.0, np.inf, np.nan, 448.0, 464.0, 465.0, 57344.0, 61440.0, 65504.0, 65520.0, 1e-8, 3.4e38]
    x = np.concatenate([magnitudes, -magnitudes, edges, -np.array(edges)]).astype(np.float32)
    assert_agrees(kernel, {"N": len(x)}, {"x": x})


REFUSALS = {
    "a combine that takes a value from outside": (
        "K0301",
        5,
        """kernel k(x: in f32[8], y: in f32[8], o: out f32[1]) at "k.py":1:1 {
  axis n < 8
  %x: f32[n] = load x[n]
  %y: f32 = load y[0]
  %r: f32 = reduce_by %x {axis = n} (%a: f32[n], %b: f32[n]) { %c: f32[n] = add %a, %y at 5:9  yield %c } at 4:3
  store o[0] = %r
}""",
    ),
    "a masked compare-and-swap": (
        "K0301",
        4,
        """kernel k(x: inout i32[8], m: in bool[8]) at "k.py":1:1 {
  axis n < 8
  %i: i32[n] = index {form = n}
  %m: bool[n] = load m[n]
  %old: i32[n] = atomic_cas %i, %i, %i, %m {buffer = x, masked = true} at 4:3
}""",
    ),
    "a flip of padded lanes": (
        "K0303",
        3,
        """kernel k(x: in f32[6], o: out f32[6]) at "k.py":1:1 {
  axis n < 6
  %x: f32[n] = load x[n]
  %r: f32[n] = flip %x {axis = n} at 3:3
  store o[n] = %r
}""",
    ),
    "a flip of fewer lanes than a dot contracts": (
        "K0301",
        6,
        """kernel k(x: in f32[16, 8], y: in f32[8, 16], o: out f32[16, 16]) at "k.py":1:1 {
  axis n < 16
  axis k < 8
  axis j < 16
  %x: f32[n, k] = load x[n, k] at 5:3
  %r: f32[n, k] = flip %x {axis = k} at 6:3
  %y: f32[k, j] = load y[k, j]
  %z: f32[n, j] = dot %r, %y {axis = k, precision = ieee}
  store o[n, j] = %z
}""",
    ),
    "unequal parts": (
        "K0301",
        3,
        """kernel k(x: in f32[4], y: in f32[8], o: out f32[16]) at "k.py":1:1 {
  axis a < 4
  axis b < 8
  axis w < 16
  %x: f32[a] = load x[a]
  %y: f32[b] = load y[b]
  %r: f32[w] = concat %x, %y, %x {source = [a, b, a], target = w} at 3:3
  store o[w] = %r
}""",
    ),
    "four-bit integers": (
        "K0302",
        1,
        """kernel k(x: in i4[8], o: out i8[8]) at "k.py":1:1 {
  axis n < 8
  %x: i4[n] = load x[n] at 3:3
  %r: i8[n] = cast %x
  store o[n] = %r
}""",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_triton_cannot_do_is_refused_where_it_stands(what: str) -> None:
    code, line, text = REFUSALS[what]
    with pytest.raises(KdslError) as caught:
        TARGET.emit(kernels.kernel(text), {}, {})
    assert (caught.value.code, caught.value.location and caught.value.location.line) == (code, line)


def test_what_a_gpu_leaves_open_is_noted() -> None:
    kernel = kernels.kernel(kernels_control.ACCESSES)
    notes = "\n".join(TARGET.emit(kernel, {}, {"N": 13}).notes)
    assert "any of them may win" in notes and "holds NaN before keeps it" in notes
