"""The sections of a kernel function: start, step and finish around what a loop carries, or all in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kdsl.codegen.jnp import SUM, Code
from kdsl.ir.kernel import Op, Value, walk

from .body import Section, Shared
from .layout import LAZY
from .ops import write_ops
from .plan import Plan
from .text import INDENT, call

ROOM = 72  # characters that a value may have where it is written to scratch


def kernel_function(plan: Plan, taken: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """The text of the kernel function, and the sizes and tile sizes that it takes as keywords.

    `taken` are names that it may not use for its own values.
    """
    shared = Shared(plan, taken)
    body = _looped(shared) if plan.loop is not None else _straight(shared)
    coordinates = [
        f"{INDENT}{coordinate.name} = pl.program_id({place})"
        for place, coordinate in enumerate(plan.grid)
        if coordinate.name in shared.coordinates
    ]
    scalars = [f"{name}_ref" for name in scalar_names(plan)]
    sizes = [size.name for size in plan.kernel.sizes] + [tile.name for tile in plan.kernel.tiles]
    keywords = tuple(name for name in sizes if name in shared.parameters)
    parameters = [*scalars, *shared.refs.values(), *(["*", *keywords] if keywords else [])]
    head = call(f"def {kernel_name(plan)}", parameters, 0, tail=":")
    return "\n".join([head, *coordinates, *body]), keywords


def kernel_name(plan: Plan) -> str:
    return f"_{plan.kernel.name}_kernel"


def scalar_names(plan: Plan) -> list[str]:
    """The scalar arguments, which come first among the kernel function's parameters, in SMEM."""
    buffers = {buffer.name for buffer in plan.kernel.buffers}
    return [parameter.name for parameter in plan.kernel.parameters if parameter.name not in buffers]


def _straight(shared: Shared) -> list[str]:
    section = Section(shared, 1)
    section.uses = _uses(shared.plan, shared.plan.after, ())
    write_ops(section, shared.plan.after)
    return section.lines


def _looped(shared: Shared) -> list[str]:
    plan = shared.plan
    assert plan.loop is not None and plan.trips is not None
    (body,) = plan.loop.regions
    place, step = len(plan.grid) - 1, plan.grid[-1].name
    shared.coordinates.add(step)
    lines: list[str] = []
    if plan.scratch:
        lines += _when(f"{step} == 0", "_start", _start(shared, plan.loop.operands))
    trips = Code(shared.integer(plan.trips), SUM)
    note = "" if shared.plan.kernel.order(plan.trips.symbols) else "  # none if there is nothing to loop over"
    if inside := _step(shared, body.ops[:-1], body.ops[-1].operands):
        lines += _when(f"{step} < {trips.text}", "_step", inside, note)
    if plan.after:
        lines += _when(f"{step} == pl.num_programs({place}) - 1", "_finish", _finish(shared))
    return lines


def _when(condition: str, name: str, lines: list[str], note: str = "") -> list[str]:
    return ["", f"{INDENT}@pl.when({condition}){note}", f"{INDENT}def {name}():", *lines]


def _start(shared: Shared, initial: Sequence[Value]) -> list[str]:
    section, plan = Section(shared, 2), shared.plan
    ops = _needed(plan, initial)
    section.uses = _uses(plan, ops, initial)
    write_ops(section, ops)
    assert plan.loop is not None
    for item, value in zip(plan.scratch, initial, strict=True):
        section.op = shared.definitions.get(value.name)
        section.assign(_scratch(shared, item.name), section.full(value, section.layout(item.argument), ROOM))
    return section.lines


def _step(shared: Shared, ops: Sequence[Op], yielded: Sequence[Value]) -> list[str]:
    section, plan = Section(shared, 2), shared.plan
    used = [*_reads(ops), *yielded]
    ops = [*_needed(plan, used), *ops]
    section.uses = _uses(plan, ops, yielded)
    section.yielded = {value.name for value in yielded}
    refs = {item.argument.name: _scratch(shared, item.name) for item in plan.scratch}
    for item in plan.scratch:
        section.carried(item.argument, refs[item.argument.name])
    write_ops(section, ops)
    writes = []
    for item, value in zip(plan.scratch, yielded, strict=True):
        ref = refs[item.argument.name]
        if value == item.argument:
            continue
        # What another write would change is read before the first of them.
        others = [other for other in refs.values() if other != ref]
        if value.name in section.pending and any(other in section.codes[value.name].text for other in others):
            section.settle(value)
        writes.append((ref, value, section.full(value, section.layout(item.argument), ROOM)))
    for ref, value, code in writes:
        section.op = shared.definitions.get(value.name)
        if code.text.startswith(f"{ref} + ") and code.level == SUM and not _terms_after(code.text, ref):
            section.write(f"{ref} += {code.text.removeprefix(f'{ref} + ')}")
        else:
            section.assign(ref, code)
    return section.lines


def _terms_after(text: str, ref: str) -> bool:
    """Whether `ref + x` goes on with more terms at its outermost level: `+=` would then add in another order."""
    depth = 0
    for character in text.removeprefix(f"{ref} + "):
        depth += (character in "([") - (character in ")]")
        if depth == 0 and character in "+-":
            return True
    return False


def _finish(shared: Shared) -> list[str]:
    section, plan = Section(shared, 2), shared.plan
    assert plan.loop is not None
    used = list(_reads(plan.after))
    ops = [*_needed(plan, used), *plan.after]
    section.uses = _uses(plan, ops, ())
    for item, result in zip(plan.scratch, plan.loop.results, strict=True):
        section.carried(result, _scratch(shared, item.name))
    write_ops(section, ops)
    return section.lines


def _scratch(shared: Shared, name: str) -> str:
    return f"{shared.refs[f'scratch {name}']}[...]"


def _needed(plan: Plan, values: Iterable[Value]) -> list[Op]:
    """The ops before the loop that some values come from. A section computes them again, its scalars being cheap and
    its blocks already there."""
    wanted = {value.name for value in values}
    kept = []
    for op in reversed(plan.before):
        if any(value.name in wanted for value in op.results):
            kept.append(op)
            wanted |= {value.name for value in _reads([op])}
    return kept[::-1]


def _reads(ops: Iterable[Op]) -> Iterator[Value]:
    """The values that ops read; what a function in them takes from outside counts twice, as it needs a name."""
    for op in ops:
        yield from op.operands
        inside = [inner for region in op.regions for inner in walk(region)]
        own = {value.name for region in op.regions for value in region.arguments}
        own |= {value.name for inner in inside for value in inner.results}
        for value in (value for inner in inside for value in inner.operands):
            yield value
            if value.name not in own:
                yield value


def _uses(plan: Plan, ops: Iterable[Op], last: Iterable[Value]) -> Counter[str]:
    """How often the section uses each value that has a layout."""
    used = [*_reads(ops), *last]
    return Counter(value.name for value in used if plan.layouts[value.name] is not LAZY)
