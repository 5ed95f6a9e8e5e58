from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kdsl.equivalence import properties
from kdsl.equivalence.inputs import draw_inputs
from kdsl.equivalence.properties import Violation, check_algebra, check_properties, check_text, freedom_of_order
from kdsl.ir.kernel import Kernel, Op, bind
from kdsl.ir.rewrite import map_ops
from kdsl.ir.text import print_kernel
from kdsl.kernels.matmul import matmul
from kdsl.passes import PASSES
from kdsl.runtime.examples import Binding, bound_examples
from tests.equivalence.examples import SMALL, extremes, half_written
from tests.frontends.python.samples import places, ragged


def check(kernel: Any, change: Callable[[Kernel], Kernel] = lambda kernel: kernel, place: int = 0) -> Any:
    example = bound_examples(kernel)[place]
    example = replace(example, kernel=change(example.kernel))
    return check_properties(example, inputs(example), seed=1)


def inputs(example: Binding) -> dict[str, Any]:
    return draw_inputs(bind(example.kernel, example.sizes, example.tiles), "generic", (0,), example.scalars)


@pytest.mark.parametrize("kernel", [*SMALL.values(), extremes], ids=[*SMALL, "extremes"])
def test_sound_kernels_have_all_properties(kernel: Any) -> None:
    for place in range(len(kernel.examples)):
        found = check(kernel, place=place)
        assert found.worst is None
        assert found.error_used <= 1
        check_text(bound_examples(kernel)[place].kernel)


def test_a_result_that_depends_on_lanes_beyond_the_edge_is_found() -> None:
    with pytest.raises(Violation, match=r"depends on (what lies beyond an edge|tile sizes|the order)"):
        check(SMALL["matmul"], _garbage_beyond_the_edge)


def _garbage_beyond_the_edge(kernel: Kernel) -> Kernel:
    """The contraction takes lanes beyond the edge, where loads give no fill."""
    axes = tuple(replace(axis, bounds=()) if axis.kind == "tile" else axis for axis in kernel.axes)
    bounds = {axis.name: axis.bounds for axis in kernel.axes}

    def guarded(op: Op) -> Op:
        if op.name not in ("load", "store"):
            return op
        named = {name for form in op.attributes["index"] for name in form.symbols}
        guard = tuple(bound for name in kernel.order(named) for bound in bounds[name])
        return replace(op, attributes={**op.attributes, "bounds": guard})

    return replace(map_ops(kernel, guarded), axes=axes)


def test_an_output_element_that_is_never_written_is_found() -> None:
    example = bound_examples(half_written)[0]
    with pytest.raises(Violation, match="before it is written"):
        check_properties(example, inputs(example), seed=0)


def test_programs_that_overwrite_each_other_are_found() -> None:
    def overlapping(kernel: Kernel) -> Kernel:
        """All programs of the outer axis write the first rows."""
        outer = kernel.program_axes[0].name

        def moved(op: Op) -> Op:
            if op.name != "store":
                return op
            index = tuple(form.without([outer]) for form in op.attributes["index"])
            return replace(op, attributes={**op.attributes, "index": index})

        return map_ops(kernel, moved)

    with pytest.raises(Violation, match="order of the programs: backwards, low"):
        check(extremes, overlapping)


def test_a_pass_that_changes_the_result_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def negated(kernel: Kernel) -> Kernel:
        return map_ops(kernel, lambda op: replace(op, name="minimum") if op.name == "maximum" else op)

    monkeypatch.setitem(PASSES, "cse", negated)
    with pytest.raises(Violation, match="the pass cse changes the result: out"):
        check(SMALL["attention"])


@pytest.mark.parametrize("name", SMALL)
def test_passes_preserve_the_meaning_over_a_finite_field(name: str) -> None:
    example = bound_examples(SMALL[name])[1]
    assert set(check_algebra(example, seed=1)) >= set(PASSES)


def test_a_pass_that_changes_the_meaning_over_a_finite_field_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def negated(kernel: Kernel) -> Kernel:
        return map_ops(kernel, lambda op: replace(op, name="minimum") if op.name == "maximum" else op)

    monkeypatch.setitem(PASSES, "cse", negated)
    with pytest.raises(Violation, match="the pass cse changes the meaning over a finite field: c"):
        check_algebra(bound_examples(matmul)[0], seed=0)


def test_text_that_does_not_parse_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = bound_examples(extremes)[0].kernel
    monkeypatch.setattr(properties, "print_kernel", lambda kernel: print_kernel(kernel).replace("maximum", "minimum"))
    with pytest.raises(Violation, match="IR text"):
        check_text(kernel)


@pytest.mark.parametrize(
    ("kernel", "freedom"),
    [
        (SMALL["softmax"], "none"),
        (places.histogram, "none"),  # integers add up to the same in any order
        (ragged.split_k, "rounding"),
        (places.pack, "any"),  # each program takes the next place
        (places.claim, "any"),
    ],
)
def test_the_order_of_programs_may_show_only_where_they_meet_in_atomics(kernel: Any, freedom: str) -> None:
    example = bound_examples(kernel)[0]
    assert freedom_of_order(bind(example.kernel, example.sizes, example.tiles)) == freedom
