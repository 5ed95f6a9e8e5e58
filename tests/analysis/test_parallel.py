"""Which grids are seen to be parallel, and that evaluating those all at once changes nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdsl.analysis.disjoint import disjoint
from kdsl.analysis.parallel import is_parallel
from kdsl.interpreter import batched, run, stepped
from kdsl.interpreter.grid import ORDERS
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import I32
from kdsl.ir.expr import Expr, symbol, wrap
from kdsl.ir.kernel import Axis, AxisKind, Bound, Buffer, Kernel, Op, Region, bind
from kdsl.ir.rewrite import retype
from kdsl.ir.text import parse_kernel
from kdsl.ir.type_rules import OpTypeError
from kdsl.ir.verify import verify

TEXT = """kernel f(places: in i32[4], y: inout i32[SHAPE]) {
  size N
  program p < P
  program q < Q
  loop k < K
  axis m < M
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %p: i32[p] = index {form = p}
  %q: i32[q] = index {form = q}
  BODY
}
"""
ROWS, FLAT = "40, 3", "40"
ROW = "%i: i32[p] = index {form = p}\n"
OUR_ROWS = "%x: i32[p, q, m] = load y[4*p + m, q]\n"
CONDITION = "%c: bool[p] = eq %p, %one\n"
EVEN = "%c: bool = eq %zero, %one\n"
IF = "if %c () {{\n{body}\nyield\n}} () {{\nyield\n}}"
WHILE = (
    "%last: i32[p] = while %zero (%a: i32[p]) {{\n%more: bool[p] = lt %a, %{condition}\nyield %more\n}} "
    "(%b: i32[p]) {{\n{body}\n%next: i32[p] = add %b, %one\nyield %next\n}}"
)
PLACE = (
    "%m: i32[m] = index {form = m}\n%four: i32 = constant {value = 4}\n"
    "%start: i32[p] = mul %p, %four\n%at: i32[p, m] = add %start, %m\n"
)
LOADED = "%at: i32[p] = load places[p]\n"
ONCE = "%once: i32 = add %zero, %one\n"


def kernel(body: str, shape: str = ROWS, p: str = "4", q: str = "3", k: str = "2", m: str = "4") -> Kernel:
    text = TEXT.replace("BODY", body).replace("SHAPE", shape)
    for name, extent in {"P": p, "Q": q, "K": k, "M": m}.items():
        text = text.replace(f"< {name}\n", f"< {extent}\n")
    return bind(verify(parse_kernel(text)), {"N": 14})


PARALLEL = {
    "a block of rows, a column each": kernel(ROW + "store y[4*p + m, q] = %i"),
    "blocks with a ragged end": kernel(ROW + "store y[4*p + m, q] = %i", m="4 where 4*p + m < N"),
    "all in one dimension": kernel(ROW + "store y[12*p + 4*q + m] = %i", FLAT, p="3"),
    "in turns": kernel(ROW + "store y[p + 4*q + 12*m] = %i", FLAT, m="3"),
    "tiles of one lane": kernel(ROW + "store y[p + m, q] = %i", m="1"),
    "backwards": kernel(ROW + "store y[39 - 4*p - m, q] = %i"),
    "in place": kernel(OUR_ROWS + "store y[4*p + m, q] = %x"),
    "in place, other lanes of one's own": kernel(OUR_ROWS + "store y[4*p - m + 3, q] = %x"),
    "one program": kernel(ROW + "store y[m, 0] = %i", p="1", q="1"),
    "no program": kernel(ROW + "store y[m, 0] = %i", p="0"),
    "more lanes than the step, but some are invalid": kernel(ROW + "store y[3*p + m, q] = %i", m="4 where m < 3"),
    "more lanes than the step, but some are not stored": kernel(ROW + "store y[3*p + m, q] = %i where m < 3"),
    "one row a turn": kernel("for k () {\n" + ROW + "store y[2*p + k, q] = %i\nyield\n}"),
    "all write the same": kernel("%i: i32[m] = index {form = m}\nstore y[m, 0] = %i"),
    "all of a column write the same": kernel("%i: i32[q] = index {form = q}\nstore y[m, q] = %i"),
    "only read": kernel("%x: i32[p, m] = load y[p + m, 0]"),
    "what others read is not written": kernel(
        ROW + "%x: i32[p, q, m] = load y[39 - 4*p - m, q]\nstore y[4*p + m, q] = %x"
    ),
    "a branch of one's own": kernel(CONDITION + IF.format(body="store y[4*p + m, q] = %p")),
    "a branch that all take, and store the same": kernel(EVEN + IF.format(body="store y[m, 0] = %zero")),
    "a while of one's own": kernel(WHILE.format(condition="p", body="store y[p, q] = %zero")),
    "a computed place of one's own": kernel(ROW + PLACE + "store_at %i, %at, %q {buffer = y}"),
    "in place, at computed places": kernel(
        PLACE + "%x: i32[p, q, m] = load_at %at, %q {buffer = y}\nstore y[4*p + m, q] = %x"
    ),
    "a computed place that is only read": kernel(LOADED + "%x: i32[p] = load_at %at, %zero {buffer = y}"),
    "all write the same at a computed place": kernel(ONCE + "store_at %zero, %once, %zero {buffer = y}"),
    "integers add up in any order": kernel(
        ROW + "atomic %i, %zero, %zero {buffer = y, combine = add}\n"
        "for k () {\natomic %one, %i, %zero {buffer = y, combine = add}\nyield\n}"
    ),
    "one atomic that each program comes to once": kernel(
        CONDITION + IF.format(body="%old: i32[p, q] = atomic %p, %zero, %zero {buffer = y, combine = exchange}")
    ),
    "atomics on elements of one's own": kernel(
        "for k () {\n%old: i32[p, q] = atomic %one, %p, %q {buffer = y, combine = exchange}\nyield\n}"
    ),
}

DEPENDENT = {
    "a leading digit that is not told apart": kernel(ROW + "store y[p + 3*q] = %i", FLAT),
    "one element for all": kernel(ROW + "store y[0, 0] = %i"),
    "tiles overlap": kernel(ROW + "store y[3*p + m, q] = %i"),
    "turns overlap": kernel("for k () {\n" + ROW + "store y[p + k, q] = %i\nyield\n}"),
    "no column told apart": kernel("%i: i32[q] = index {form = q}\nstore y[4*p + m, 0] = %i"),
    "others read it": kernel(ROW + "%x: i32[p, q, m] = load y[15 - 4*p - m, q]\nstore y[4*p + m, q] = %x"),
    "others write it, too": kernel(ROW + "store y[4*p + m, q] = %i\nstore y[p + 16, q] = %i\nstore y[p, q] = %i"),
    "all write the same, having read it": kernel("%x: i32[m] = load y[m, 0]\nstore y[m, 0] = %x"),
    "all write the same, but not equally often": kernel(
        "%i: i32[m] = index {form = m}\nstore y[m, 0] = %i\n"
        "for k () {\n%j: i32[k] = index {form = k}\nstore y[m, 0] = %j\nyield\n}",
        k="3 - p",
    ),
    "all write the same, but not all write": kernel(CONDITION + IF.format(body="store y[m, 0] = %zero")),
    "all write the same, as often as they like": kernel(WHILE.format(condition="p", body="store y[0, 0] = %zero")),
    "all write the same, while a condition holds that nothing carries": kernel(
        "while () {\n%x: i32[p, q] = load y[p, q]\n%c: bool[p, q] = eq %x, %zero\nyield %c\n} () {\n"
        "store y[39, 0] = %zero\nstore y[p, q] = %one\nyield\n}"
    ),
    "a branch stores where others are": kernel(CONDITION + IF.format(body="store y[p + m, q] = %p")),
    "a place that is loaded": kernel(LOADED + "store_at %zero, %at, %zero {buffer = y}"),
    "a computed place that others touch": kernel(PLACE + "store_at %q, %p, %zero {buffer = y}"),
    "a computed place that wraps around": kernel(
        "%p8: u8[p] = cast %p\n%c: u8 = constant {value = 128}\n%w: u8[p] = mul %p8, %c\n%at: i32[p] = cast %w\n"
        "store_at %p, %at, %q {buffer = y}"
    ),
    "loads from a place that another computes": kernel(
        PLACE + "store_at %p, %at, %q {buffer = y}\n%x: i32[q] = load_at %one, %q {buffer = y}"
    ),
    "atomics of two kinds": kernel(
        "atomic %one, %zero, %zero {buffer = y, combine = add}\natomic %one, %zero, %zero {buffer = y, combine = xor}"
    ),
    "an atomic and a load": kernel(
        "atomic %one, %zero, %zero {buffer = y, combine = add}\n%x: i32 = load_at %zero, %zero {buffer = y}"
    ),
    "an atomic with a result in a loop": kernel(
        "for k () {\n%old: i32[p, q] = atomic %one, %zero, %zero {buffer = y, combine = add}\nyield\n}"
    ),
    "exchanges in a while": kernel(
        WHILE.format(condition="p", body="atomic %p, %zero, %zero {buffer = y, combine = exchange}")
    ),
    "lines in order": kernel('print %p {message = "p"}'),
}
ROUNDING = """kernel f(y: inout f32[1]) {
  program p < 9
  loop k < 2
  %x: f32 = constant {value = 0.1}
  %zero: i32 = constant {value = 0}
  BODY
}
"""


def rounding(combine: str, body: str = "{}") -> Kernel:
    atomic = f"atomic %x, %zero {{buffer = y, combine = {combine}}}"
    return bind(verify(parse_kernel(ROUNDING.replace("BODY", body.format(atomic)))), {})


@pytest.mark.parametrize("combine", ["add", "maximum"])
def test_floats_are_combined_in_order(combine: str) -> None:
    """0.1 added up depends on the order, and which zero is the larger."""
    assert is_parallel(rounding(combine))
    assert not is_parallel(rounding(combine, "{0} {0}"))
    assert not is_parallel(rounding(combine, "for k () {{ {0} yield }}"))


@pytest.mark.parametrize("name", PARALLEL)
def test_programs_that_an_index_tells_apart_are_parallel(name: str) -> None:
    assert is_parallel(PARALLEL[name])


@pytest.mark.parametrize("name", PARALLEL)
def test_at_once_gives_what_one_after_the_other_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = PARALLEL[name]
    shape = tuple(size.evaluate({}) for size in kernel.buffer("y").shape)
    given = {"places": np.array([2, 2, 0, 3], np.int32), "y": np.arange(np.prod(shape), dtype=np.int32).reshape(shape)}
    for box in (24, batched.BOX_BYTES):
        monkeypatch.setattr(batched, "BOX_BYTES", box)
        for order in ORDERS:
            expected = stepped.run(kernel, given, order=order)["y"]
            assert np.array_equal(batched.run(kernel, given, order=order)["y"], expected)


@pytest.mark.parametrize("name", DEPENDENT)
def test_programs_that_share_an_element_are_not_parallel(name: str) -> None:
    assert not is_parallel(DEPENDENT[name])


P, Q, K, M = (symbol(name) for name in "pqkm")
INDEX = st.tuples(
    st.sampled_from([P, 4 * P, 12 * P, 13 * P, -12 * P, 3 * P, P % 2]),
    st.sampled_from([Q, 4 * Q, 3 * Q, 36 * Q, -12 * Q, P * Q]),
    st.sampled_from([M, M, -M, 3 * M, 9 * M]),
    st.sampled_from([wrap(0), wrap(0), K, 36 * K]),
).map(lambda terms: sum(terms, wrap(12)))
LANES = st.sampled_from([(), (Bound(M, None, wrap(3)),), (Bound(M, wrap(1), P + 1),)])


def update(read: Expr, written: Expr, lanes: tuple[Bound, ...]) -> Kernel:
    """In a loop: y[written] = y[read] + a number of one's own."""
    extents = {"p": 3, "q": 3, "k": 2, "m": 4}
    kinds: dict[str, AxisKind] = {"p": "program", "q": "program", "k": "loop", "m": "tile"}
    axes = tuple(Axis(name, kinds[name], wrap(extents[name]), lanes if name == "m" else ()) for name in extents)
    builder = Builder(Kernel("f", (Buffer("y", I32, (wrap(90),), "inout"),), (), (), (), axes, Region()))
    with builder.region() as ops:
        inside = (Bound(read, wrap(0), wrap(90)),)
        x = builder.emit("load", [], {"buffer": "y", "index": (read,), "bounds": inside, "fill": 7})
        own = builder.emit("index", [], {"form": 2 * written + 1}, dtype=I32)
        inside = (Bound(written, wrap(0), wrap(90)),)
        total = builder.emit("add", [x, own])
        builder.effect("store", [total], {"buffer": "y", "index": (written,), "bounds": inside})
        ops.append(Op("yield"))
    builder.loop("k", [], [], ops, [])
    return verify(builder.finish())


