from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kdsl.diagnostics import KdslError
from kdsl.equivalence.verdict import Outcome, Verdict
from kdsl.lang.kernel import Kernel
from kdsl.runtime import build as module
from kdsl.runtime.build import build
from kdsl.runtime.files import write_atomically
from kdsl.runtime.loading import load
from kdsl.runtime.manifest import Manifest

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/manifest.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
ADD, MATMUL = "kdsl.kernels.vector_add:vector_add", "kdsl.kernels.matmul:matmul"

pytestmark = pytest.mark.usefixtures("fake")


def kernel(label: str) -> Kernel:
    (loaded,) = load(label.replace(":", "::"))
    return loaded.kernel


def built(out: Path, label: str = ADD, targets: tuple[str, ...] = ("fake",), **options: Any) -> list[Verdict]:
    return build(kernel(label), label, targets, out, **options)


def manifest(out: Path) -> dict[str, dict[str, Any]]:
    """The entries by kernel; the document conforms to its schema, and each file has the hash it says."""
    document = json.loads((out / "manifest.json").read_text())
    VALIDATOR.validate(document)
    for entry in document["entries"]:
        for file in entry["files"]:
            assert hashlib.sha256((out / file["path"]).read_bytes()).hexdigest() == file["sha256"]
    return {entry["kernel"]: entry for entry in document["entries"]}


def files(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())


def behave(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setenv("FAKE_TARGET", how)


def test_the_schema_is_valid_and_documents_every_field() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    entry = SCHEMA["$defs"]["entry"]
    assert set(entry["properties"]) == set(entry["required"])
    assert [name for name, field in entry["properties"].items() if not field.get("description")] == []


def test_source_and_manifest_are_written(tmp_path: Path) -> None:
    (row,) = built(tmp_path, MATMUL, tiles={"BM": 16, "UNKNOWN": 3})
    assert (row.verdict, row.arch, row.form, row.holds) == (Outcome.BUILT, None, "flat", True)
    assert row.source == str(tmp_path / "fake/matmul.py")
    assert Path(row.source).read_text() == "def matmul():\n    return {'BM': 16, 'BN': 64, 'BK': 32}\n"
    assert files(tmp_path) == ["fake/matmul.py", "manifest.json"]
    entry = manifest(tmp_path)[MATMUL]
    assert entry["tiles"] == {"BM": 16, "BN": 64, "BK": 32}
    assert entry["example"] == {"M": 256, "N": 1000, "K": 512, "T": "bf16", "BM": 16}
    assert entry["notes"] == ["nothing was lost"]
    assert entry["signature"]["dtypes"] == {"T": "bf16"}
    assert entry["signature"]["constants"] == {"activation": "relu"}
    assert entry["signature"]["parameters"][3] == {"name": "c", "role": "out", "dtype": "bf16", "shape": ["M", "N"]}
    assert "fakec" not in entry["versions"]
    assert (tmp_path / entry["source"]["path"]).resolve() == Path(kernel(MATMUL).function.__code__.co_filename)
    assert [result["verdict"] for result in entry["results"]] == ["built"]


def test_checked_there_is_a_row_and_an_artefact_for_each_architecture(tmp_path: Path) -> None:
    rows = built(tmp_path, check=True)
    assert [(row.verdict, row.arch) for row in rows] == [(Outcome.COMPILED, "fake:1"), (Outcome.COMPILED, "fake:2")]
    assert all("N=1000" in row.checks[-1] for row in rows)
    listed = ["fake/vector_add.fake-1.asm", "fake/vector_add.fake-2.asm", "fake/vector_add.py"]
    assert files(tmp_path) == [*listed, "manifest.json"]
    entry = manifest(tmp_path)[ADD]
    assert sorted(file["path"] for file in entry["files"]) == listed
    assert entry["versions"]["fakec"] == "9.9"
    assert entry["results"][0]["figures"] == {"registers": 7, "ratio": "nan"}


def test_only_the_wanted_architectures_are_checked(tmp_path: Path) -> None:
    assert [row.arch for row in built(tmp_path, check=True, archs=("fake:2", "v5e"))] == ["fake:2"]


def test_artefacts_of_an_earlier_check_do_not_outlive_a_build_without_one(tmp_path: Path) -> None:
    built(tmp_path, check=True)
    built(tmp_path)
    assert files(tmp_path) == ["fake/vector_add.py", "manifest.json"]
    assert len(manifest(tmp_path)[ADD]["files"]) == 1


@pytest.mark.parametrize(
    ("behaviour", "outcome", "code", "part"),
    [
        ("refuse", Outcome.REFUSED, "K0301", "no such thing; what to do: do without"),
        ("crash", Outcome.ERROR, None, "ZeroDivisionError: emitters have bugs"),
        ("garbage", Outcome.ERROR, None, "SyntaxError"),
    ],
)
def test_where_nothing_is_emitted_nothing_is_written_and_nothing_stale_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, outcome: Outcome, code: str | None, part: str
) -> None:
    built(tmp_path, MATMUL)
    built(tmp_path, check=True)
    behave(monkeypatch, behaviour)
    (row,) = built(tmp_path, check=True)
    assert (row.verdict, row.code, row.source, row.holds) == (outcome, code, None, False)
    assert row.message is not None and part in row.message
    removed = "fake/vector_add.fake-1.asm, fake/vector_add.fake-2.asm, fake/vector_add.py"
    assert row.message.endswith(f"(removed from an earlier build: {removed})")
    assert files(tmp_path) == ["fake/matmul.py", "manifest.json"]
    assert list(manifest(tmp_path)) == [MATMUL]


