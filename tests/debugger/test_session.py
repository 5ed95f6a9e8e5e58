"""Stops, steps and what is seen at them, against NumPy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kdsl.debugger import Session, Stop
from kdsl.debugger.start import start
from kdsl.diagnostics import KdslError
from kdsl.interpreter import run
from kdsl.ir.meaning import Array
from kdsl.lang.kernel import Kernel
from tests.debugger.kernels import careless, half, halvings, line, peaks, places, product, unrolled


@pytest.fixture(autouse=True)
def sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No session leaves a thread behind."""
    opened: list[Session] = []
    begin = Session.__init__

    def note(session: Session, *arguments: Any, **keywords: Any) -> None:
        opened.append(session)
        begin(session, *arguments, **keywords)

    monkeypatch.setattr(Session, "__init__", note)
    yield
    for session in opened:
        session.close()


def opened(kernel: Kernel, program: str = "", **sizes: Any) -> Session:
    example = replace(kernel.examples[0], values={**kernel.examples[0].values, **sizes})
    return start(kernel, example, {}, program=program)


def on(kernel: Kernel, arguments: dict[str, Array], program: tuple[int, ...] = ()) -> Session:
    """A session on arguments of the test's own."""
    drawn = opened(kernel)
    return Session(drawn.kernel, {**drawn.arguments, **arguments}, drawn.sizes, program)


def at(stop: Stop) -> int:
    assert stop.statement is not None
    return stop.statement.location.line


def lanes(session: Session, text: str) -> Array:
    shown = session.look(text)
    assert shown.array is not None
    return shown.array if shown.valid is None else np.where(shown.valid, shown.array, np.nan)


def refused(code: str, call: Any, *arguments: Any) -> str:
    with pytest.raises(KdslError) as caught:
        call(*arguments)
    assert caught.value.code == code
    return caught.value.render()


def test_step_follows_the_authors_lines_into_loops_and_helpers() -> None:
    session = opened(product, "1,1")
    seen = [at(session.stop)]
    while session.step().reason == "line":
        seen.append(at(session.stop))
    loop = [line("part = kdsl.dot"), line("total += part")]
    helper = [line("z = x"), line("return z + y")]
    head = [line("total = kdsl.zeros"), line("for k in K")]
    assert seen == [*head, *loop, *loop, line("total = half("), *helper, *helper, line("c[m, n] = total")]
    assert session.stop.reason == "end" and session.stop.program == (1, 1)


def test_next_goes_over_loops_and_helpers_and_finish_out_of_them() -> None:
    session = opened(product)
    session.step()
    assert at(session.stop) == line("for k in K")
    assert at(session.next()) == line("total = half(")
    assert at(session.next()) == line("c[m, n] = total")
    session.go_to((0, 0))
    for _ in range(2):
        session.step()
    assert session.stop.loops == (("k_block", 0, 2),)
    assert at(session.next()) == line("total += part")
    assert at(session.next()) == line("part = kdsl.dot") and session.stop.loops == (("k_block", 1, 2),)
    assert at(session.finish()) == line("total = half(")
    assert at(session.step()) == line("z = x")
    assert at(session.finish()) == line("c[m, n] = total")
    assert session.finish().reason == "end"


def test_a_name_stands_for_what_it_means_before_the_line() -> None:
    session = opened(product, "1,1")
    a, b = session.arguments["a"], session.arguments["b"]
    c = a.astype(np.float64) @ b

    def ragged(tile: Array) -> Array:
        """A tile of 4 by 4 of which one row and three columns are valid."""
        whole = np.full((4, 4), np.nan)
        whole[:1, :3] = tile
        return whole

    for _ in range(3):
        session.step()
    assert at(session.stop) == line("total += part")
    first = a[4:, :4].astype(np.float64) @ b[:4, 4:]
    np.testing.assert_array_equal(lanes(session, "total"), ragged(np.zeros((1, 3))))
    np.testing.assert_array_equal(lanes(session, "part"), ragged(first))
    assert session.look("part").axes == ("m 4:8", "n 4:8")
    assert session.look("k").text == "0:4 of 6, tile 0"
    session.finish()
    for name in ("total", "same"):  # `same` is but another name
        session.set_break(line("c[m, n] = total"))
        if name == "total":
            np.testing.assert_array_equal(lanes(session, name), ragged(c[4:, 4:]))
    assert session.proceed().reason == "breakpoint"
    np.testing.assert_array_equal(lanes(session, "same"), ragged(c[4:, 4:]))
    factor = 0.5 + 0.5 * session.arguments["scale"]
    np.testing.assert_array_equal(lanes(session, "total"), ragged(c[4:, 4:] * factor + 3))
    np.testing.assert_array_equal(lanes(session, "total[0, 1:3]"), c[4, 5:] * factor + 3)
    np.testing.assert_array_equal(lanes(session, "m.index"), np.where(np.arange(4) < 1, np.arange(4, 8), np.nan))
    assert [lanes(session, name).item() for name in ("m.start", "n.stop", "M", "BK", "scale")] == [4, 7, 5, 4, 2]


