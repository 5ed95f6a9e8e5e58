"""disjoint: no two programs touch one element of a buffer that one of them writes.

Then the programs may run in any order, or several at a time. The same question about one program axis asks it of
programs in different places on that axis, about a loop axis of two iterations in one program. `together` is the proof
for two accesses; what else lets the oracle run all programs at once is in `parallel`.

Proven from index forms, one coordinate after another. A dimension whose form is c*s + rest tells s where the rest of
any two lanes differs by less than c: then equal elements have equal s. Coordinates that are told already, and those
that both sides share, cancel from the rest. So `BM*m_block + m` with m < BM tells m_block, and so does `N*m + n` with
n < N; `2*m + n` with n < 4 (a halo) does not. What is not proven is counted, if the kernel is bound and small enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from kdsl.analysis.accesses import Access, Answer, accesses, touched
from kdsl.analysis.affine import Split, distribute, splits
from kdsl.analysis.ranges import interval, never_negative_if
from kdsl.analysis.validity import slacks
from kdsl.ir.expr import Expr, symbol, wrap
from kdsl.ir.kernel import Axis, Kernel, walk
from kdsl.ir.type_rules import form_axes


def disjoint(kernel: Kernel, axis: str | None = None) -> Answer:
    """Whether no two programs, or no two with different places on a program axis, or no two iterations of a loop axis
    in one program, share an element that one writes.

    `yes` holds for all sizes that the kernel takes; `no` names two accesses and an element, and is given for bound
    kernels only. Atomics of one kind without results commute, and are not held against each other.
    """
    found = accesses(kernel)
    over = _grid(kernel) if axis is None else [axis]
    loop = axis if axis is not None and kernel.axis(axis).kind == "loop" else None
    if loop is not None:
        found = tuple(access for access in found if loop in access.loops)
    doubt: Answer | None = None
    for place, first in enumerate(found):
        for second in found[place:]:
            if first.buffer != second.buffer or not (first.writes or second.writes) or commute([first, second]):
                continue
            answer = _pair(kernel, first, second, over, loop)
            if answer.verdict == "no":
                return answer
            if doubt is None and not answer.proven:
                doubt = answer
    return Answer("yes", "each element that is written belongs to one program") if doubt is None else doubt


def commute(found: Iterable[Access]) -> bool:
    """Whether the accesses may change places, rounding aside: atomics of one kind whose results nobody takes."""
    ops = [access.op for access in found]
    kinds = {op.attributes.get("combine") for op in ops}
    return all(op.name == "atomic" and not op.results for op in ops) and len(kinds) == 1 and kinds != {"exchange"}


def together(kernel: Kernel, first: Access, second: Access) -> frozenset[str]:
    """The program axes on which two programs may differ though they meet in an element, one by each access.

    None is left where the accesses are proven to be disjoint, for all sizes that the kernel takes.
    """
    if first.index is None or second.index is None:
        return frozenset(axis.name for axis in kernel.program_axes if axis.extent.constant not in (0, 1))
    return _Proof(kernel, first, second, _grid(kernel), None).untold()


def _grid(kernel: Kernel) -> list[str]:
    return [axis.name for axis in kernel.program_axes]


def _pair(kernel: Kernel, first: Access, second: Access, over: list[str], loop: str | None) -> Answer:
    where = f"{first.op.name} and {second.op.name} of {first.buffer}"
    if first.index is None or second.index is None:
        return Answer("unknown", f"{where}: places are computed", second.op)
    if not _Proof(kernel, first, second, over, loop).untold():
        return Answer("yes", where)
    return _count(kernel, first, second, over, loop, where)


Twice: TypeAlias = tuple[Kernel, Mapping[str, Expr], list[Expr]]


class _Proof:
    """Two lanes, one of each access, that touch the same element: are they of one program?

    The second lane's coordinates get a prime, but for those that are known to equal the first lane's.
    """

    def __init__(self, kernel: Kernel, first: Access, second: Access, over: list[str], loop: str | None) -> None:
        self.over = over
        self.equal: set[str] = set()
        if loop is not None:  # the same program, and the same iteration of the loops around
            self.equal = set(_shared(kernel, first, second, loop))
        self.parts: dict[str, tuple[str, str]] = {}  # what stands for the axes that are split
        self.renamed = _named_again(kernel)
        assert first.index is not None and second.index is not None
        self.first = [distribute(kernel, form) for form in first.index]
        self.second = [distribute(kernel, form) for form in second.index]
        self.facts = [
            [distribute(kernel, end) for bound in side.bounds for end in slacks(bound)] for side in (first, second)
        ]
        self.kernel = kernel
        for split in splits(kernel, [*self.first, *self.second, *self.facts[0], *self.facts[1]]):
            self.split(split)

    def split(self, split: Split) -> None:
        """Put a quotient and a remainder in an axis's place."""
        name, parts = split.axis.name, (split.quotient, split.remainder)
        inside = split.axis.extent - 1 - split.whole
        self.first, self.second = ([split.apply(form) for form in side] for side in (self.first, self.second))
        self.facts = [[*(split.apply(form) for form in side), inside] for side in self.facts]
        axes: list[Axis] = []
        for axis in self.kernel.axes:
            axes += parts if axis.name == name else [replace(axis, extent=split.apply(axis.extent))]
        self.kernel = replace(self.kernel, axes=tuple(axes))
        self.parts[name] = (split.quotient.name, split.remainder.name)
        if name in self.equal:
            self.equal |= {part.name for part in parts}

    def untold(self) -> frozenset[str]:
        """The axes on which the lanes may differ; none if they never touch one element."""
        wanted = {part for name in self.over for part in self.parts.get(name, (name,))}
        self.equal |= {name for name in wanted if self.kernel.axis(name).extent.constant in (0, 1)}
        while not wanted <= self.equal:
            # Lanes and inner loops, too: what is told of them cancels when it comes to others.
            differing, twice = [axis.name for axis in self.kernel.axes if axis.name not in self.equal], self.twice()
            told = next((name for name in differing if self.tells(name, twice)), None)
            if told is None:
                break
            self.equal.add(told)
        left = [name for name in self.over if not self.equal.issuperset(self.parts.get(name, (name,)))]
        return frozenset() if not left or self.apart() else frozenset(left)

    def apart(self) -> bool:
        """Whether the two never touch one element at all: in some dimension, one stays before the other."""
        both, primed, facts = self.twice()
        for first, second in zip(self.first, self.second, strict=True):
            difference = first - second.substitute(primed)
            ends = interval(both, difference)
            if ends is None:
                if any(never_negative_if(both, sign * difference - 1, facts) for sign in (1, -1)):
                    return True
            elif not ends[0] <= 0 <= ends[1]:  # as facts seldom narrow it, this decides for bound kernels
                return True
        return False

    def tells(self, name: str, twice: Twice) -> bool:
        """Whether two lanes of one element have the same place on the axis, as some dimension's forms show."""
        both, primed, facts = twice
        for first, second in zip(self.first, self.second, strict=True):
            factor = first.coefficient(name)
            if factor is None or factor == wrap(0) or factor != second.coefficient(name):
                continue
            if form_axes(self.kernel, [factor]) or factor.symbols & primed.keys():
                continue
            rest = first.substitute({name: 0}) - second.substitute({name: 0}).substitute(primed)
            for step in (factor, -factor):
                if (step.constant is None or step.constant > 0) and all(
                    never_negative_if(both, step - 1 - far, facts) for far in (rest, -rest)
                ):
                    return True
        return False

    def twice(self) -> Twice:
        """The kernel with a primed copy of each axis that may differ, the names of those, and what both lanes keep."""
        differing = [axis.name for axis in self.kernel.axes if axis.name not in self.equal]
        differing += [
            integer.name
            for integer in self.kernel.integers
            if integer.name in self.renamed or not set(integer.axes) <= self.equal
        ]
        primed = {name: symbol(f"{name}'") for name in differing}
        axes: list[Axis] = []
        for axis in self.kernel.axes:
            axes.append(axis)
            if axis.name in primed:
                axes.append(Axis(f"{axis.name}'", axis.kind, axis.extent.substitute(primed)))
        facts = [*self.facts[0], *(fact.substitute(primed) for fact in self.facts[1])]
        return replace(self.kernel, axes=tuple(axes)), primed, facts


