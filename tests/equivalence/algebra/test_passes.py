"""Every pass that kdsl.passes.pipeline names keeps what kernels mean in the field; one that does not is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from kdsl.equivalence.algebra import Answer, check_passes
from kdsl.ir.kernel import Kernel, Op
from kdsl.ir.rewrite import map_ops
from kdsl.ir.text import parse_kernel
from kdsl.passes import PASSES, calls, pipeline, run_passes
from tests.frontends.python.test_samples import KERNELS as SAMPLES
from tests.frontends.python.test_samples import argument, bound_example
from tests.ir.strategies import Case, kernels
from tests.passes.batched_kernels import FLAT_ADD, FLAT_MATMUL, FLAT_SOFTMAX, GATHER, ROWS, TRIANGLE, ready_made

Sizes = dict[str, int]

READY_MADE: dict[str, tuple[int, Sizes, Sizes]] = {
    "vector_add": (2, {"N": 13}, {"BN": 4}),
    "softmax": (2, {"M": 5, "N": 7}, {"BM": 2}),
    "layernorm": (2, {"M": 5, "N": 7}, {"BM": 2}),
    "matmul": (2, {"M": 5, "N": 6, "K": 7}, {"BM": 4, "BN": 4, "BK": 2}),
    "attention": (2, {"B": 2, "H": 1, "L": 9, "S": 11, "D": 4}, {"BL": 4, "BS": 4}),
}
FLAT = {"n_columns": 5, "stride": 6}
TEXTS: dict[str, tuple[str, Sizes]] = {
    "rows": (ROWS, {"M": 5, "N": 6}),
    "gather": (GATHER, {"M": 5, "N": 5}),
    "triangle": (TRIANGLE, {"M": 7}),
    "flat_add": (FLAT_ADD, {}),
    "flat_softmax": (FLAT_SOFTMAX, FLAT),
    "flat_matmul": (FLAT_MATMUL, {}),
}
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # a failing kernel is short enough; to shrink it takes minutes


def assert_all_equal(answers: dict[str, Answer], kernel: Kernel) -> None:
    assert {name: str(answer) for name, answer in answers.items() if answer.verdict != "equal"} == {}
    # Only what some targets want, and what takes arguments, may be refused.
    assert answers.keys() >= PASSES.keys() - {"pad_extents"}
    assert answers.keys() - set(calls(kernel)) <= {", ".join(PASSES), ", ".join(list(PASSES)[1:])}


@pytest.mark.parametrize("name", READY_MADE)
def test_passes_keep_the_ready_made_kernels(name: str) -> None:
    examples, sizes, tiles = READY_MADE[name]
    for example in range(examples):
        kernel = ready_made(name, example)
        assert_all_equal(check_passes(kernel, sizes, tiles), kernel)


@pytest.mark.parametrize("name", TEXTS)
def test_passes_keep_kernels_in_text(name: str) -> None:
    text, sizes = TEXTS[name]
    kernel = parse_kernel(text)
    free = {size.name: 5 for size in kernel.sizes if size.value is None}
    answers = check_passes(kernel, {**free, **sizes}, {tile.name: 2 for tile in kernel.tiles})
    assert_all_equal(answers, kernel)
    assert any(call.startswith("batch") for call in answers)


@pytest.mark.parametrize("name", SAMPLES)
def test_passes_keep_the_samples(name: str) -> None:
    kernel, scalars = bound_example(SAMPLES[name])
    arrays = {buffer.name: argument(buffer, seed) for seed, buffer in enumerate(kernel.buffers)}
    integers = {parameter.name for parameter in kernel.parameters if not parameter.dtype.is_float}
    given = {name: value for name, value in {**scalars, **arrays}.items() if name in integers}
    assert_all_equal(check_passes(kernel, {}, {}, given, draws=1), kernel)


def check_random(case: Case) -> None:
    integers = {parameter.name for parameter in case.kernel.parameters if not parameter.dtype.is_float}
    given = {name: value for name, value in case.arguments.items() if name in integers}
    answers = check_passes(case.kernel, case.sizes, {}, given, draws=1)
    assert {name: str(answer) for name, answer in answers.items() if answer.verdict == "different"} == {}


@settings(max_examples=8, deadline=None, phases=QUICK, suppress_health_check=list(HealthCheck))
@given(kernels())
def test_passes_keep_random_kernels(case: Case) -> None:
    check_random(case)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, phases=QUICK, suppress_health_check=list(HealthCheck))
@given(kernels())
def test_passes_keep_many_random_kernels(case: Case) -> None:
    check_random(case)


# -- passes with a fault -------------------------------------------------------------------------------------------


def without_masks(kernel: Kernel) -> Kernel:
    """explicit_edges that forgets to mask, and fills with 0."""

    def change(op: Op) -> Op:
        if op.name == "load" and "bounds" in op.attributes:
            return replace(op, attributes={**op.attributes, "fill": 0.0})
        masks = op.name == "select" and op.operands[0].name.startswith("inside")
        return replace(op, operands=(*op.operands[:2], op.operands[1])) if masks else op

    return map_ops(run_passes(kernel, ["pad_extents", "explicit_edges"]), change)


def renamed(**names: str) -> Callable[[Kernel], Kernel]:
    return lambda kernel: map_ops(kernel, lambda op: replace(op, name=names.get(op.name, op.name)))


def swapped(name: str) -> Callable[[Kernel], Kernel]:
    def change(op: Op) -> Op:
        return replace(op, operands=op.operands[::-1]) if op.name == name else op

    return lambda kernel: map_ops(kernel, change)


def cut_off(kernel: Kernel) -> Kernel:
    """Casts to bf16 cut off where they rounded to nearest."""

    def change(op: Op) -> Op:
        narrows = op.name == "cast" and op.result.dtype.name == "bf16"
        return replace(op, attributes={**op.attributes, "rounding": "zero"}) if narrows else op

    return map_ops(kernel, change)


FAULTY: dict[str, tuple[str, int, Callable[[Kernel], Kernel]]] = {
    "no mask": ("softmax", 0, without_masks),
    "no mask in a loop": ("attention", 1, without_masks),
    "maximum for minimum": ("matmul", 0, renamed(maximum="minimum")),
    "exp2 for exp": ("attention", 0, renamed(exp="exp2")),
    "sqrt for rsqrt": ("layernorm", 0, renamed(rsqrt="sqrt")),
    "a difference turned around": ("softmax", 0, swapped("sub")),
    "a quotient turned around": ("attention", 0, swapped("div")),
    "another rounding": ("matmul", 0, cut_off),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_pass_with_a_fault_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, example, faulty = FAULTY[fault]
    monkeypatch.setitem(PASSES, "faulty", faulty)
    answers = check_passes(ready_made(name, example), *READY_MADE[name][1:])
    assert answers["faulty"].verdict == "different", answers["faulty"]
    assert answers["cse"].verdict == "equal"
    assert answers[", ".join(PASSES)].verdict == "different"


def test_a_pass_with_arguments_comes_under_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def batch_without_the_rest(kernel: Kernel, axis: str, factor: int) -> Kernel:
        """Where the factor does not divide the points, the last ones are left out."""
        batched = true_batch(kernel, axis, factor)
        points = kernel.axis(axis).extent // factor
        axes = tuple(replace(each, extent=points) if each.name == axis else each for each in batched.axes)
        return replace(batched, axes=axes)

    true_batch: Any = pipeline.batch
    monkeypatch.setattr(pipeline, "batch", batch_without_the_rest)
    answers = check_passes(ready_made("matmul", 0), *READY_MADE["matmul"][1:])
    found = {call: answer.verdict for call, answer in answers.items() if call.startswith("batch")}
    assert found["batch(m_block, 2)"] == "equal"  # two points
    assert found["batch(m_block, 3)"] == found["batch(k_block, 3)"] == "different"