def test_names_in_a_helper_are_its_own() -> None:
    session = opened(product)
    session.set_break(line("return z + y"))
    session.proceed()
    c = (session.arguments["a"].astype(np.float64) @ session.arguments["b"])[:4, :4]
    np.testing.assert_array_equal(lanes(session, "z"), c / 2)
    assert session.look("y").text == "1" and "total" not in session.names
    assert session.look("z").axes == ("m 0:4", "n 0:4")
    assert session.stop.statement is not None
    (caller,) = session.stop.statement.callers()
    assert caller.location.line == line("total = half(")
    session.proceed()
    np.testing.assert_array_equal(lanes(session, "z"), c)  # of the second call, scaled by 2
    assert session.look("y").text == "2"
    assert half.__name__ == "half"


def test_a_while_stops_at_each_test() -> None:
    session = on(halvings, {"x": np.array([1, 8, 3, 1, 1, 1, 1, 1], np.int32)}, (1,))
    assert at(session.step()) == line("while left > 1")
    for turn, left in enumerate((8, 4, 2, 1)):
        assert (at(session.stop), session.stop.loops) == (line("while left > 1"), (("while", turn, None),))
        assert [lanes(session, name).item() for name in ("left", "steps")] == [left, turn]
        if left > 1:
            assert at(session.step()) == line("left = left // 2")
            session.next()
            session.next()
    assert at(session.step()) == line("if steps > 1")


def test_next_at_a_while_goes_over_all_of_it() -> None:
    session = on(halvings, {"x": np.array([64] * 8, np.int32)})
    session.step()
    assert at(session.next()) == line("if steps > 1")
    assert lanes(session, "steps").item() == 6


def test_breakpoints_stop_where_the_program_meets_them() -> None:
    values = np.array([1, 8, 3, 1, 16, 1, 1, 1], np.int32)
    session = on(halvings, {"x": values})
    stops = []
    while True:
        try:
            stops.append(session.proceed())
        except KdslError as over:
            assert over.code == "K0906"
            break
    met = [stop.program for stop in stops if stop.reason == "breakpoint"]
    assert met == [(1,), (4,)] and [stop.program for stop in stops if stop.reason == "end"] == [(n,) for n in range(8)]
    assert {at(stop) for stop in stops if stop.reason == "breakpoint"} == {line("breakpoint()")}
    assert session.tensor("y").array is not None
    np.testing.assert_array_equal(session.memory["y"], np.where(values >= 4, -np.log2(values), values > 1))


def test_turns_of_an_unrolled_loop_are_stops_of_their_own() -> None:
    session = opened(unrolled)
    session.step()
    x = session.arguments["x"][:4]
    assert at(session.stop) == line("powers = [*powers") == at(session.next())
    assert session.look("powers").what == "list of 2"
    session.next()
    assert session.look("powers").text.count(";") == 2
    session.next()
    np.testing.assert_array_equal(session.memory["y"][:4], x**2 + x**3)


def test_programs_of_a_parallel_grid_run_alone() -> None:
    session = opened(product, "1,0")
    assert session.is_parallel
    session.proceed()
    assert np.isnan(session.memory["c"][:4]).all() and np.isnan(session.memory["c"][4, 4:]).all()
    expected = run(session.kernel, session.arguments)["c"]
    np.testing.assert_array_equal(session.memory["c"][4, :4], expected[4, :4])
    assert session.history().startswith("no other program has run")
    assert session.step().program == (1, 1)
    assert "those from 1,0 on" in session.history()


def test_programs_before_one_of_an_ordered_grid_have_run() -> None:
    session = on(places, {"x": np.ones(6, np.int32), "total": np.zeros(1, np.int32), "y": np.zeros(6, np.int32)}, (2,))
    assert not session.is_parallel and session.stop.program == (2,)
    assert session.memory["y"].tolist() == [11, 11, 0, 0, 0, 0] and session.memory["total"] == 2
    assert session.history() == "the 2 programs before it have run"
    session.step()
    assert lanes(session, "before").item() == 2
    session.proceed()
    assert session.memory["y"].tolist() == [11, 11, 11, 0, 0, 0]
    assert session.go_to((0,)).program == (0,) and session.memory["y"].tolist() == [0] * 6


