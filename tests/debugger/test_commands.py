"""Command lines, and the text that answers them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from kdsl.debugger import Commands
from kdsl.debugger.commands import COMMANDS
from kdsl.debugger.showing import FEW, Shown, in_full, one_line
from kdsl.debugger.start import start
from kdsl.diagnostics import KdslError
from tests.debugger.kernels import line, product

PART = line("part = kdsl.dot")


@pytest.fixture
def commands() -> Iterator[Commands]:
    session = start(product, product.examples[0], {}, program="1,1")
    yield Commands(session)
    session.close()


def test_a_stop_names_the_program_the_turn_and_the_line(commands: Commands) -> None:
    assert "program 1,1 (m_block 1, n_block 1) at" in commands.run("w")
    commands.run("step")
    first, source = commands.run("s").splitlines()
    assert first.startswith("program 1,1 (m_block 1, n_block 1), k_block 0 at ") and first.endswith(
        f"kernels.py:{PART}"
    )
    assert source == f"   {PART} ->             part = kdsl.dot(a[m, k], b[k, n])"
    assert "k_block: turn 0 of 2" in commands.run("where")


def test_a_statement_of_several_lines_is_shown_whole(commands: Commands) -> None:
    commands.run(f"break {line('total = half(') + 1}")
    lines = commands.run("continue").splitlines()
    assert [int(text.split()[0]) - line("total = half(") for text in lines[1:]] == [0, 1, 2, 3]
    assert all("->" in text for text in lines[1:])
    assert "called at" in commands.run("step") + commands.run("where")


def test_an_empty_line_steps_again_and_repeats_nothing_else(commands: Commands) -> None:
    commands.run("s")
    assert f":{PART}" in commands.run("") and f":{PART + 1}" in commands.run("")
    commands.run("values")
    assert commands.run("") == ""


def test_the_source_around_has_an_arrow_and_stars(commands: Commands) -> None:
    commands.run(f"b {PART + 1}")
    marked = {int(text.split()[0]): text.split()[1] for text in commands.run("list").splitlines() if text[9:].strip()}
    assert marked[PART - 2] == "->" and marked[PART + 1] == "*" and marked[PART] not in ("->", "*")
    assert commands.run("break").endswith(f"kernels.py:{PART + 1}") and "no more" in commands.run(f"clear {PART + 1}")
    assert commands.run("b") == "there are none"
    with pytest.raises(KdslError, match="K0903"):
        commands.run("break here")


def test_values_are_lines_and_lanes_without_validity_are_dots(commands: Commands) -> None:
    commands.run(f"b {PART + 1}")
    commands.run("c")
    rows = {text.split()[0]: text for text in commands.run("v").splitlines()}
    assert rows.keys() == {"a", "b", "c", "scale", "BM", "BN", "BK", "m", "n", "k", "total", "part"}
    assert "4:5 of 5, tile 1" in rows["m"] and rows["c"].endswith("  nothing")
    head, *lanes = commands.run("p total").splitlines()
    assert head == "total: f32 tile over m, n (m 4:8 x n 4:8), 3 of 16 valid"
    assert [line.strip("[] ").split() for line in lanes] == [["0", "0", "0", "."], *[["."] * 4] * 3]
    assert commands.run("p m") == "m = 4:5 of 5, tile 1 (index variable)"
    head, *lanes = commands.run("memory a[1:3, 0:4]").splitlines()
    assert head == "a[1:3, 0:4]: f32 tensor, input (1:3 x 0:4)"
    shown = [[float(word) for word in line.strip("[] ").split()] for line in lanes]
    assert shown == commands.session.arguments["a"][1:3, :4].tolist()


def test_program_moves_and_starts_again(commands: Commands) -> None:
    assert "no other program has run" in commands.run("program 0,1")
    assert "program 0,1" in commands.run("s") and f":{PART - 2}" in commands.run("program")
    assert "has ended" in commands.run("c") and "program 1,0 (m_block 1, n_block 0) at" in commands.run("s")
    with pytest.raises(KdslError, match="K0901"):
        commands.run("program 7")
    assert "program 1,0" in commands.run("w")


def test_what_is_no_command_prints_the_commands(commands: Commands) -> None:
    answer = commands.run("jump 3")
    assert answer.startswith("there is no command jump") and all(f" {name} " in answer for name in COMMANDS)
    assert commands.run("help") in answer and commands.run("") == ""
    assert commands.run("quit") == "" and commands.ended


def test_completion_knows_commands_and_names(commands: Commands) -> None:
    assert commands.complete("pr") == ["print", "program"]
    commands.run("s")
    assert commands.complete("to") == ["total"]


def test_many_lanes_show_their_corners_and_range() -> None:
    tile = np.arange(20 * 30, dtype=np.float32).reshape(20, 30) / 7
    tile[0, 1] = np.nan
    valid, known = np.arange(30) < np.full((20, 1), 29), np.ones((20, 30), bool)
    known[0, 2] = False
    text = in_full("t", Shown("f32 tile", tile, valid, known, ("m 0:20", "n 0:30")))
    head, *rows = text.splitlines()
    assert (
        head == "t: f32 tile (m 0:20 x n 0:30), 580 of 600 valid, 599 of 600 known, 0 to 85.4286, 1 nan"
        and tile.size > FEW
    )
    assert rows[0].strip("[] ").split() == ["0", "nan", "?", "...", "3.85714", "4", "."] and len(rows) == 7


@pytest.mark.parametrize(
    "array, text",
    [
        (np.float32(0.1), "0.100000001"),
        (np.float64(0.1), "0.10000000000000001"),
        (np.array([True, False]), "True, False"),
        (np.array([3, -200, 7, 9]), "-200 to 9"),
        (np.array([]), "nothing"),
        (np.full(5, np.nan), "5 nan"),
    ],
)
def test_numbers_in_a_line(array: np.ndarray, text: str) -> None:
    assert one_line(Shown("", np.asarray(array))) == text


def test_storage_dtypes_are_shown_as_numbers() -> None:
    import ml_dtypes

    values = [1.5, -2.0, 0.5, 3.0]
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float16):
        assert one_line(Shown("", np.array(values, dtype))) == "-2 to 3", dtype
        assert in_full("x", Shown("tile", np.array(values, dtype), axes=("n 0:4",))).endswith("[1.5  -2 0.5   3]")
    assert one_line(Shown("", np.array([1, -2, 3, 7], ml_dtypes.int4))) == "-2 to 7"
