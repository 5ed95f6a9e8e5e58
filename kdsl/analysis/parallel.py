"""Whether the programs of a grid may run at once, op by op: the bits are those of one program after the other.

They are where no element that one program writes is touched by another (`disjoint` proves it), and where the order in
which programs meet changes nothing:

- Programs that no form tells apart do no harm to a tensor that is only stored to, if all of them store the same.
- Atomics of one kind without results commute, if they do not round: on integers.
- A tensor touched by a single atomic op that each program comes to once at most: an op takes its programs in order.
  The order in which they run may still show, but not whether they run at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

from kdsl.analysis.accesses import Access, accesses
from kdsl.analysis.disjoint import commute, together
from kdsl.ir.kernel import Kernel, walk
from kdsl.ir.ops import OPS


def is_parallel(kernel: Kernel) -> bool:
    """Whether no program of a bound kernel is seen to depend on what others do at the same time.

    Sound, but not complete. A kernel that prints is not: its lines come program by program.
    """
    if any(op.name == "print" for op in walk(kernel.body)):
        return False
    touching: dict[str, list[Access]] = {}
    for access in accesses(kernel):
        touching.setdefault(access.buffer, []).append(access)
    return all(_is_safe(kernel, found) for found in touching.values())


def _is_safe(kernel: Kernel, found: Sequence[Access]) -> bool:
    """Whether programs may touch a tensor at once; `found` are all accesses to it."""
    if not any(access.writes for access in found):
        return True
    (first, *others) = found
    if commute(found) and not kernel.buffer(first.buffer).dtype.is_float:
        return True
    if not others and OPS[first.op.name].effect == "atomic" and not first.repeated:
        return True
    # Many accesses are alike, as in loops that are unrolled.
    different = {(access.op.name, access.index, access.bounds, access.varies): access for access in found}
    pairs = combinations_with_replacement(different.values(), 2)
    return all(_may_meet(kernel, *pair) for pair in pairs if pair[0].writes or pair[1].writes)


def _may_meet(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether programs that meet in an element are one, or all of them store the same there, equally often."""
    left = together(kernel, first, second)
    stores = all(OPS[access.op.name].effect == "write" for access in (first, second))
    return not left or (stores and left.isdisjoint(first.varies) and left.isdisjoint(second.varies))
