"""Which grids are seen to be parallel, and that evaluating those all at once changes nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdsl.analysis.parallel import is_parallel
from kdsl.interpreter import batched, stepped
from kdsl.interpreter.grid import ORDERS
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import I32
from kdsl.ir.expr import Expr, symbol, wrap
from kdsl.ir.kernel import Axis, AxisKind, Bound, Buffer, Kernel, Op, Region, bind
from kdsl.ir.text import parse_kernel
from kdsl.ir.type_rules import OpTypeError
from kdsl.ir.verify import verify

TEXT = """kernel f(y: inout i32[SHAPE]) {
  size N
  program p < P
  program q < Q
  loop k < K
  axis m < M
  BODY
}
"""
ROWS, FLAT = "40, 3", "40"
ROW = "%i: i32[p] = index {form = p}\n"
OUR_ROWS = "%x: i32[p, q, m] = load y[4*p + m, q]\n"


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
}

DEPENDENT = {
    "a leading digit that is not told apart": kernel(ROW + "store y[p + 3*q] = %i", FLAT),
    "one element for all": kernel(ROW + "store y[0, 0] = %i"),
    "tiles overlap": kernel(ROW + "store y[3*p + m, q] = %i"),
    "turns overlap": kernel("for k () {\n" + ROW + "store y[p + k, q] = %i\nyield\n}"),
    "no column told apart": kernel("%i: i32[q] = index {form = q}\nstore y[4*p + m, 0] = %i"),
    "others read it": kernel(ROW + "%x: i32[p, q, m] = load y[39 - 4*p - m, q]\nstore y[4*p + m, q] = %x"),
    "others write it, too": kernel(ROW + "store y[4*p + m, q] = %i\nstore y[p + 16, q] = %i\nstore y[p, q] = %i"),
    "all write the same, having read it": kernel("%x: i32[m] = load y[m, 0]\nstore y[m, 0] = %x"),
    "all write the same, but not equally often": kernel(
        "%i: i32[m] = index {form = m}\nstore y[m, 0] = %i\n"
        "for k () {\n%j: i32[k] = index {form = k}\nstore y[m, 0] = %j\nyield\n}",
        k="3 - p",
    ),
}


@pytest.mark.parametrize("name", PARALLEL)
def test_programs_that_an_index_tells_apart_are_parallel(name: str) -> None:
    assert is_parallel(PARALLEL[name])


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
        seen[is_parallel(kernel)] += 1
        if is_parallel(kernel):
            y = np.arange(90, dtype=np.int32)
            expected = stepped.run(kernel, {"y": y})["y"]
            for order in ORDERS:
                assert np.array_equal(stepped.run(kernel, {"y": y}, order=order)["y"], expected)
                assert np.array_equal(batched.run(kernel, {"y": y}, order=order)["y"], expected)

    check()
    assert min(seen[True], seen[False]) > 30, seen
