"""Each command in this process: what it prints, writes and returns. Targets are fake (tests/runtime/fake_target.py)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kdsl.cli import USAGE, main
from kdsl.diagnostic_codes import CODES
from kdsl.equivalence.explanation import Explanation, Part
from kdsl.equivalence.verdict import Outcome, Verdict

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/verdict.json").read_text())
SOFTMAX, MATMUL = "kdsl.kernels.softmax", "kdsl.kernels.matmul"

pytestmark = pytest.mark.usefixtures("fake")


def report(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def rows(path: Path) -> list[tuple[str, str | None, str, str | None]]:
    return [(row["target"], row["arch"], row["verdict"], row["code"]) for row in report(path)["rows"]]


# -- build ---------------------------------------------------------------------------------------------------------


def test_build_writes_sources_manifest_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, written = tmp_path / "out", tmp_path / "r.json"
    assert main(["build", "kdsl.kernels", "--target", "fake", "--out", str(out), "--json", str(written)]) == 0
    assert len(rows(written)) == 5
    assert set(rows(written)) == {("fake", None, "built", None)}
    assert set(report(written)["versions"]) == {"kdsl", "python", "numpy"}
    assert (out / "fake/softmax.py").exists() and (out / "manifest.json").exists()
    printed = capsys.readouterr()
    assert printed.out.count("built") == 5
    assert "kdsl.kernels.softmax:softmax: writing fake" in printed.err


def test_build_with_check_has_a_row_for_each_architecture(tmp_path: Path) -> None:
    written = tmp_path / "r.json"
    command = ["build", SOFTMAX, "--target", "fake", "--out", str(tmp_path / "out"), "--check", "--json", str(written)]
    assert main(command) == 0
    assert rows(written) == [("fake", "fake:1", "compiled", None), ("fake", "fake:2", "compiled", None)]
    assert report(written)["versions"]["fakec"] == "9.9"
    assert main([*command, "--arch", "fake:2"]) == 0
    assert rows(written) == [("fake", "fake:2", "compiled", None)]


@pytest.mark.parametrize(
    ("behaviour", "status", "verdict"),
    [("refuse", 1, "refused"), ("missing", 1, "refused"), ("reject", 1, "refused"), ("crash", 4, "error")],
)
def test_the_report_is_written_whatever_the_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, status: int, verdict: str
) -> None:
    monkeypatch.setenv("FAKE_TARGET", behaviour)
    written = tmp_path / "r.json"
    command = ["build", SOFTMAX, "--target", "fake", "--check", "--out", str(tmp_path / "out"), "--json", str(written)]
    assert main(command) == status
    assert rows(written)[-1][2] == verdict


def test_a_refusal_is_shown_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_TARGET", "refuse")
    assert main(["build", SOFTMAX, "--target", "fake", "--out", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    pattern = r"error\[K0301\]: fake cannot do this: no such thing\n  --> .*softmax\.py:\d+:\d+\n.*\| +def softmax"
    assert re.search(pattern, printed.err)
    assert "K0301" in printed.out and "no such thing; what to do: do without" in printed.out


def test_a_target_that_is_known_but_not_installed_is_refused(tmp_path: Path) -> None:
    written = tmp_path / "r.json"
    command = ["build", SOFTMAX, "--target", "trainium,fake", "--out", str(tmp_path / "out"), "--json", str(written)]
    assert main(command) == 1
    assert rows(written) == [("trainium", None, "refused", "K0309"), ("fake", None, "built", None)]
    assert main([*command, "--arch", "trn2,fake:1"]) == 1


def test_tile_sizes_are_set_where_a_kernel_has_them(tmp_path: Path) -> None:
    assert main(["build", MATMUL, "--target", "fake", "--out", str(tmp_path), "--set", "BM=16", "--set", "BK=8"]) == 0
    assert "{'BM': 16, 'BN': 64, 'BK': 8}" in (tmp_path / "fake/matmul.py").read_text()


USAGE_ERRORS = {
    "no such file": ["build", "nowhere.py"],
    "no such kernel": ["build", f"{SOFTMAX}::nothing"],
    "no such target": ["build", SOFTMAX, "--target", "gpux"],
    "no target": ["build", SOFTMAX, "--target", ""],
    "no such architecture": ["build", SOFTMAX, "--target", "fake", "--arch", "cuda:91"],
    "another target's architecture": ["build", SOFTMAX, "--target", "fake", "--arch", "cuda:90"],
    "no tile of this kernel": ["build", SOFTMAX, "--target", "fake", "--set", "BX=8"],
    "no tile of any kernel": ["build", "kdsl.kernels", "--target", "fake", "--set", "BX=8"],
    "no number": ["build", SOFTMAX, "--target", "fake", "--set", "BM=eight"],
    "no equals sign": ["build", SOFTMAX, "--target", "fake", "--set", "BM"],
    "no tile size": ["build", SOFTMAX, "--target", "fake", "--set", "BM=0"],
    "verify: no such file": ["verify", "nowhere.py"],
    "verify: no such target": ["verify", SOFTMAX, "--target", "gpux"],
    "verify: no such architecture": ["verify", SOFTMAX, "--target", "fake", "--arch", "x"],
}


@pytest.mark.parametrize("command", USAGE_ERRORS.values(), ids=USAGE_ERRORS)
def test_wrong_usage_is_a_diagnostic_status_2_and_a_report_without_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    written = tmp_path / "r.json"
    out = ["--out", str(tmp_path / "out")] if command[0] == "build" else []
    assert main([*command, *out, "--json", str(written)]) == 2
    assert report(written)["rows"] == []
    printed = capsys.readouterr()
    found = re.search(r"^error\[(K\d{4})\]: ", printed.err, re.MULTILINE)
    assert found is not None and found[1] in USAGE
    assert printed.out == "" and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["build", SOFTMAX],
        ["build", "--out", "x"],
        ["build", SOFTMAX, "--out", "x", "--nonsense"],
        ["verify", SOFTMAX, "--examples", "0"],
        ["verify", SOFTMAX, "--examples", "many"],
        ["show", SOFTMAX, "--after", "nothing"],
        ["show", SOFTMAX, "--example", "3"],
        ["explain", "K9999"],
        ["nonsense"],
    ],
)
def test_what_the_command_line_cannot_mean_is_status_2(
    command: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    assert "Usage:" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_two_kernels_for_one_file_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path(__file__).parents[2].joinpath("kernels/softmax.py").read_text()
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(text)
    assert main(["build", str(tmp_path), "--target", "fake", "--out", str(tmp_path / "out")]) == 2
    assert "error[K0408]: a:softmax and b:softmax" in capsys.readouterr().err


def test_what_cannot_be_written_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "manifest.json").write_text("{}")
    for options in (
        ["--out", str(tmp_path / "file")],
        ["--out", str(tmp_path)],
        ["--out", str(tmp_path / "out"), "--json", str(tmp_path)],
    ):
        assert main(["build", SOFTMAX, "--target", "fake", *options]) == 2
        assert "error[K0409]" in capsys.readouterr().err
    assert (tmp_path / "manifest.json").read_text() == "{}"


def test_an_interruption_is_status_130_with_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = Verdict(kernel="a:b", target="fake", verdict=Outcome.BUILT)
    results = iter([[done]])

    def build(*arguments: object) -> list[Verdict]:
        for result in results:
            return result
        raise KeyboardInterrupt

    monkeypatch.setattr("kdsl.runtime.build.build", build)
    written = tmp_path / "r.json"
    command = ["build", "kdsl.kernels", "--target", "fake", "--out", str(tmp_path / "o"), "--json", str(written)]
    assert main(command) == 130
    assert rows(written) == [("fake", None, "built", None)]
    assert capsys.readouterr().err.endswith("kdsl: interrupted\n")


def test_a_bug_is_a_line_and_status_4_and_a_traceback_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def build(*arguments: object) -> list[Verdict]:
        raise IndexError("off by one")

    monkeypatch.setattr("kdsl.runtime.build.build", build)
    monkeypatch.delenv("KDSL_DEBUG", raising=False)
    command = ["build", SOFTMAX, "--target", "fake", "--out", str(tmp_path / "o"), "--json", str(tmp_path / "r.json")]
    assert main(command) == 4
    assert report(tmp_path / "r.json")["rows"] == []
    error = capsys.readouterr().err
    assert "IndexError: off by one (a bug in kdsl" in error and "Traceback" not in error
    monkeypatch.setenv("KDSL_DEBUG", "1")
    assert main(command) == 4
    assert "Traceback" in capsys.readouterr().err


RACING = """
import kdsl
from kdsl import Out, Tensor, f32

