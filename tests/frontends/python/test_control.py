"""Branches and loops on what is known only when the kernel runs; checks and prints."""

from __future__ import annotations

import numpy as np
import pytest

import kdsl
from kdsl import InOut, Out, Scalar, Tensor, TileValue, f32, i32
from kdsl.analysis.parallel import is_parallel
from kdsl.diagnostics import KdslError
from kdsl.frontends.python import elaborate
from kdsl.ir.kernel import bind, walk
from kdsl.ir.text import print_kernel
from kdsl.passes import run_passes


class M(kdsl.Dim): ...


class N(kdsl.Dim): ...


class T(kdsl.DType): ...


NUMBERS = np.array([3, -2, 0, 7, -1], np.int32)


@kdsl.kernel
def branches(x: Tensor[M, i32], y: Out[M, f32], z: InOut[M, i32]) -> None:
    for m in kdsl.grid(M):
        value = x[m]
        kept, result, number = value, 0.0, 1
        if value > 2:
            result = value * 0.5
            z[m] = 1
        elif value < 0:
            number = 1
            z[m] = -1
        else:
            pass
        y[m] = result + number + kept


def test_a_branch_runs_one_way_and_its_names_meet() -> None:
    y, z = branches(NUMBERS, np.full(5, 9, np.int32))
    assert y.tolist() == [1 + x + (x / 2 if x > 2 else 0) for x in NUMBERS.tolist()]
    assert z.tolist() == [1 if x > 2 else -1 if x < 0 else 9 for x in NUMBERS.tolist()]


def test_a_branch_gives_only_what_differs() -> None:
    (branch, *_) = (op for op in walk(branches.elaborate().body) if op.name == "if")
    assert [value.name.split(".")[0] for value in branch.results] == ["result"]


@kdsl.kernel
def nested(x: Tensor[M, N, i32], y: Out[M, i32], *, B: kdsl.Tile = 2) -> None:
    for m in kdsl.grid(M):
        total: TileValue | int = 0
        for n in N.tiles(B):
            if kdsl.any(x[m, n] < 0, over=n):
                total += kdsl.sum(x[m, n], over=n)
                while total > 10:
                    total -= 3
        y[m] = total


@pytest.mark.parametrize("tile", [1, 2, 3])
def test_branches_and_loops_nest(tile: int) -> None:
    x = np.random.default_rng(0).integers(-3, 30, (6, 7)).astype(np.int32)
    expected = []
    for row in x:
        total = 0
        for start in range(0, 7, tile):
            part = row[start : start + tile]
            if (part < 0).any():
                total += part.sum()
                while total > 10:
                    total -= 3
        expected.append(total)
    assert nested(x, B=tile).tolist() == expected


@kdsl.kernel
def early(x: Tensor[M, i32], y: InOut[M, i32], *, always: kdsl.Const[bool] = False) -> None:
    for m in kdsl.grid(M):
        if always:
            return
        if x[m] < 0:
            y[m] = -1
            return
        if x[m] == 0:
            return
        y[m] = 10 * x[m]


def test_a_program_may_return_early() -> None:
    y = np.full(5, 5, np.int32)
    assert early(NUMBERS, y).tolist() == [30, -1, 5, 70, -1]
    assert early(NUMBERS, y, always=True).tolist() == [5] * 5


@kdsl.kernel
def collatz(x: Tensor[M, i32], steps: Out[M, i32], peak: Out[M, i32]) -> None:
    for m in kdsl.grid(M):
        value, count, top = x[m], 0, x[m]
        while value > 1:
            if value % 2 == 0:
                value = value // 2
            else:
                value = 3 * value + 1
            top = kdsl.maximum(top, value)
            count += 1
        steps[m], peak[m] = count, top


def test_while_runs_as_often_as_each_program_needs() -> None:
    steps, peak = collatz(np.array([1, 6, 27, 0], np.int32))
    assert steps.tolist() == [0, 8, 111, 0] and peak.tolist() == [1, 16, 9232, 0]


