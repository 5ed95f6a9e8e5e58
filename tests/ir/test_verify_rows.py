"""One malformed op for each rule of the rows for tiles, access and control."""

from __future__ import annotations

import re

import pytest

from kdsl.ir.ops import OPS
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import IRError, verify

TEXT = """kernel f(x: in f32[M, N], b: in i8[N], h: in f8e4m3[4], y: inout f32[M, N], e: inout f8e4m3[4],
    k: inout bool[4], s: f32) {
  size M
  size N
  program i < M
  loop t < 3
  axis n < 8 where n < N
  axis d < 4
  axis q < 2
  axis r < 2
  axis v < 4
  axis w < 8
  axis c < 3 where c <= d
  %flag: bool = constant {value = true}
  %one: f32 = constant {value = 1.0}
  %zero: i32 = constant {value = 0}
  %x: f32[i, n] = load x[i, n]
  %int: i8[n] = load b[n]
  %flat: f32[d] = load x[0, d] where d < N fill 0.0
  %low: f8e4m3[d] = load h[d]
  %pair: f32[d, c] = load x[d, c] where d < M and c < N fill 0.0
  %scale: u8[q] = cast %q
  # here
  store y[i, n] = %x
}
""".replace("  %scale", "  %q: i32[q] = index {form = q}\n  %scale")

COMBINE = "(%a: f32[d], %b: f32[d]) { %e: f32[d] = add %a, %b yield %e }"