def _named_again(kernel: Kernel) -> set[str]:
    """The integers that may be others each time, in one place on their axes: named in a while, or in a loop whose axis
    they do not vary over (they may depend on what it carries)."""
    found = set()
    axes = {integer.name: integer.axes for integer in kernel.integers}
    for loop in walk(kernel.body) if axes else ():
        if loop.name in ("for", "while"):
            names = {op.attributes["integer"] for region in loop.regions for op in walk(region) if op.name == "let"}
            found |= {name for name in names if loop.attributes.get("axis") not in axes[name]}
    return found


def _shared(kernel: Kernel, first: Access, second: Access, loop: str | None) -> tuple[str, ...]:
    """The axes on which two iterations of a loop that are compared have the same place; none for two programs."""
    if loop is None:
        return ()
    around = first.loops[: first.loops.index(loop)], second.loops[: second.loops.index(loop)]
    return (*(axis.name for axis in kernel.program_axes), *(around[0] if around[0] == around[1] else ()))


def _count(kernel: Kernel, first: Access, second: Access, over: list[str], loop: str | None, where: str) -> Answer:
    """Ask every lane of a bound kernel: who touches each element?"""
    lanes = [found for found in (touched(kernel, first), touched(kernel, second)) if found is not None]
    if len(lanes) < 2:
        return Answer("unknown", f"{where}: not proven from the index forms", second.op)
    shared = _shared(kernel, first, second, loop)
    # For each element (in one place on the shared axes): the programs or iterations that touch it, on either side.
    owners: list[dict[tuple[int, ...], set[tuple[int, ...]]]] = [{}, {}]
    for (places, element), found in zip(lanes, owners, strict=True):
        columns = np.stack([element, *(places[name] for name in (*shared, *over))], axis=1)
        for row in np.unique(columns, axis=0).tolist():
            found.setdefault(tuple(row[: 1 + len(shared)]), set()).add(tuple(row[1 + len(shared) :]))
    for key in sorted(owners[0].keys() & owners[1].keys()):
        together = sorted(owners[0][key] | owners[1][key])
        if len(together) > 1:
            if not (first.certain and second.certain):
                return Answer("unknown", f"{where}: whether they happen depends on a condition", second.op)
            one, other = ({name: place for name, place in zip(over, row, strict=True)} for row in together[:2])
            return Answer("no", f"{where}: {one} and {other} meet at element {key[0]}", second.op)
    return Answer("yes", f"{where}: counted")
