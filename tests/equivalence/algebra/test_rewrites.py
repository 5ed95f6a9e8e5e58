"""Kernels that compute one thing in different ways are equal in the field, and those with a fault are not."""

from __future__ import annotations

import pytest

import kdsl
from kdsl.equivalence.algebra import Answer, equal_in_field
from kdsl.ir.kernel import Kernel, bind
from kdsl.ir.text import parse_kernel, print_kernel
from kdsl.kernels.attention import attention
from kdsl.kernels.softmax import softmax
from kdsl.passes import run_passes
from tests.equivalence.algebra.rewrites import naive_attention, online_softmax

TILES = (4, 5, 8, 16, 32)
SIZES = {"B": 1, "H": 2, "L": 37, "S": 37, "D": 3}


def elaborated(causal: bool) -> tuple[Kernel, Kernel]:
    return tuple(kernel.elaborate(T=kdsl.f32, causal=causal) for kernel in (naive_attention, attention))


def against_naive(changed: Kernel, causal: bool, size: int) -> Answer:
    naive, _ = elaborated(causal)
    return equal_in_field(bind(naive, SIZES), bind(changed, SIZES, {"BL": 16, "BS": size}))


@pytest.mark.parametrize("size", TILES)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_in_one_pass_is_attention(causal: bool, size: int) -> None:
    answer = against_naive(elaborated(causal)[1], causal, size)
    assert (answer.verdict, answer.elements) == ("equal", 2 * 37 * 3), answer


@pytest.mark.parametrize("size", TILES)
def test_softmax_in_one_pass_is_softmax(size: int) -> None:
    sizes = {"M": 3, "N": 37}
    before, after = (kernel.elaborate(T=kdsl.f32) for kernel in (softmax, online_softmax))
    assert equal_in_field(bind(before, sizes), bind(after, sizes, {"BN": size})).verdict == "equal"


# By what the text of the kernel with explicit edges says, and what it says with the fault.
FAULTS = {
    "no rescale": (False, ("sub %row_max.1, %new_max", "sub %new_max, %new_max")),
    "no rescale of the sum": (False, ("mul %row_sum.1, %rescale", "add %row_sum.1, %constant.1")),
    "no rescale of the accumulator": (False, ("mul %accumulator.1, %rescale", "add %accumulator.1, %constant.1")),
    "the maximum of the tile alone": (False, ("sub %scores, %new_max", "sub %scores, %max")),
    "lanes beyond the edge filled with 0 and not masked": (
        False,
        ("< S\n", "< S fill 0.0\n", "%inside, %weights,", "%true, %weights,"),
    ),
    "no causal mask": (True, ("select %le, %scores, %constant", "select %le, %scores, %scores")),
    "a causal mask that is off by one": (True, ("le %index, %index.1", "lt %index, %index.1")),
    "no last iteration": (False, ("loop n_block < cdiv(S, BS)", "loop n_block < cdiv(S, BS) - 1")),
    "the scale forgotten": (False, ("mul %dot, %scale", "add %dot, %constant.1")),
    "a rescale once too often": (False, ("add %mul, %sum", "add %sum, %mul", "mul %row_sum.1, %r", "mul %rescale, %r")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_attention_is_found(fault: str) -> None:
    causal, changes = FAULTS[fault]
    answer = against_naive(changed(causal, *changes), causal, 8)
    assert answer.verdict == "different", answer
    assert answer.reason.startswith("out[0, 0, ")


@pytest.mark.parametrize("start", ["row_max: f32[m] = broadcast %constant", "row_sum: f32[m] = broadcast %constant.1"])
def test_where_maximum_and_sum_start_is_no_fault(start: str) -> None:
    after = changed(False, f"{start} ", f"{start.split(' %')[0]} %one ")
    assert against_naive(after, False, 8).verdict == "equal"


def changed(causal: bool, *changes: str) -> Kernel:
    """Attention with explicit edges, and with the text replaced that the changes name in turn."""
    text = print_kernel(run_passes(elaborated(causal)[1], ["explicit_edges", "cse", "dce"]))
    added = "  axis n < BS\n  %one: f32 = constant {value = 1.0}\n  %true: bool = constant {value = true}\n"
    text = text.replace("  axis n < BS\n", added)
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, text
        text = text.replace(old, new)
    return parse_kernel(text)