def test_a_refusal_names_the_authors_line_and_a_declared_one_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave(monkeypatch, "refuse")
    own, shown = kernel(ADD), []
    (row,) = build(own, ADD, ["fake"], tmp_path, diagnose=shown.append)
    assert (row.file, row.line) == (own.function.__code__.co_filename, own.function.__code__.co_firstlineno + 3)
    assert [error.code for error in shown] == ["K0301"]
    monkeypatch.setattr(own, "refuses", {"fake": "K0301"})
    (row,) = build(own, ADD, ["fake"], tmp_path, diagnose=shown.append)
    assert row.holds and len(shown) == 1
    monkeypatch.delenv("FAKE_TARGET")
    (row,) = build(own, ADD, ["fake"], tmp_path)
    assert row.verdict is Outcome.BUILT and not row.holds


def test_a_rejecting_compiler_is_a_refusal_of_that_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave(monkeypatch, "reject")
    first, second = built(tmp_path, check=True)
    assert first.verdict is Outcome.COMPILED
    assert (second.verdict, second.code, second.source) == (
        Outcome.REFUSED,
        "K0306",
        str(tmp_path / "fake/vector_add.py"),
    )
    assert "fake:2: line 2 of the emitted source: too many\nregisters" in (second.message or "")
    assert [result["verdict"] for result in manifest(tmp_path)[ADD]["results"]] == ["compiled", "refused"]


@pytest.mark.parametrize(
    ("behaviour", "outcome", "code"), [("missing", Outcome.REFUSED, "K0305"), ("die", Outcome.ERROR, None)]
)
def test_a_check_that_cannot_be_made_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, outcome: Outcome, code: str | None
) -> None:
    behave(monkeypatch, behaviour)
    rows = built(tmp_path, check=True)
    assert [(row.verdict, row.code, row.arch) for row in rows] == [(outcome, code, "fake:1"), (outcome, code, "fake:2")]
    assert "fake/vector_add.py" in files(tmp_path)


def test_targets_that_cannot_be_built_for_are_rows_beside_the_others(tmp_path: Path) -> None:
    rows = built(tmp_path, targets=("numpy", "trainium", "broken", "fake"))
    assert [(row.target, row.verdict, row.code) for row in rows] == [
        ("numpy", Outcome.REFUSED, "K0301"),
        ("trainium", Outcome.REFUSED, "K0309"),
        ("broken", Outcome.ERROR, None),
        ("fake", Outcome.BUILT, None),
    ]


NO_EXAMPLE = """
import kdsl

class N(kdsl.Dim): ...

@kdsl.kernel
def copy(x: kdsl.Tensor[N, kdsl.f32], y: kdsl.Out[N, kdsl.f32], *, BN: kdsl.Tile = 8) -> None:
    for n in kdsl.grid(N.tiles(BN)):
        y[n] = x[n]
"""
WRONG_EXAMPLE = NO_EXAMPLE.replace("@kdsl.kernel\n", "@kdsl.kernel\n@kdsl.example(N=8, P=3)\n")
CONSTRAINED = WRONG_EXAMPLE.replace(", P=3", "").replace("    for n", "    kdsl.require(N % 3 == 0)\n    for n")
WRONG_KERNEL = WRONG_EXAMPLE.replace(", P=3", "").replace("y[n] = x[n]", "x[n] = x[n]")