def test_a_fault_stops_there_and_says_what_is_around() -> None:
    x = np.array([1, 9, 1, 1, 1, 1], np.int32)
    given = {"x": x, "total": np.zeros(1, np.int32), "y": np.zeros(6, np.int32)}
    session = on(places, given, (1,))
    assert [session.step().reason for _ in range(3)] == ["line", "end", "line"]
    stop = session.step()
    assert stop.reason == "line" and lanes(session, "before").item() == 10
    stop = session.step()
    assert stop.reason == "fault" and stop.program == (2,) and at(stop) == line("y[before] =")
    assert stop.fault is not None and stop.fault.code == "K0601"
    around = session.around()
    assert around.keys() == {"x", "y", "n", "before"} and around["n"].text == "2 of 6"
    assert "it has stopped at a fault" in refused("K0906", session.step)
    assert session.go_to((0,)).reason == "line"
    # The fault of a program that has to run before the one asked for is met there.
    assert session.go_to((4,)).program == (2,) and session.stop.reason == "fault"


def test_it_runs_under_the_oracles_checks() -> None:
    x = np.array([5, 0, 2, 10, 2, 2], np.float32)
    session = on(careless, {"x": x})
    session.step()
    left = session.look("left")
    assert left.known is not None and left.known.tolist() == [False, True, True, True]
    session.next()
    np.testing.assert_array_equal(lanes(session, "root"), [2, np.nan, 1, 3])
    stop = session.step()
    (warning,) = stop.warnings
    assert warning.code == "K0607" and warning.location is not None and warning.location.line == line("kdsl.sqrt")
    stop = session.step()
    assert stop.fault is not None and stop.fault.code == "K0603" and at(stop) == line("y[n] = left")
    written = session.tensor("y")
    assert written.known is not None and written.known.tolist() == [True] * 4 + [False] * 2


def test_it_does_not_stop_in_a_combine() -> None:
    session = opened(peaks, "1")
    assert at(session.step()) == line("y[m] = best")
    np.testing.assert_array_equal(lanes(session, "best"), session.arguments["x"][2:].max(axis=1))
    session.go_to((1,))
    refused("K0903", session.set_break, line("return kdsl.maximum"))


class _Never(threading.Event):
    def wait(self, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt


def test_a_second_interrupt_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(product)
    # The program does not get to run, as if an operation of its took for ever.
    monkeypatch.setattr(session, "_resumed", threading.Event())
    monkeypatch.setattr(session, "_stopped", _Never())
    with pytest.raises(KeyboardInterrupt):
        session.proceed()
    monkeypatch.undo()


def test_breaks_by_line() -> None:
    session = opened(product)
    place = session.set_break(line("same * scale,"))  # the second line of a statement
    assert place.line == line("total = half(")
    assert session.proceed().reason == "breakpoint" and at(session.stop) == place.line
    session.clear_break(place.line)
    assert session.proceed().reason == "end"
    assert "none" in refused("K0903", session.clear_break, place.line)
    shown = refused("K0903", session.set_break, line("same = total"))
    assert f"line {line('same = total')}" in shown and str(line("part = kdsl.dot")) in shown


@pytest.mark.parametrize("program", ["2,0", "0", "0,0,0", "-1,0", "x", "1;1"])
def test_programs_that_are_none(program: str) -> None:
    assert "m_block of 2, n_block of 2; the last program is 1,1" in refused("K0901", opened, product, program)


def test_a_grid_without_programs() -> None:
    with pytest.raises(KdslError, match="K0905"):
        opened(product, M=0)


@pytest.mark.parametrize(
    "text, code",
    [
        ("nothing", "K0902"),
        ("part", "K0902"),
        ("k", "K0902"),
        ("total[0, 0, 0]", "K0904"),
        ("total[4]", "K0904"),
        ("total[m]", "K0904"),
        ("total.start", "K0904"),
        ("m[0]", "K0904"),
        ("total + 1", "K0904"),
        ("__import__('os')", "K0904"),
        ("", "K0904"),
    ],
)
def test_what_cannot_be_shown(text: str, code: str) -> None:
    session = opened(product)
    session.set_break(line("c[m, n] = total"))
    session.proceed()
    refused(code, session.look, text)


def test_a_failure_of_the_interpreters_own_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(product)
    monkeypatch.setattr(session.program, "iterate", lambda op, initial: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        session.proceed()