WRONG = {
    "cast rounding": ("%z: bf16 = cast %one {rounding = up}", "cast: no rounding named up"),
    "cast rounding of an integer": ("%z: f32 = cast %zero {rounding = zero}", "cast: rounds between floats"),
    "cast saturating to an integer": ("%z: i8 = cast %one {saturate = true}", "cast: saturate is for floats"),
    "storage computes": ("%z: f8e4m3[d] = neg %low", "neg: f8e4m3 is for storage"),
    "storage reduces": ("%z: f8e4m3 = reduce %low {axis = d, combine = add}", "reduce: f8e4m3 is for storage"),
    "bitcast width": ("%z: i64 = bitcast %one", "bitcast: f32 and i64 differ in width"),
    "bitcast of bool": ("%z: i8 = bitcast %flag", "bitcast: bool and i8 differ"),
    "scan combine": ("%z: f32[d] = scan %flat {axis = d, combine = argmax}", "scan: no scan combines with argmax"),
    "scan axis": ("%z: f32[i, n] = scan %x {axis = i, combine = add}", "scan: .* tile axis i"),
    "scan kind": ("%z: f32[d] = scan %flat {axis = d, combine = and}", "scan: combine and does not take f32"),
    "scan storage": ("%z: f8e4m3[d] = scan %low {axis = d, combine = add}", "scan: f8e4m3 is for storage"),
    "sort of nothing": ("sort {axis = d}", "sort: there is nothing to sort"),
    "sort axis": ("%z: f32[i, n] = sort %x {axis = d}", "sort: .* tile axis d"),
    "sort storage": ("%z: f8e4m3[d] = sort %low {axis = d}", "sort: f8e4m3 is for storage"),
    "topk target": ("%z: f32[d], %l: i32[d] = topk %flat {axis = d, target = d}", "topk: d is no tile axis"),
    "topk target under its source": (
        "%z: f32[d, c], %l: i32[d, c] = topk %flat {axis = d, target = c}",
        "topk: c is no tile axis that is new",
    ),
    "topk storage": ("%z: f8e4m3[q], %l: i32[q] = topk %low {axis = d, target = q}", "topk: f8e4m3 is for storage"),
    "gather axis": ("%z: f32 = gather %flat, %zero {axis = q}", "gather: .* tile axis q"),
    "gather index": ("%z: f32 = gather %flat, %one {axis = d}", "gather: an index is an integer, not f32"),
    "flip ragged": ("%z: f32[i, n] = flip %x {axis = n}", "flip: an axis with invalid lanes"),
    "flip under another axis": ("%z: f32[d, c] = flip %pair {axis = d}", "flip: which lanes of another axis"),
    "concat dtypes": ("%z: f32[w] = concat %flat, %low {source = [d, d], target = w}", "concat: operands differ in"),
    "concat count": ("%z: f32[w] = concat %flat {source = [d, d], target = w}", "concat: there is not one source"),
    "concat extent": ("%z: f32[v] = concat %flat, %flat {source = [d, d], target = v}", "concat: extents differ"),
    "concat axis left": (
        "%o: f32[d, q] = broadcast %flat {axes = [q]} %p: f32[v] = broadcast %one {axes = [v]}"
        "%m: f32[d, v] = add %flat, %p %z: f32[w] = concat %m, %flat {source = [v, d], target = w}",
        "concat: an axis that is concatenated occurs",
    ),
    "join extent": ("%z: f32[v] = join %one, %one {axis = v}", "join: v does not have two lanes"),
    "join old axis": (
        "%p: f32[q] = broadcast %one {axes = [q]} %z: f32[q] = join %p, %p {axis = q}",
        "join: q is no tile axis that is new",
    ),
    "split extent": ("%z: f32, %l: f32 = split %flat {axis = d}", "split: d does not have two lanes"),
    "relabel extent": ("%z: f32[w] = relabel %flat {source = d, target = w}", "relabel: extents differ: 4 and 8"),
    "relabel under another axis": (
        "%z: f32[v, c] = relabel %pair {source = d, target = v}",
        "relabel: which lanes of another axis",
    ),
    "histogram of floats": ("%z: i32[w] = histogram %flat {axis = d, target = w}", "histogram: counts integers"),
    "philox words": (
        "%z: u32, %l: u32, %g: u32, %h: u32 = philox %zero, %zero, %zero, %zero, %zero, %zero {rounds = 10}",
        "philox: takes u32",
    ),
    "philox rounds": (
        "%u: u32 = cast %zero %z: u32, %l: u32, %g: u32, %h: u32 = philox %u, %u, %u, %u, %u, %u {rounds = 0}",
        "philox: 0 is no number of rounds",
    ),
    "scaled dot scale": (
        "%z: f32 = dot_scaled %low, %q, %low, %scale {axis = d, left_group = q, right_group = q}",
        "dot_scaled: a scale is a u8 exponent, not i32",
    ),
    "scaled dot operand": (
        "%o: i8[d] = cast %low %z: f32 = dot_scaled %o, %scale, %low, %scale "
        "{axis = d, left_group = q, right_group = q}",
        "dot_scaled: multiplies floats, not i8",
    ),
    "load_at operands": ("%z: f32 = load_at %zero {buffer = x}", "load_at: takes 2 operands for x, not 1"),
    "load_at index": ("%z: f32 = load_at %zero, %one {buffer = x}", "load_at: an index is an integer, not f32"),
    "load_at mask": ("%z: f32 = load_at %zero, %zero, %one {buffer = x, masked = true}", "load_at: a mask is bool"),
    "load_at fill": ("%z: i8 = load_at %zero, %flag {buffer = b, masked = true, fill = 0.5}", "load_at: 0.5 is no i8"),
    "store_at input": ("store_at %one, %zero, %zero {buffer = x}", "store_at: x is an input"),
    "store_at dtype": ("store_at %zero, %zero, %zero {buffer = y}", "store_at: writes i32 into a tensor of f32"),
    "atomic combine": ("atomic %one, %zero, %zero {buffer = y, combine = mean}", "atomic: no atomic named mean"),
    "atomic kind": ("atomic %one, %zero, %zero {buffer = y, combine = xor}", "atomic: atomic xor does not take f32"),
    "atomic add of bool": ("atomic %flag, %zero {buffer = k, combine = add}", "atomic: atomic add does not take bool"),
    "atomic storage": ("atomic %low, %zero {buffer = e, combine = add}", "atomic: f8e4m3 is for storage"),
    "atomic result axes": (
        "%z: f32 = atomic %one, %zero, %zero {buffer = y, combine = add}",
        r"atomic gives f32\[i\]",
    ),
    "if condition": ("if %int () { yield } () { yield }", "if: the condition %int is not one bool"),
    "if on a tile": (
        "%p: bool[d] = lt %flat, %one if %p () { yield } () { yield }",
        "if: the condition %p is not one bool",
    ),
    "if arguments": ("if %flag (%a: f32) { yield } () { yield }", "if: a branch has no arguments"),
    "if dtypes": ("%z: f32 = if %flag () { yield %one } () { yield %zero }", "if: the branches yield different dtypes"),
    "if without yield": ("if %flag () { } () { yield }", "if: a region does not end with a yield"),
    "while test": (
        "%z: f32 = while %one (%a: f32) { yield %flag, %flag } (%b: f32) { yield %b }",
        "while: the test yields more",
    ),
    "while condition": (
        "%z: f32 = while %one (%a: f32) { yield %a } (%b: f32) { yield %b }",
        "while: the condition %a is not one bool",
    ),
    "while count": ("%z: f32 = while %one (%a: f32) { yield %flag } (%b: f32) { yield }", "while: initial values"),
    "while dtype": (
        "%z: f32 = while %one (%a: f32) { yield %flag } (%b: f32) { yield %zero }",
        "while: carried %b changes type",
    ),
    "while axes": (
        "%z: f32 = while %one (%a: f32) { yield %flag } (%b: f32) { yield %flat }",
        "while: carried %b does not vary",
    ),
    "reduce_by of nothing": ("reduce_by {axis = d} () { yield }", "reduce_by: there is nothing to combine"),
    "reduce_by axis": ("%z: f32 = reduce_by %flat {axis = q} " + COMBINE, "reduce_by: .* tile axis q"),
    "reduce_by arguments": (
        "%z: f32 = reduce_by %flat {axis = d} (%a: f32[d]) { yield %a }",
        "reduce_by: the combine takes two of each",
    ),
    "reduce_by yields": (
        "%z: f32 = reduce_by %flat {axis = d} (%a: f32[d], %b: f32[d]) { yield %a, %b }",
        "reduce_by: the combine does not yield one",
    ),
    "reduce_by ops": (
        "%z: f32 = reduce_by %flat {axis = d} (%a: f32[d], %b: f32[d]) { %g: f32[d] = flip %a {axis = d} yield %g }",
        "reduce_by: a combine holds lanewise ops",
    ),
    "reduce_by outside": (
        "%z: f32 = reduce_by %flat {axis = d} (%a: f32[d], %b: f32[d]) { %g: f32[d] = add %a, %flat yield %g }",
        "reduce_by: the combine uses a value from outside",
    ),
    "scan_by other axis": (
        "%z: f32[d] = scan_by %flat {axis = d} (%a: f32[d], %b: f32[d]) { %g: f32[i, n, d] = add %a, %x yield %g }",
        "scan_by: the combine yields a value that varies over another",
    ),
    "assert dtype": ('assert %one {message = "no"}', "assert: asserts a bool, not f32"),
    "assert message": ("assert %flag {message = no}", "assert: no is no text"),
    "poison axes": ("%z: f32 = poison {axes = [d]}", r"poison gives f32\[d\]"),
}


def test_the_kernel_that_the_tests_break_is_well_formed() -> None:
    verify(parse_kernel(TEXT))


@pytest.mark.parametrize("name", WRONG)
def test_a_malformed_op_is_named(name: str) -> None:
    op, message = WRONG[name]
    with pytest.raises(IRError) as caught:
        verify(parse_kernel(TEXT.replace("# here", op)))
    assert re.search(message, str(caught.value)), caught.value
    assert caught.value.op is not None and caught.value.op.name in OPS
