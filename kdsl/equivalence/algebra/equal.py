"""equal_in_field: kernels on the same random numbers of the field, element by element of what they write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kdsl.diagnostics import KdslError
from kdsl.equivalence.algebra.field import Field
from kdsl.equivalence.algebra.program import Unclear, run
from kdsl.equivalence.algebra.translate import translate
from kdsl.equivalence.algebra.words import UNDEFINED, P, Word, has_q, is_special, mod_p, mod_q, word
from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Buffer, Kernel, Scalar, walk
from kdsl.ir.meaning import Array

Verdict = Literal["equal", "different", "undecided"]
_TOSSES = 4  # evaluations, in pairs of opposite coins, that agree on what hangs on nothing undefined


@dataclass(frozen=True)
class Answer:
    """Whether a kernel agrees with another in the field; if not, where, and if that is not known, why.

    `elements` is how many output elements were compared, `undecided` how many of them no draw decided.
    """

    verdict: Verdict
    reason: str = ""
    draws: int = 0
    elements: int = 0
    undecided: int = 0

    def chance(self, degree: int) -> float:
        """At most how probable it is that an element which is not equal was taken to be, if in both kernels it is a
        quotient of polynomials whose cross products have that degree: (degree / P) ** draws (Schwartz, Zippel). The
        package's docstring says what is known of others."""
        return min(1.0, degree / P) ** self.draws

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}" if self.reason else self.verdict


def equal_in_field(
    before: Kernel,
    after: Kernel,
    arguments: Mapping[str, Any] | None = None,
    *,
    draws: int = 2,
    seed: int = 0,
    rounds: bool = True,
) -> Answer:
    """Compare two bound kernels that have the same parameters, on `draws` independent draws.

    `arguments` may give integers and bools, arrays or numbers by parameter name; others are 0 or 1, and floats are
    always drawn. `rounds` False takes casts to narrower floats for exact, so that kernels may be equal that round in
    different places. Raises ValueError where the parameters differ.
    """
    return compare_in_field(before, {"": after}, arguments, draws=draws, seed=seed, rounds=rounds)[""]


def compare_in_field(
    before: Kernel,
    others: Mapping[str, Kernel],
    arguments: Mapping[str, Any] | None = None,
    *,
    draws: int = 2,
    seed: int = 0,
    rounds: bool = True,
) -> dict[str, Answer]:
    """As `equal_in_field`, for several kernels that are compared with the first."""
    for kernel in others.values():
        if kernel.parameters != before.parameters:
            raise ValueError(f"{before.name} and {kernel.name} have different parameters")
    found = {name: _Finding(before, kernel) for name, kernel in others.items()}
    with np.errstate(all="ignore"):
        for draw in range(draws):
            field = Field((seed, draw), rounds)
            given = {parameter.name: _argument(parameter, arguments or {}, field) for parameter in before.parameters}
            first = translate(before, field)
            translated = {name: translate(kernel, field) for name, kernel in others.items()}  # all, before any runs
            reference = _settled(first, given, field, 0)
            for name, finding in found.items():
                if isinstance(reference, str):
                    finding.answer = Answer("undecided", f"the kernel before {reference}")
                elif finding.answer is None:
                    finding.add(reference, _settled(translated[name], given, field, 1))
    return {name: finding.conclusion() for name, finding in found.items()}


def _argument(parameter: Buffer | Scalar, given: Mapping[str, Any], field: Field) -> Any:
    shape = tuple(int(size.evaluate({})) for size in parameter.shape) if isinstance(parameter, Buffer) else ()
    dtype = parameter.dtype
    if dtype.is_float:
        array = field.random(shape)
        # What a narrow type holds needs no rounding to it.
        array = field.rounded(dtype.name, lambda numbers: numbers, array) if field.rounds else array
    else:
        array = np.asarray(given.get(parameter.name, field.generator.integers(0, 2, shape))).astype(dtype.numpy)
    return array if isinstance(parameter, Buffer) else array.item()


