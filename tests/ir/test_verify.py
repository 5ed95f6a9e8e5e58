from __future__ import annotations

import dataclasses
import re

import pytest

from kdsl.diagnostics import KdslError, Location
from kdsl.ir.dtypes import F32
from kdsl.ir.kernel import Kernel, Op, Region, Value
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import IRError, verify

# A kernel with one of everything; `# here` is where a test puts its op, inside the loop, `# after` behind it.
TEXT = """kernel f(x: in f32[M, N], b: in i8[N], y: out f32[M, N], s: f32) {
  size M
  size N
  size P = M + N
  tile BN = 8
  require M >= 1
  program i < M
  program j < cdiv(N, BN)
  loop t < min(i + 1, M)
  loop u < 3
  axis n < BN where BN*j + n < N
  axis w < 8 where 3*t + w < N
  axis m < BN where m <= n
  axis d < 4
  axis q < 2
  axis r < 2
  axis b < 3 where b <= d
  %flag: bool = constant {value = true}
  %zero: f32[i, j, n] = load x[i, BN*j + n]
  %int: i8[j, n] = load b[BN*j + n]
  %long: i64 = index {form = N}
  %flat: f32[d] = load x[0, d] where d < N fill 0.0
  %sum: f32[i, j, n] = for t (%c: f32[i, j, t, n] = %zero) {
    %v: f32[t, w] = load x[0, 3*t + w]
    # here
    yield %c
  }
  # after
  store y[i, BN*j + n] = %sum
}
"""


def problem(text: str) -> IRError:
    with pytest.raises(IRError) as caught:
        verify(parse_kernel(text))
    return caught.value


def test_the_kernel_that_the_tests_break_is_well_formed() -> None:
    kernel = parse_kernel(TEXT)
    assert verify(kernel) is kernel


