"""Which target has which op in which dtype, found by trying: the generator of docs/support.md.

`supported(target, op, dtype)` emits the minimal kernel of the op, so a table made of it cannot disagree with the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kdsl.diagnostics import KdslError
from kdsl.ir.dtypes import DTYPES, DType
from kdsl.ir.kernel import Kernel
from kdsl.ir.ops import OPS
from kdsl.runtime.target import Target
from tests.ir.minimal import minimal

EMITTED, NOT_TAKEN = "yes", ""


def supported(target: Target, op: str, dtype: DType) -> str:
    """What a target does with an op on operands of a dtype: "yes" where it emits it, the code of its refusal where not,
    and "" where the op itself does not take the dtype."""
    kernel = minimal(op, dtype)
    return NOT_TAKEN if kernel is None else outcome(target, kernel)


def outcome(target: Target, kernel: Kernel) -> str:
    """Either "yes" or the code with which the target refuses the kernel."""
    try:
        target.emit(kernel, {}, {})
    except KdslError as error:
        return error.code
    return EMITTED


def rows() -> Iterator[tuple[str, Mapping[str, Kernel]]]:
    """Every op, in alphabetical order, with its minimal kernel for each dtype that it takes."""
    for op in sorted(OPS):
        kernels = {name: minimal(op, dtype) for name, dtype in DTYPES.items()}
        yield op, {name: kernel for name, kernel in kernels.items() if kernel is not None}


def table(name: str, outcome_of: Callable[[Kernel], str], kernels: Mapping[str, Mapping[str, Kernel]]) -> str:
    """The Markdown section of one target: a line an op, a column a dtype; ops that are alike share a line."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for op, of_dtypes in kernels.items():
        cells = tuple(outcome_of(of_dtypes[dtype]) if dtype in of_dtypes else NOT_TAKEN for dtype in DTYPES)
        lines.setdefault(cells, []).append(op)
    head = [f"## {name}", "", f"| op | {' | '.join(DTYPES)} |", f"|---|{'---|' * len(DTYPES)}"]
    return "\n".join([*head, *(f"| {', '.join(ops)} | {' | '.join(cells)} |" for cells, ops in lines.items())])


HEAD = """# What each target has

Made by `tests/docs/test_support.py` (`pytest --update-golden` writes it): for each op of the table and each dtype of
its operands, a minimal kernel is emitted. `yes`: source is written. A code such as `K0302`: the target refuses it, and
`kdsl explain K0302` says what that means. Empty: the op does not take the dtype. A refusal that depends on more than
op and dtype (a mask, a shape, an architecture) does not show here.
"""


def page(targets: Mapping[str, Target]) -> str:
    """The text of docs/support.md."""
    kernels = dict(rows())
    sections = [table(name, lambda kernel, t=target: outcome(t, kernel), kernels) for name, target in targets.items()]
    return "\n".join([HEAD, "\n\n".join(sections), ""])