class M(kdsl.Dim): ...

@kdsl.kernel
@kdsl.example(M=4)
def racing(x: Tensor[M, f32], y: Out[f32]) -> None:
    for m in kdsl.grid(M):
        y[()] = x[m]
"""

# -- verify --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "status"), [("verified", 0), ("undecided", 1), ("refused", 1), ("mismatch", 3), ("error", 4)]
)
def test_verify_shows_and_writes_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: str, status: int
) -> None:
    given: dict[str, Any] = {}

    def verify(kernel: Any, **options: Any) -> list[Verdict]:
        given.update(options, kernel=kernel.name)
        code = "K0301" if outcome == "refused" else None
        return [Verdict(kernel=options["source"], target="fake", verdict=Outcome(outcome), message="why", code=code)]

    monkeypatch.setattr("kdsl.equivalence.verify.verify", verify)
    written = tmp_path / "r.json"
    command = ["verify", SOFTMAX, "--target", "fake", "--arch", "fake:1", "--examples", "3", "--seed", "5"]
    assert main([*command, "--json", str(written)]) == status
    assert rows(written)[0][2] == outcome
    del given["progress"]
    assert given == {
        "kernel": "softmax",
        "source": f"{SOFTMAX}:softmax",
        "targets": ["fake"],
        "archs": ["fake:1"],
        "examples": 3,
        "seed": 5,
        "shrink_seconds": 20.0,
        "save_failures": None,
    }


def test_verify_explains_the_bound_of_each_target_that_ran(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def verify(kernel: Any, **options: Any) -> list[Verdict]:
        outcomes = {"numpy": Outcome.VERIFIED, "fake": Outcome.VERIFIED, "broken": Outcome.REFUSED}
        return [Verdict(kernel=options["source"], target=name, verdict=outcomes[name]) for name in outcomes]

    def explain_bound(kernel: Any, source: str, target: str, seed: int) -> Explanation:
        return Explanation(source, target, f"seed {seed}", "y[0]", 1.0, 0.5, 0.25, (Part("s.py", 3, ("exp",), 1.0),))

    monkeypatch.setattr("kdsl.equivalence.verify.verify", verify)
    monkeypatch.setattr("kdsl.equivalence.explanation.explain_bound", explain_bound)
    command = ["verify", SOFTMAX, "--target", "fake,broken", "--seed", "5"]
    assert main([*command, "--explain-bound"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "softmax on fake, seed 5: y[0] = 1, hard bound 0.5, expected 0.25" in shown
    assert "s.py:3 exp" in shown and "on broken" not in shown and "on numpy" not in shown
    assert main(command) == 1
    assert "hard bound" not in capsys.readouterr().out


def test_a_counter_example_is_shown_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "racing.py"
    source.write_text(RACING)
    assert main(["verify", str(source), "--target", "numpy", "--save-failures", str(tmp_path / "kept")]) == 3
    (file,) = (tmp_path / "kept").iterdir()
    shown = capsys.readouterr().err
    assert "A small example that fails" in shown
    assert file.read_text() in shown


def test_an_exception_in_verify_is_an_error_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(kernel: Any, **options: Any) -> list[Verdict]:
        raise IndexError("off by one")

    monkeypatch.setattr("kdsl.equivalence.verify.verify", verify)
    written = tmp_path / "r.json"
    assert main(["verify", SOFTMAX, "--target", "fake", "--json", str(written)]) == 4
    assert rows(written) == [("fake", None, "error", None)]


# -- show, explain, targets ----------------------------------------------------------------------------------------


def test_show_prints_ir_that_parses_back(capsys: pytest.CaptureFixture[str]) -> None:
    from kdsl.ir.text import parse_kernel, print_kernel

    assert main(["show", f"{SOFTMAX}::softmax"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("kernel softmax(x: in f32[M, N]")
    assert print_kernel(parse_kernel(text)) == text
    assert main(["show", SOFTMAX, "--example", "2", "--bind"]) == 0
    assert "x: in bf16[64, 512]" in capsys.readouterr().out
    assert main(["show", SOFTMAX, "--locations"]) == 0
    assert "softmax.py" in capsys.readouterr().out


def test_show_after_a_pass_is_the_kernel_after_the_passes_up_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    from kdsl.ir.text import print_kernel
    from kdsl.kernels.softmax import softmax
    from kdsl.passes import PASSES, run_passes
    from kdsl.runtime.examples import default_example

    for name in PASSES:
        assert main(["show", SOFTMAX, "--after", name]) == 0
        passes = list(PASSES)[: list(PASSES).index(name) + 1]
        assert capsys.readouterr().out == print_kernel(run_passes(default_example(softmax).kernel, passes))
    assert main(["show", SOFTMAX, "--after", "batch(m_block, 4)"]) == 0
    assert "axis m < 4*BM where 4*BM*m_block + m < M" in capsys.readouterr().out


def test_show_of_a_wrong_kernel_is_status_1_with_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.py"
    source = Path(__file__).parents[2].joinpath("kernels/softmax.py").read_text()
    file.write_text(source.replace("over=N)\n        numerator", "over=M)\n        numerator"))
    assert main(["show", str(file)]) == 1
    assert re.match(rf"error\[K02\d\d\]: .*\n  --> {file}:\d+:\d+\n", capsys.readouterr().err)


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.fullmatch(r"K0[1-9]\d\d", code)
    entry = CODES[code]
    assert len(entry.explanation.strip()) > 40 and entry.hint.strip() and entry.message.strip()
    assert main(["explain", code.lower()]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{code}: {entry.message}\n") and entry.explanation.strip() in text


def test_targets_says_what_is_there_and_what_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kdsl.runtime import versions

    monkeypatch.setattr("kdsl.runtime.target.target_names", lambda: ("broken", "fake"))
    versions.toolchain.cache_clear()
    assert main(["targets"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["fake", "fake:1", "yes", "nothing", "fakec", "9.9"] in lines
    assert ["trainium", "not", "installed"] in lines
    assert any(line[:2] == ["broken", "ModuleNotFoundError:"] for line in lines)
    assert any(line[0] == "numpy" for line in lines)
    monkeypatch.setenv("FAKE_TARGET", "missing")
    versions.toolchain.cache_clear()
    assert main(["targets"]) == 0
    assert "no: no compiler" in capsys.readouterr().out
    versions.toolchain.cache_clear()


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    import kdsl

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"kdsl {kdsl.__version__}\n"