OPS = {
    "no such op": ("%z: f32 = frobnicate %c", "frobnicate is no op"),
    "operand count": ("%z: f32[i, j, t, n] = add %c", "add takes 2 operands, not 1"),
    "region count": ("%z: f32 = for u () { yield }", "for gives nothing"),
    "attribute missing": ("%z: f32[i, j, t] = reduce %c {axis = n}", "reduce lacks its attribute combine"),
    "attribute unknown": ("%z: f32[i, j, t, n] = neg %c {axis = n}", "neg has no attribute axis"),
    "attribute kind": ("%z: i32 = index {form = [n]}", "index: .* is no form"),
    "bound without ends": ("%z: bool[n] = in_bounds {bounds = [n]}", "in_bounds: .* is no bounds"),
    "operand dtypes": ("%z: f32[i, j, t, n] = add %c, %long", "add: operands differ in dtype: f32, i64"),
    "operand kind": ("%z: bool = add %flag, %flag", "add: takes int or uint or float operands, not bool"),
    "result dtype": ("%z: i32[i, j, t, n] = neg %c", r"neg gives f32\[i, j, t, n\]"),
    "result axes": ("%z: f32[i, j, n] = neg %c", r"neg gives f32\[i, j, t, n\]"),
    "result count": ("%z: f32[i, j, t, n], %zz: f32 = neg %c", "neg gives"),
    "no result": ("neg %c", "neg gives"),
    "comparison gives bool": ("%z: f32[i, j, t, n] = lt %c, %c", "lt gives bool"),
    "select condition": ("%z: f32[i, j, t, n] = select %c, %c, %c", "select: takes bool, T, T"),
    "undeclared axis": ("%z: i32[k] = index {form = k}", "index mentions k, which is not declared"),
    "loop axis outside its loop": ("%z: i32[u] = index {form = u}", "index mentions the loop axis u outside"),
    "axis order": ("%z: f32[d] = for u (%k: f32[n, i] = %flat) { yield %k }", "for: %k .*not in the kernel's order"),
    "defined twice": ("%int.1: f32[i, j, t, n] = neg %c\n    %flag.1: bool = not %flag", None),
    "constant of another kind": ("%z: i32 = constant {value = 2.5}", "constant: 2.5 is no i32"),
    "constant out of range": ("%z: u8 = constant {value = 256}", "constant: 256 is no u8"),
    "negative unsigned": ("%z: u8 = constant {value = -1}", "constant: -1 is no u8"),
    "number for a bool": ("%z: bool = constant {value = 1}", "constant: 1 is no bool"),
    "argument is a tensor": ("%z: f32 = argument {scalar = x}", "argument: no scalar argument x"),
    "index dtype": ("%z: f32[n] = index {form = n}", "index: an index is i32 or i64"),
    "broadcast to nowhere": ("%z: f32[i, j, t, n] = broadcast %c {axes = [k]}", None),
    "combine": ("%z: f32[i, j, t] = reduce %c {axis = n, combine = mean}", "reduce: no combine named mean"),
    "combine dtype": (
        "%z: f32[i, j, t] = reduce %c {axis = n, combine = and}",
        "reduce: combine and does not take f32",
    ),
    "reduce over a program axis": ("%z: f32[j, t, n] = reduce %c {axis = i, combine = add}", "reduce: .* tile axis i"),
    "reduce over an absent axis": (
        "%z: f32[i, j, t, n] = reduce %c {axis = d, combine = add}",
        "reduce: .* tile axis d",
    ),
    "dot over a program axis": ("%z: f32 = dot %zero, %zero {axis = i, precision = ieee}", "dot: i is no tile axis"),
    "dot of different dtypes": (
        "%z: f32 = dot %zero, %int {axis = n, precision = ieee}",
        "dot: takes two operands of one",
    ),
    "dot precision": ("%z: f32[i, j] = dot %zero, %zero {axis = n, precision = best}", "dot: no precision named best"),
    "dot over lanes valid by another tile": (
        "%p: f32[j, n, m] = load x[0, m]\n    %l: f32[j, m] = reduce %p {axis = n, combine = add}\n"
        "    %z: f32[j] = dot %l, %l {axis = m, precision = ieee}",
        "dot: which lanes of %l are valid varies over",
    ),
    "reshape of other extent": (
        "%z: f32[q] = reshape %flat {source = [d], target = [q]}",
        "reshape: extents differ: 4 and 2",
    ),
    "reshape of absent axis": (
        "%z: f32[q] = reshape %flat {source = [n], target = [q]}",
        "reshape: %flat does not vary",
    ),
    "reshape of ragged axis": (
        "%z: f32[d] = reshape %zero {source = [n], target = [d]}",
        "reshape: an axis with invalid",
    ),
    "reshape of program axis": ("%z: f32[d] = reshape %zero {source = [i], target = [d]}", "reshape: only tile axes"),
    "reshape of an axis that decides on another": (
        "%p: f32[j, n, d, b] = load x[n, d] where b < 1 fill 0.0\n"
        "    %z: f32[j, n, q, r, b] = reshape %p {source = [d], target = [q, r]}",
        "reshape: which lanes of another axis",
    ),
    "reshape to one axis twice": (
        "%z: f32[q] = reshape %flat {source = [d], target = [q, q]}",
        "reshape: an axis is named",
    ),
    "reshape to an axis it has": (
        "%p: f32[d, q] = broadcast %flat {axes = [q]}\n    %z: f32[q, r] = reshape %p {source = [d], target = [q, r]}",
        "reshape: a target axis is already",
    ),
    "load of no tensor": ("%z: f32 = load s[0]", "load mentions s, which is not declared"),
    "load rank": ("%z: f32 = load x[0]", "load: x has 2 dimensions, the index 1"),
    "load fill": ("%z: i8[n] = load b[n] where n < 3 fill 0.5", "load: 0.5 is no i8"),
    "store to an input": ("store x[i, BN*j + n] = %c", "store: x is an input"),
    "store rank": ("store y[i] = %c", "store: y has 2 dimensions, the index 1"),
    "store dtype": ("store y[i, n] = %int", "store: stores i8 into a tensor of f32"),
    "store of a loose axis": ("store y[i, j] = %c", "store: the value varies over n, the index does not"),
    "for over a tile axis": ("for n () { yield }", "for: n is no loop axis"),
    "for inside itself": ("for t () { yield }", "a loop over t inside a loop over t"),
    "for without yield": ("for u () { %z: f32 = neg %flat }", None),
    "for with no body": ("for u () { }", "for: the body does not end with a yield"),
    "for yields too few": ("%z: f32[i, j, t, n] = for u (%k: f32[i, j, t, n] = %c) { yield }", "for: initial values"),
    "for changes dtype": (
        "%z: i8[j, n] = for u (%k: i8[j, n] = %int) { yield %zero }",
        "for: carried %k changes dtype",
    ),
    "for gains an axis": ("%z: f32[d] = for u (%k: f32[d] = %flat) { yield %zero }", "for: carried %k does not vary"),
    "yield too early": ("yield %c", "yield is not the last op"),
    "loop-dependent lanes leave": (
        "%z: f32[t, w] = for u (%k: f32[t, w] = %v) { yield %k }\n    # ok",
        None,
    ),
}


@pytest.mark.parametrize("name", [name for name, (_, message) in OPS.items() if message is not None])
def test_a_malformed_op_is_named(name: str) -> None:
    op, message = OPS[name]
    assert message is not None
    error = problem(TEXT.replace("# here", op))
    assert re.search(message, str(error)), error
    assert error.op is not None and error.op.name in str(error)


@pytest.mark.parametrize("name", ["defined twice", "loop-dependent lanes leave"])
def test_what_looks_like_a_mistake_but_is_none(name: str) -> None:
    verify(parse_kernel(TEXT.replace("# here", OPS[name][0])))


