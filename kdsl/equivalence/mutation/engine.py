"""Mutants of a kernel: each has one fault, a name that stays from run to run, and a line that says where it is.

A kernel with dtype variables and constants has several variants in IR, one for each choice. A mutant is one fault in
all those that have its place: the loop of a kernel loses its last iteration in bf16 and in f32 alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kdsl.diagnostics import KdslError
from kdsl.equivalence.mutation.changes import Change
from kdsl.equivalence.mutation.table import MUTATORS, OF_EDGES
from kdsl.ir.kernel import Axis, Kernel, Op, walk
from kdsl.ir.rewrite import retype
from kdsl.ir.text import print_kernel
from kdsl.ir.type_rules import OpTypeError
from kdsl.ir.verify import IRError, verify
from kdsl.passes import run_passes

# A kernel as its author wrote it, and with the masks and fills that its edges mean.
FORMS: Mapping[str, Callable[[Kernel], Kernel]] = {
    "as written": lambda kernel: kernel,
    "explicit edges": lambda kernel: run_passes(kernel, ["explicit_edges"]),
}


@dataclass(frozen=True)
class Mutant:
    """One fault. `kernels` are the mutated variants, by the key of the variant.

    `id` is ten hex digits of what the description says and of nothing else.
    """

    id: str
    mutator: str
    description: str
    kernels: dict[Hashable, Kernel] = field(compare=False)


@dataclass(frozen=True)
class Mutants:
    """The mutants of a kernel, and how many changes gave IR that is not well formed, or a kernel that was there."""

    mutants: tuple[Mutant, ...]
    discarded: int
    repeated: int


def mutants_of(variants: Mapping[Hashable, Kernel], mutators: Iterable[str] = tuple(MUTATORS)) -> Mutants:
    """All mutants of a kernel, of which `variants` are the unbound forms by a key of the caller's."""
    found: dict[str, Mutant] = {}
    discarded = repeated = 0
    chosen = tuple(mutators)
    for key, original in variants.items():
        seen = {print_kernel(original)}
        for name, description, changed in _changes(original, chosen):
            kernel = _well_formed(changed)
            text = print_kernel(kernel) if kernel is not None else ""
            discarded, repeated = discarded + (kernel is None), repeated + (kernel is not None and text in seen)
            if kernel is None or text in seen:
                continue
            seen.add(text)
            identity = hashlib.sha256(f"{original.name}: {description}".encode()).hexdigest()[:10]
            found.setdefault(identity, Mutant(identity, name, description, {})).kernels[key] = kernel
    return Mutants(tuple(found.values()), discarded, repeated)


def _changes(original: Kernel, mutators: Iterable[str]) -> Iterator[tuple[str, str, Kernel]]:
    """Mutator, description and kernel of every change. Raises nothing: a form that a kernel lacks has no changes."""
    for form, make in FORMS.items():
        try:
            kernel = make(original)
        except KdslError:
            continue
        places = _places(kernel)
        for name in mutators:
            if form == "as written" or name in OF_EDGES:
                for change in MUTATORS[name](kernel):
                    suffix = "" if form == "as written" else f" ({form})"
                    yield name, f"{name}{suffix}: {_at(change, places)}: {change.what}", change.kernel


def _well_formed(kernel: Kernel) -> Kernel | None:
    """The kernel with the axes of its values inferred anew, or None where no choice of them is well formed."""
    try:
        return verify(retype(kernel))
    except (IRError, OpTypeError, KeyError, ValueError, KdslError):
        return None


def _places(kernel: Kernel) -> dict[int, str]:
    """Op and source line of every op by identity; the ops of one name from one place in the source are numbered."""
    counts: dict[str, int] = {}
    places: dict[int, str] = {}
    for op in walk(kernel.body):
        line = (
            f" at {op.location.file.rsplit('/', 1)[-1]}:{op.location.line}:{op.location.column}" if op.location else ""
        )
        place = f"{op.name}{_of(op)}{line}"
        counts[place] = counts.get(place, 0) + 1
        places[id(op)] = place if counts[place] == 1 else f"{place} ({counts[place]})"
    return places


def _of(op: Op) -> str:
    return f" {op.attributes['buffer']}" if "buffer" in op.attributes else ""


def _at(change: Change, places: Mapping[int, str]) -> str:
    return f"axis {change.at.name}" if isinstance(change.at, Axis) else places[id(change.at)]
