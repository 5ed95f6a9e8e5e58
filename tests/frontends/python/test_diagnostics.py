"""Every mistake in a kernel's source gives its code, at the line and the column of what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import kdsl
from kdsl.diagnostic_codes import CODES
from kdsl.diagnostics import KdslError
from tests.frontends.python.mistakes import GRID, SOURCE
from tests.frontends.python.mistakes_in_operations import OPERATIONS
from tests.frontends.python.sources import kernel_of

MISTAKES = SOURCE | OPERATIONS


@pytest.mark.parametrize(("code", "body"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_where_it_is(code: str, body: str, tmp_path: Path) -> None:
    kernel, place = kernel_of(tmp_path, body)
    assert place is not None
    with pytest.raises(KdslError) as caught:
        kernel.elaborate(T=kdsl.f32)
    error = caught.value
    assert error.code == code, error.render()
    assert error.location is not None
    assert (error.location.line, error.location.column) == (place.line, place.column), error.render()
    if place.end is not None:
        assert error.location.end_column == place.end, error.render()
    assert error.hint and "%" not in error.message.replace("K %", "").replace("`%`", ""), error.message


def test_every_code_of_the_front_end_is_tested() -> None:
    tested = {code for code, _ in MISTAKES.values()} | {"K0101", "K0113"}
    assert {code for code in CODES if code < "K03"} == tested


def test_a_function_without_a_file_has_no_source() -> None:
    names: dict[str, kdsl.Kernel] = {}
    exec("import kdsl\n@kdsl.kernel\ndef kernel() -> None: pass", names)
    with pytest.raises(KdslError, match=r"K0101.*kernel cannot be read"):
        names["kernel"].elaborate()


def test_only_a_function_can_be_a_kernel() -> None:
    with pytest.raises(KdslError, match="K0101"):
        kdsl.kernel(3)  # type: ignore[call-overload]  # the mistake that is tested


def test_a_binding_that_the_kernel_does_not_have_is_named(tmp_path: Path) -> None:
    kernel, place = kernel_of(
        tmp_path, "@kdsl.kernel\ndef «kernel»(c: Out[M, T]) -> None:\n    for m in kdsl.grid(M):\n        c[m] = 0\n"
    )
    with pytest.raises(KdslError, match=r"K0113.*no dtype variable or constant named U") as caught:
        kernel.elaborate(T=kdsl.f32, U=kdsl.f32)
    assert caught.value.location is not None and place is not None
    assert (caught.value.location.line, caught.value.location.column) == (place.line, place.column)


@pytest.mark.parametrize(
    ("body", "underlined"),
    [
        ("\tfor m, n in kdsl.grid(M.tiles(BM), N.tiles(BN)):\n\t\tc[m, n] = «w»[n]\n", "w"),
        (GRID + "        Größe = 'äöü€'; c[m, n] = «w»[n]\n", "w"),
        (GRID + "        c[m, n] = '😀' + «wörter»\n", "wörter"),
    ],
    ids=["tabs", "two bytes", "four bytes"],
)
def test_the_caret_stands_under_the_character_that_is_meant(body: str, underlined: str, tmp_path: Path) -> None:
    kernel, place = kernel_of(tmp_path, body)
    assert place is not None
    with pytest.raises(KdslError) as caught:
        kernel.elaborate(T=kdsl.f32)
    source, carets = (line.partition(" | ")[2] for line in caught.value.render().splitlines()[2:4])
    assert source == place.text
    start = place.column - 1
    # A tab before the caret is a tab in both lines, so that a terminal moves both by as much.
    assert carets == "".join("\t" if character == "\t" else " " for character in source[:start]) + "^" * len(underlined)
    assert source[start:].startswith(underlined)


def test_a_message_has_the_position_the_reason_and_the_way_out(tmp_path: Path) -> None:
    kernel, place = kernel_of(
        tmp_path, GRID + "        peak = kdsl.max(v[n], over=n)\n        x = kdsl.sum(«peak», over=n)\n"
    )
    assert place is not None
    with pytest.raises(KdslError) as caught:
        kernel.elaborate(T=kdsl.f32)
    error = caught.value
    assert error.location is not None
    assert error.render().splitlines() == [
        "error[K0202]: `peak` does not vary over n",
        f"  --> {error.location.file}:{place.line}:{place.column}",
        f"  {place.line} |         x = kdsl.sum(peak, over=n)",
        f"  {' ' * len(str(place.line))} |                      ^^^^",
        "  help: reduce over one of its own axes: it has none",
        "  (kdsl explain K0202)",
    ]


def test_a_mistake_in_a_helper_is_shown_in_the_helper(tmp_path: Path) -> None:
    helper = "@kdsl.inline\ndef twice(x):\n    return «x» + x\n"
    signature = "@kdsl.kernel\ndef kernel(x: Tensor[M, T], y: Out[M, T]) -> None:\n"
    kernel, place = kernel_of(tmp_path, helper + signature + "    for m in kdsl.grid(M):\n        y[m] = twice(x)\n")
    assert place is not None
    with pytest.raises(KdslError, match=r"K0104.*the tensor x") as caught:
        kernel.elaborate(T=kdsl.f32)
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (place.line, place.column)