def _settled(kernel: Kernel, arguments: Mapping[str, Any], field: Field, side: int) -> _Result | str:
    """What a kernel gives, or why it does not run."""
    results: list[dict[str, Array]] = []
    field.notes = {}
    try:
        for toss in range(_TOSSES):
            field.toss(_TOSSES * side + toss)
            results.append(run(kernel, arguments, field))
            if not field.tossed:
                break
    except Unclear as unclear:
        return str(unclear)
    except KdslError as error:
        return f"does not run: {error.message}"
    sure = {}
    for buffer in kernel.written:
        first, *others = (result[buffer.name] for result in results)
        there = first != UNDEFINED if isinstance(buffer.dtype, Word) else np.ones(first.shape, bool)
        for other in others:
            there = there & _same(buffer.dtype, first, other)
        sure[buffer.name] = there
    return _Result(results[0], sure, tuple(field.notes))


def _same(dtype: DType, x: Array, y: Array) -> Array:
    if not isinstance(dtype, Word):
        return np.asarray(x == y)
    unknown = is_special(x) | ~has_q(x) | ~has_q(y)
    return np.asarray((mod_p(x) == mod_p(y)) & (unknown | (mod_q(x) == mod_q(y))))


@dataclass(frozen=True)
class _Result:
    """What a kernel leaves in each output, which elements of that hang on nothing undefined, and the ops that made what
    is; where none did, it was poison."""

    values: Mapping[str, Array]
    sure: Mapping[str, Array]
    causes: tuple[str, ...]


class _Finding:
    """What is known of one kernel after some draws."""

    def __init__(self, before: Kernel, after: Kernel) -> None:
        self.before, self.after = before, after
        self.draws = 0
        self.decided: dict[str, Array] = {}
        self.causes: dict[str, None] = {}
        self.answer: Answer | None = None

    def add(self, reference: _Result, other: _Result | str) -> None:
        self.draws += 1
        if isinstance(other, str):
            self.answer = Answer("undecided", f"the kernel after {other}", self.draws)
            return
        self.causes |= dict.fromkeys((*reference.causes, *other.causes))
        for buffer in self.before.written:
            dtype, name = word(buffer.dtype), buffer.name
            x, y, sure = reference.values[name], other.values[name], reference.sure[name]
            both = sure & other.sure[name]
            self.decided[name] = both | self.decided.get(name, np.zeros_like(both))
            # What hangs on poison after the rewrite and did not before is as wrong as another number.
            wrong = np.argwhere((both & ~_same(dtype, x, y)) if other.causes else sure & ~(both & _same(dtype, x, y)))
            if len(wrong):
                place = tuple(map(int, wrong[0]))
                after = _shown(dtype, y[place]) if both[place] else "hangs on poison"
                values = f"is {_shown(dtype, x[place])} before and {after} after"
                reason = f"{name}[{', '.join(map(str, place))}] {values}{self.other_ops()}"
                self.answer = Answer("different", reason, self.draws, both.size)
                return

    def other_ops(self) -> str:
        """The ops that only one of the kernels has, with how many more of them."""
        before, after = (Counter(op.name for op in walk(kernel.body)) for kernel in (self.before, self.after))
        parts = [
            f"only {side}: " + ", ".join(f"{count} {name}" for name, count in more.items())
            for side, more in (("before", before - after), ("after", after - before))
            if more
        ]
        return f" ({'; '.join(parts)})" if parts else ""

    def conclusion(self) -> Answer:
        if self.answer is not None:
            return self.answer
        elements = sum(decided.size for decided in self.decided.values())
        undecided = elements - sum(int(decided.sum()) for decided in self.decided.values())
        if not elements:
            return Answer("undecided", "no output has an element", self.draws)
        if undecided:
            causes = ", ".join(self.causes) or "poison"
            reason = f"{undecided} of {elements} elements hang on what is undefined in the field: {causes}"
            return Answer("undecided", reason, self.draws, elements, undecided)
        return Answer("equal", "", self.draws, elements)


def _shown(dtype: DType, element: Any) -> str:
    if not isinstance(dtype, Word):
        return str(element)
    specials = ("-inf", "inf", "NaN", "undefined")
    return specials[int(mod_p(element)) - 0xFFFFFFFC] if is_special(element) else f"{int(mod_p(element))} (mod {P})"