@pytest.mark.parametrize(
    ("text", "code"),
    [(NO_EXAMPLE, "K0406"), (WRONG_EXAMPLE, "K0407"), (CONSTRAINED, "K0502"), (WRONG_KERNEL, "K0205")],
)
def test_what_is_wrong_with_the_kernel_refuses_every_target(tmp_path: Path, text: str, code: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(text)
    (loaded,) = load(str(file))
    shown: list[KdslError] = []
    rows = build(loaded.kernel, loaded.label, ["fake", "trainium"], tmp_path / "out", diagnose=shown.append)
    assert [(row.verdict, row.code, row.file) for row in rows] == [(Outcome.REFUSED, code, str(file))] * 2
    assert [error.code for error in shown] == [code]
    assert files(tmp_path / "out") == []


def test_kernels_of_one_name_do_not_both_claim_the_file(tmp_path: Path) -> None:
    built(tmp_path)
    build(kernel(ADD), "other:vector_add", ["fake"], tmp_path)
    assert list(manifest(tmp_path)) == ["other:vector_add"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"format": 2, "entries": []}',
        '{"format": 1, "entries": [{"kernel": "a:b", "target": "gpu", "files": [{"path": "gpu/../../victim"}]}]}',
        '{"format": 1, "entries": [{"kernel": "a:b", "target": "gpu", "files": [{"path": "/etc/victim"}]}]}',
    ],
)
def test_a_file_that_is_no_manifest_is_kept_and_nothing_is_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(KdslError) as caught:
        built(tmp_path)
    assert caught.value.code == "K0409"
    assert (tmp_path / "manifest.json").read_text() == text
    assert files(tmp_path) == ["manifest.json"]


def test_builds_into_one_folder_at_once_lose_no_entry(tmp_path: Path) -> None:
    labels = [f"m{number}:k{number}" for number in range(8)]

    def record(label: str) -> None:
        target = f"fake/{label[4:]}.py"
        Manifest(tmp_path).replace(label, "fake", {target: label}, {"extra": 1})

    threads = [threading.Thread(target=record, args=(label,)) for label in labels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry["kernel"] for entry in Manifest(tmp_path).entries()] == labels


@pytest.mark.parametrize("at", range(1, 5))
def test_an_interruption_at_any_write_leaves_a_manifest_that_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """A checked rebuild writes the manifest, three files, the manifest; it is interrupted at one of the first four."""
    built(tmp_path, MATMUL)
    built(tmp_path, check=True)
    count = 0

    def write(path: Path, content: str | bytes) -> None:
        nonlocal count
        count += 1
        if count == at:
            raise KeyboardInterrupt
        write_atomically(path, content)

    monkeypatch.setattr("kdsl.runtime.manifest.write_atomically", write)
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path, check=True, tiles={"BN": 2})
    entries = manifest(tmp_path)
    assert MATMUL in entries
    assert files(tmp_path) == sorted(
        ["manifest.json", *(file["path"] for entry in entries.values() for file in entry["files"])]
    )


def test_an_interruption_during_checks_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_check", interrupt)
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path, check=True, tiles={"BN": 2})
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


def test_targets_are_checked_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = threading.Barrier(2, timeout=10)
    monkeypatch.setattr(module, "_check", lambda *arguments: meeting.wait())
    started = time.monotonic()
    rows = built(tmp_path, targets=("fake", "trainium"), check=True)
    assert len(rows) == 2 and time.monotonic() - started < 10


def test_progress_says_what_is_going_on(tmp_path: Path) -> None:
    said: list[str] = []
    built(tmp_path, check=True, progress=said.append)
    assert said == [f"{ADD}: writing fake", *(f"{ADD}: compiling for fake fake:{number}" for number in (1, 2))]


def test_a_kernels_tiles_must_be_positive(tmp_path: Path) -> None:
    tiles: Mapping[str, int] = {"BN": 0}
    (row,) = built(tmp_path, tiles=tiles)
    assert (row.verdict, row.code) == (Outcome.REFUSED, "K0504")