@kdsl.kernel
def halves(x: Tensor[M, N, f32], y: Out[M, N, f32], limit: Scalar[f32]) -> None:
    for m in kdsl.grid(M):
        tile = x[m, :]
        while kdsl.max(tile, over=N) > limit:
            tile = tile * 0.5
        y[m, :] = tile


def test_while_carries_tiles() -> None:
    x = np.array([[8, 4, 2], [1, 1, 0]], np.float32)
    assert halves(x, 2.0).tolist() == [[2, 1, 0.5], [1, 1, 0]]


@kdsl.kernel
def strided(y: InOut[N, i32], first: Scalar[i32], last: Scalar[i32]) -> None:
    for m in kdsl.grid(M):
        for i in kdsl.range(first, last, 3):
            y[i] = 10 * m.index + i


@pytest.mark.parametrize(("first", "last"), [(0, 9), (1, 8), (5, 5), (7, 2), (8, 9)])
def test_range_counts_as_pythons(first: int, last: int) -> None:
    expected = np.full(9, -1)
    expected[first:last:3] = np.arange(first, last, 3) if last > first else []
    assert strided(np.full(9, -1, np.int32), first, last, M=1).tolist() == expected.tolist()


@kdsl.kernel
def numbered(y: Out[N, i32], loops: Out[N, i32]) -> None:
    for n in kdsl.grid(N.tiles(4)):
        y[n] = kdsl.program_id(n)
        for k in N.tiles(4, start=n.start, stop=n.stop):
            loops[k] = kdsl.program_id(k)


def test_program_id_counts_tiles() -> None:
    y, loops = numbered(N=10)
    assert y.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2] and loops.tolist() == [0] * 10


@kdsl.kernel
def checked(x: Tensor[N, i32], y: Out[N, i32]) -> None:
    for n in kdsl.grid(N.tiles(4)):
        kdsl.check(x[n] > 0, "x is positive")
        kdsl.print("x is", x[n])
        y[n] = x[n]


def test_a_check_that_fails_names_itself_and_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(np.arange(1, 7, dtype=np.int32)).tolist() == [1, 2, 3, 4, 5, 6]  # pad lanes are not checked
    assert "x is" in capsys.readouterr().out
    with pytest.raises(KdslError, match=r"K0602.*x is positive, where n_block = 1"):
        checked(np.array([1, 2, 3, 4, 5, 0], np.int32))


def test_checks_and_prints_are_in_the_ir() -> None:
    assert [op.name for op in checked.elaborate().body.ops if op.name in ("assert", "print")] == ["assert", "print"]


@kdsl.kernel
def watched(x: Tensor[N, i32], y: Out[N, i32], *, watch: kdsl.Const[bool] = True) -> None:
    for n in kdsl.grid(N.tiles(4)):
        total = x[n]
        for _ in kdsl.range(0, 3):
            total += 1
            if watch:
                breakpoint()
        y[n] = total


def test_a_breakpoint_is_an_op_that_computes_nothing() -> None:
    kernel = watched.elaborate()
    assert [op.name for op in walk(kernel.body)].count("breakpoint") == 1
    assert run_passes(kernel, ["drop_breakpoints"]) == watched.elaborate(watch=False)
    assert is_parallel(bind(kernel, {"N": 6}))
    assert watched(np.arange(6, dtype=np.int32)).tolist() == [3, 4, 5, 6, 7, 8]


def test_statements_are_kept_where_asked_for_and_change_nothing() -> None:
    plain, kept = elaborate(watched, {}), elaborate(watched, {}, statements=True)
    assert plain == kept and print_kernel(plain) == print_kernel(kept)
    assert all(op.statement is None for op in walk(plain.body))
    stop = next(op for op in walk(bind(kept, {"N": 6}).body) if op.name == "breakpoint")
    assert stop.location is not None and stop.statement is not None
    assert stop.statement.location.line == stop.location.line
    assert stop.statement.names["total"].name == "total.1"  # what the loop has added to so far, not what came in
