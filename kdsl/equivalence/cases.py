"""Counter-examples: one example with its inputs on which a kernel fails, kept as a Python file that runs it again.

The file's `CASE` is a literal, which is read back without running any code.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import pprint
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kdsl.diagnostics import KdslError, fail
from kdsl.equivalence.compare import OutputError
from kdsl.equivalence.inputs import Kind, draw_for, without_extremes
from kdsl.equivalence.judging import check_on_target, judge_on_oracle, judge_on_target
from kdsl.equivalence.properties import Violation
from kdsl.ir.dtypes import DTYPES, from_numpy
from kdsl.lang.dtypes import NAMES
from kdsl.lang.kernel import Example, Kernel
from kdsl.runtime.examples import Binding, bind_example
from kdsl.runtime.files import write_atomically
from kdsl.runtime.loading import load
from kdsl.runtime.target import Target, find_target

MOST_ELEMENTS = 1024  # that a file spells out; more are drawn again from the seed
ORACLE = "numpy"
FAULTS = "K06"  # codes of what is wrong with a kernel as it runs
_TYPES = {name: dtype for dtype, name in NAMES.items()}
_WORDS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


@dataclass(frozen=True)
class Case:
    """One example of a kernel and what it is called with; `target` is None for the oracle's own properties."""

    kernel: Kernel
    target: Target | None
    trial: Binding
    kind: Kind
    seed: tuple[int, int]
    arguments: Mapping[str, Any]

    def problem(self) -> str | None:
        """What fails, in words; None if nothing does. Raises KdslError where it cannot be tried."""
        try:
            if self.target is None:
                judge_on_oracle(self.trial, self.kind, self.arguments, sum(self.seed))
            else:
                source = self.target.emit(self.trial.kernel, self.trial.tiles, self.trial.sizes)
                check_on_target(judge_on_target(self.target, source, self.trial, self.arguments))
        except (Violation, OutputError) as difference:
            return str(difference)
        except KdslError as error:
            if error.code.startswith(FAULTS):
                return error.message
            raise
        return None

    @property
    def elements(self) -> int:
        return sum(int(np.size(value)) for value in self.arguments.values())

    def literal(self) -> dict[str, Any]:
        """The case as `CASE` in a file has it: nothing but dicts, lists, strings and numbers."""
        trial, arrays = self.trial, {name: value for name, value in self.arguments.items() if np.ndim(value)}
        dtypes = {name: NAMES[value] for name, value in trial.bindings.items() if isinstance(value, type)}
        case: dict[str, Any] = {
            "kernel": place_of(self.kernel),
            "target": ORACLE if self.target is None else self.target.name,
            "dtypes": dtypes,
            "constants": {name: value for name, value in trial.bindings.items() if name not in dtypes},
            "sizes": dict(trial.sizes),
            "tiles": dict(trial.tiles),
            "scalars": {name: value for name, value in self.arguments.items() if not np.ndim(value)},
            "kind": self.kind,
            "seed": self.seed,
        }
        if self.elements <= MOST_ELEMENTS:
            case["arrays"] = {name: _spelled(array) for name, array in arrays.items()}
        return case

    @classmethod
    def from_literal(cls, case: Mapping[str, Any]) -> Case:
        """The case that a file holds. Raises KdslError where its kernel or target is not there any more."""
        kernel = load(case["kernel"])[0].kernel
        target = None if case["target"] == ORACLE else find_target(case["target"])
        dtypes = {name: _TYPES[word] for name, word in case["dtypes"].items()}
        parts = (dtypes, case["constants"], case["sizes"], case["tiles"], case["scalars"])
        declared = kernel.examples[0].inputs if kernel.examples else {}
        trial = bind_example(kernel, Example({name: each for part in parts for name, each in part.items()}, declared))
        kind, seed = case["kind"], tuple(case["seed"])
        if "arrays" in case:
            arrays = {name: _array(spelled) for name, spelled in case["arrays"].items()}
            return cls(kernel, target, trial, kind, seed, {**arrays, **case["scalars"]})
        drawn = draw_for(trial, trial.tiles, kind, seed)
        return cls(kernel, target, trial, kind, seed, drawn if target is None else without_extremes(drawn))

    def snippet(self, problem: str) -> str:
        """A Python file that runs the case: the oracle, the target, and the element that differs."""
        what = f"{self.kernel.name} on {ORACLE if self.target is None else self.target.name}: {problem}"
        literal = pprint.pformat(self.literal(), width=110, compact=True, sort_dicts=False)
        return (
            f"# {what}\n\nfrom kdsl.testing import replay\n\nCASE = {literal}\n\n"
            'if __name__ == "__main__":\n    replay(CASE)\n'
        )


def place_of(kernel: Kernel) -> str:
    """SRC::KERNEL of a kernel: its module if that can be imported, else its file."""
    try:
        found = kernel.__module__ != "__main__" and importlib.util.find_spec(kernel.__module__) is not None
    except (ImportError, ValueError):
        found = False
    file = kernel.function.__code__.co_filename
    return f"{kernel.__module__ if found else os.path.relpath(file)}::{kernel.name}"


def _spelled(array: Any) -> dict[str, Any]:
    dtype = from_numpy(array.dtype)
    assert dtype is not None, array.dtype
    numbers = array.astype(np.float64 if dtype.is_float else array.dtype.str if dtype.bits > 4 else np.int8)
    values = [value if np.isfinite(value) else str(value) for value in numbers.ravel().tolist()]
    return {"dtype": dtype.name, "shape": array.shape, "values": values}


def _array(spelled: Mapping[str, Any]) -> Any:
    values = [_WORDS.get(value, value) if isinstance(value, str) else value for value in spelled["values"]]
    return np.array(values).astype(DTYPES[spelled["dtype"]].numpy).reshape(spelled["shape"])


# -- files -----------------------------------------------------------------------------------------------------------


def save(folder: Path, label: str, case: Case, problem: str) -> Path:
    """Keep a case in a folder, in place of one of the same kernel and target."""
    file = folder / _name(label, case.target)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(file, case.snippet(problem))
    return file


def saved(folder: Path, label: str, target: Target | None) -> Iterator[tuple[Path, Case]]:
    """The cases that a folder holds of a kernel and target. Raises KdslError K0412 for a file that is none."""
    file = folder / _name(label, target)
    if not file.exists():
        return
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        (value,) = [
            node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CASE"
        ]
        yield file, Case.from_literal(ast.literal_eval(value))
    except (SyntaxError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise fail("K0412", None, path=file, problem=f"{type(error).__name__}: {error}") from None


def _name(label: str, target: Target | None) -> str:
    return re.sub(r"\W+", "_", f"{label}_on_{ORACLE if target is None else target.name}") + ".py"
