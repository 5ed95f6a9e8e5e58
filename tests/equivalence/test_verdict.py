from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kdsl.equivalence.verdict import Outcome, Verdict, VerdictReport

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/verdict.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
VERSIONS = {"kdsl": "0.1.0", "numpy": "2.4.6"}


def row(verdict: str = "verified", **changes: Any) -> Verdict:
    values = {"kernel": "kernels.softmax:softmax", "target": "tpu", "message": "why", **changes}
    if verdict == "refused":
        values.setdefault("code", "K0301")
    return Verdict(verdict=Outcome(verdict), **values)


def test_the_schema_is_valid_and_documents_every_field() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    properties = SCHEMA["$defs"]["row"]["properties"]
    assert set(properties) == set(SCHEMA["$defs"]["row"]["required"]) == set(row().to_json())
    assert all(each.get("description") for each in properties.values())
    assert properties["verdict"]["enum"] == [outcome.value for outcome in Outcome]


@pytest.mark.parametrize("outcome", list(Outcome))
def test_what_is_written_conforms_to_the_schema(tmp_path: Path, outcome: Outcome) -> None:
    full = row(
        outcome,
        source="out/tpu/softmax.py",
        record="records/softmax__0",
        arch="v5e",
        form="grid",
        code="K0301",
        file="kernels/softmax.py",
        line=12,
        error_used_of_bound=0.25,
        undecided_fraction=0.0,
        checks=("interpreted on 6 examples", "compiled by libtpu 0.0.52"),
        seconds=1.5,
        declared_refusal="K0301",
    )
    path = tmp_path / "new" / "report.json"
    VerdictReport([full, row(outcome)], VERSIONS).write(path)
    document = json.loads(path.read_text())
    VALIDATOR.validate(document)
    assert document["versions"] == VERSIONS
    assert document["rows"][0]["verdict"] == outcome.value
    assert document["rows"][0]["checks"] == ["interpreted on 6 examples", "compiled by libtpu 0.0.52"]
    assert "declared_refusal" not in document["rows"][0]


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "fine"},
        {"kernel": "softmax"},
        {"code": "301"},
        {"line": 0, "file": "a.py"},
        {"line": 3, "file": None},
        {"verdict": "refused", "code": None},
        {"verdict": "mismatch", "message": None},
        {"undecided_fraction": 1.5},
        {"checks": None},
        {"extra": 1},
    ],
)
def test_the_schema_rejects(change: dict[str, Any]) -> None:
    good = row().to_json()
    assert VALIDATOR.is_valid({"rows": [good], "versions": {}})
    assert not VALIDATOR.is_valid({"rows": [good | change], "versions": {}})


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_ratio_that_is_not_finite_is_null(value: float) -> None:
    document = VerdictReport([row("mismatch", error_used_of_bound=value)], {}).to_json()
    assert document["rows"][0]["error_used_of_bound"] is None
    VALIDATOR.validate(document)


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ([], 0),
        (["built", "compiled", "verified"], 0),
        (["verified", "undecided"], 1),
        (["refused", "verified"], 1),
        (["refused", "mismatch", "undecided"], 3),
        (["error", "mismatch", "refused"], 4),
    ],
)
def test_the_exit_status_is_that_of_the_gravest_row(verdicts: list[str], status: int) -> None:
    assert VerdictReport([row(verdict) for verdict in verdicts], {}).exit_status() == status


@pytest.mark.parametrize(
    ("verdict", "code", "status"),
    [
        ("refused", "K0301", 0),
        ("refused", "K0302", 1),
        ("built", None, 1),
        ("compiled", None, 1),
        ("verified", None, 1),
        ("undecided", None, 1),
        ("mismatch", None, 3),
        ("error", None, 4),
    ],
)
def test_only_the_declared_refusal_holds(verdict: str, code: str | None, status: int) -> None:
    judged = row(verdict, code=code, declared_refusal="K0301")
    assert judged.holds == (status == 0)
    assert VerdictReport([judged], {}).exit_status() == status


def test_a_failed_write_leaves_the_old_report_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    VerdictReport([row()], VERSIONS).write(path)
    before = path.read_text()
    with pytest.raises(TypeError):
        VerdictReport([row(checks=(object(),))], VERSIONS).write(path)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(IsADirectoryError):
        VerdictReport([row()], VERSIONS).write(tmp_path / "folder.json")
    assert path.read_text() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder.json", "report.json"]
