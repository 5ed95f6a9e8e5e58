"""That the bench runs, on small sizes, and what it writes."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]
FIGURE = {"type": "number", "exclusiveMinimum": 0}
ROW = {
    "type": "object",
    "properties": {
        **{key: {"type": "string", "minLength": 1} for key in ("case", "arch", "rival_name", "unit")},
        **{key: FIGURE for key in ("ours", "rival", "ratio")},
    },
    "required": ["case", "arch", "ours", "rival", "rival_name", "unit", "ratio"],
    "additionalProperties": False,
}
ROWS = {"type": "array", "items": ROW, "minItems": 1}
SCHEMA = {
    "type": "object",
    "properties": {"rows": ROWS, "also": ROWS, "geomean": FIGURE, "worst": FIGURE},
    "required": ["rows", "geomean", "worst", "also"],
    "additionalProperties": False,
}


def test_the_bench_of_the_oracle_runs_and_writes_its_result(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="an extra; tests/test_extras.py fails without it")
    pytest.importorskip("torch", reason="an extra; tests/test_extras.py fails without it")
    file = tmp_path / "oracle.json"
    command = [sys.executable, "-m", "bench.oracle", "--small", "--rounds", "1", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(file.read_text())
    jsonschema.validate(result, SCHEMA)
    assert [row["case"].split()[0] for row in result["rows"]] == ["softmax", "matmul", "causal", "layernorm"]
    ratios = [row["rival"] / row["ours"] for row in result["rows"]]
    assert [row["ratio"] for row in result["rows"]] == pytest.approx(ratios)
    assert result["geomean"] == pytest.approx(math.prod(ratios) ** 0.25)
    assert result["worst"] == pytest.approx(min(ratios))
    for row in result["rows"]:
        assert row["case"] in done.stdout