def test_what_is_seen_to_be_parallel_may_run_at_once() -> None:
    seen: Counter[bool] = Counter()

    @settings(max_examples=300, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(INDEX, INDEX, st.booleans(), LANES)
    def check(read: Expr, written: Expr, in_place: bool, lanes: tuple[Bound, ...]) -> None:
        try:
            kernel = update(written if in_place else read, written, lanes)
        except OpTypeError:  # the value varies over lanes that the index does not name
            return
        at_once = is_parallel(kernel)
        seen[at_once] += 1
        if at_once:
            y = np.arange(90, dtype=np.int32)
            expected = stepped.run(kernel, {"y": y})["y"]
            for order in ORDERS:
                assert np.array_equal(stepped.run(kernel, {"y": y}, order=order)["y"], expected)
                assert np.array_equal(batched.run(kernel, {"y": y}, order=order)["y"], expected)

    check()
    assert min(seen[True], seen[False]) > 30, seen


# What nine programs do to y; what they read they show. {at} is a place, %v one of some values that vary over programs.
SHOW = "store seen[p, q, {n}] = %r{n}"
AT = "%at{n}: i32 = index {{form = {at}}}\n"
ACCESSES = {
    "load": "%r{n}: i32 = load y[{at}]\n" + SHOW,
    "store": "store y[{at}] = %v{v}",
    "store_at": AT + "store_at %v{v}, %at{n} {{buffer = y}}",
    "load_at": AT + "%r{n}: i32 = load_at %at{n} {{buffer = y}}\n" + SHOW,
    "add": AT + "atomic %v{v}, %at{n} {{buffer = y, combine = add}}",
    "exchange": AT + "%r{n}: i32 = atomic %v{v}, %at{n} {{buffer = y, combine = exchange}}\n" + SHOW,
    "swap": AT + "%r{n}: i32 = atomic_cas %zero, %v{v}, %at{n} {{buffer = y}}\n" + SHOW,
}
AROUND = {
    "nothing": "{body}",
    "if": "if %c{v} () {{\n{body}\nyield\n}} () {{\nyield\n}}",
    "for": "for k () {{\n{body}\nyield\n}}",
    "uneven for": "for u () {{\n{body}\nyield\n}}",
    "while": "%w{n}: i32 = while %zero (%a{n}: i32) {{\n%more{n}: bool = lt %a{n}, %v{v}\nyield %more{n}\n}} "
    "(%b{n}: i32) {{\n{body}\n%next{n}: i32 = add %b{n}, %one\nyield %next{n}\n}}",
}
VALUES = ("0", "p", "q", "p + 2*q")
PLACES = ("0", "4", "p", "q", "3*p + q", "p + 3*q", "2*p + q", "mod(p, 2)")
MEETING = """kernel f(y: inout i32[20], seen: out i32[3, 3, 3]) {
  program p < 3
  program q < 3
  loop k < 2
  loop u < p
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %two: i32 = constant {value = 2}
"""
MEETING += "".join(
    f"  %v{v}: i32 = index {{form = {form}}}\n  %c{v}: bool = lt %v{v}, %two\n" for v, form in enumerate(VALUES)
)


@st.composite
def meetings(draw: st.DrawFn) -> Kernel:
    """A kernel with one to three accesses to y, in branches, loops and whiles or not."""
    body = ""
    for n in range(draw(st.integers(1, 3))):
        around, access = draw(st.sampled_from(sorted(AROUND))), draw(st.sampled_from(sorted(ACCESSES)))
        at, v = draw(st.sampled_from(PLACES)), draw(st.integers(0, len(VALUES) - 1))
        at += " + 9*k" if around == "for" and draw(st.booleans()) else ""
        body += AROUND[around].format(n=n, v=v, body=ACCESSES[access].format(n=n, v=v, at=at)) + "\n"
    return verify(retype(parse_kernel(MEETING + body + "}\n")))


def test_programs_that_meet_seem_to_run_one_after_the_other() -> None:
    seen: Counter[bool] = Counter()

    @settings(max_examples=300, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(meetings())
    def check(kernel: Kernel) -> None:
        at_once = is_parallel(kernel)
        seen[at_once] += 1
        if at_once:
            given = {"y": np.arange(20, dtype=np.int32) % 3}
            for order in ORDERS:
                expected = stepped.run(kernel, given, order=order)
                got = batched.run(kernel, given, order=order)
                assert all(np.array_equal(got[name], array) for name, array in expected.items())

    check()
    assert min(seen[True], seen[False]) > 60, seen


DIVIDED = """kernel divided(d: in i32[1], y: inout i32[20, 20]) {
  program p < 9
  integer n
  %d: i32 = load d[0]
  let %d {integer = n}
  %p: i32[p] = index {form = p}
  %x: i32[p] = load y[floordiv(p, n), mod(p, n)]
  %s: i32[p] = add %x, %p
  store y[floordiv(p, n), mod(p, n)] = %s
}
"""


def test_a_divisor_from_data_may_be_zero() -> None:
    """Then all programs meet in y[0, 0]: it takes more than the form to tell them apart."""
    kernel = bind(parse_kernel(DIVIDED), {})
    given = {"d": np.array([0], np.int32), "y": np.zeros((20, 20), np.int32)}
    assert not is_parallel(kernel)
    assert not disjoint(kernel).proven
    assert run(kernel, given)["y"][0, 0] == sum(range(9))