AFTER = {
    "a value of the loop": ("%z: f32[i, j, n] = neg %c", "neg uses %c, which is not in scope"),
    "the loop's axis": ("%z: i32[t] = index {form = t}", "index mentions the loop axis t outside its loop"),
    "lanes that the loop decides": (
        "%z: f32[t, w] = load x[0, w]",
        "load: .* depends on the loop axis t outside its loop",
    ),
    "lanes that the loop decides, as numbers": ("%z: i32[w] = index {form = w}", "index: .* loop axis t"),
    "a yield": ("yield %sum", "yield is not the last op of a region"),
}


@pytest.mark.parametrize("name", AFTER)
def test_a_loop_keeps_what_depends_on_it(name: str) -> None:
    op, message = AFTER[name]
    error = problem(TEXT.replace("# after", op))
    assert re.search(message, str(error)), error
    assert error.op is not None and error.op.name in str(error)


def test_carried_lanes_that_depend_on_the_loop_do_not_leave_it() -> None:
    text = TEXT.replace("%zero) {", "%zero, %k: f32[t, w] = %flat0) {").replace("yield %c", "yield %c, %v")
    text = text.replace(
        "%sum: f32[i, j, n] = for", "%flat0: f32 = constant {value = 0}\n  %sum: f32[i, j, n], %k1: f32[i, w] = for"
    )
    assert re.search("for: %k1 depends on the loop axis t outside", str(problem(text)))


HEAD = {
    "a name declared twice": ("size N", "size M", "M is declared twice"),
    "a parameter declared twice": ("s: f32)", "x: f32)", "x is declared twice"),
    "a shape of undeclared size": ("x: in f32[M, N]", "x: in f32[M, Q]", "the shape of x mentions Q"),
    "a shape with an axis": ("x: in f32[M, N]", "x: in f32[M, n]", "the shape of x mentions n"),
    "a size of later sizes": ("size P = M + N", "size P = M + Q", "the size P mentions Q"),
    "a size of a tile parameter": ("size P = M + N", "size P = M + BN", "the size P mentions BN"),
    "a constraint on a tile parameter": ("require M >= 1", "require BN >= 1", "the constraint BN >= 1 mentions BN"),
    "a program axis of another": ("program j < cdiv(N, BN)", "program j < i", "the extent of j mentions i"),
    "a tile axis of a program axis": ("axis d < 4", "axis d < i", "the extent of d mentions i"),
    "a loop of itself": ("loop u < 3", "loop u < u", "the extent of u mentions u"),
    "a bound of undeclared names": ("axis d < 4", "axis d < 4 where d < z", "a bound of d mentions z"),
    "a bound on a program axis": ("program i < M", "program i < M where i < 3", "i has bounds, but is no tile axis"),
}


@pytest.mark.parametrize("name", HEAD)
def test_a_malformed_declaration_is_named(name: str) -> None:
    old, new, message = HEAD[name]
    assert TEXT.count(old) == 1
    assert message in str(problem(TEXT.replace(old, new)))


def test_a_loop_whose_extent_needs_another_loop_stays_inside_it() -> None:
    text = TEXT.replace("loop u < 3", "loop u < t + 1")
    verify(parse_kernel(text.replace("# here", "for u () { yield }")))
    error = problem(text.replace("# after", "for u () { yield }"))
    assert "for mentions the loop axis t outside its loop" in str(error)


def with_ops(*ops: Op) -> Kernel:
    kernel = parse_kernel(TEXT)
    return dataclasses.replace(kernel, body=Region((), ops))


def test_values_are_defined_once() -> None:
    value = Value("z", F32)
    twice = with_ops(*(Op("constant", (), (value,), {"value": 1.0}) for _ in range(2)))
    with pytest.raises(IRError, match="constant: %z is defined twice"):
        verify(twice)


def test_values_are_used_with_the_type_they_were_defined_with() -> None:
    made = Op("constant", (), (Value("z", F32),), {"value": 1.0})
    used = Op("neg", (Value("z", F32, ("d",)),), (Value("w", F32, ("d",)),))
    with pytest.raises(IRError, match="neg uses %z, which is not in scope with that type"):
        verify(with_ops(made, used))


def test_regions_are_counted() -> None:
    with pytest.raises(IRError, match="for takes 1 regions, not 0"):
        verify(with_ops(Op("for", (), (), {"axis": "u"})))


def test_the_error_carries_the_op_s_place() -> None:
    error = problem(TEXT.replace("# here", '%z: f32 = frobnicate %c at "a.py":7:3'))
    assert error.location == Location("a.py", 7, 3)


def test_a_value_used_before_its_definition_is_no_text() -> None:
    with pytest.raises(KdslError, match="used before it is defined"):
        parse_kernel(TEXT.replace("# here", "%z: f32 = neg %later"))
