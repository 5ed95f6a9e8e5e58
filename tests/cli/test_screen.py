"""What is written while work goes on, when nobody watches."""

from __future__ import annotations

import pytest

from kdsl.cli.screen import progress


def test_in_a_pipe_each_stage_is_said_once_and_not_each_example(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as tell:
        for text in ("a: gpu: example 1 of 6", "b: tpu: example 1 of 6", "a: gpu: example 2 of 6", "a: compiling"):
            tell(text)
    assert capsys.readouterr().err == "a: gpu\nb: tpu\na: compiling\n"
