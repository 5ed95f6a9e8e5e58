"""Error rules are sound: no perturbation within the operands' errors moves an f64 result by more than the rule says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kdsl.ir import errors
from kdsl.ir.dtypes import BF16, F32, F64, I32, DType
from kdsl.ir.kernel import Op, Value
from kdsl.ir.ops import OPS, error_rule
from tests.ir.arithmetic import Array
from tests.ir.strategies import POINTWISE, dtypes_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the operands overflow on purpose
FLOAT_OPS = [name for name in POINTWISE if F64 in dtypes_of(name) and OPS[name].error is not errors.exact]
COUNT = 2_000


def operands_and_errors(count: int, lanes: int, seed: int = 0) -> tuple[list[Array], list[Array]]:
    """Values of all sizes with errors of all sizes, none among them, a tenth of the values special."""
    rng = np.random.default_rng(seed)
    values, bounds = [], []
    for _ in range(count):
        value = rng.normal(0, 1, lanes) * 10.0 ** rng.uniform(-3, 3, lanes)
        special = rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 710.0, -745.0, 1e-300], lanes)
        value = np.where(rng.random(lanes) < 0.1, special, value)
        error = np.abs(value) * 10.0 ** rng.uniform(-12, 1, lanes) + 10.0 ** rng.uniform(-12, -2, lanes)
        values.append(value)
        bounds.append(np.where(rng.random(lanes) < 0.1, 0.0, error))
    return values, bounds


def perturbed(values: Sequence[Array], bounds: Sequence[Array], seed: int) -> list[Array]:
    """The operands moved by almost their errors (f64 rounds the sum), or by some part of them."""
    rng = np.random.default_rng(seed)
    moved = []
    for value, bound in zip(values, bounds, strict=True):
        room = np.maximum(0.0, bound * (1 - 1e-12) - np.spacing(np.abs(value)))
        share = np.where(
            rng.random(value.shape) < 0.5, rng.choice([-1, 1], value.shape), rng.uniform(-1, 1, value.shape)
        )
        moved.append(np.where(room == 0, value, value + room * share))  # an exact -0.0 stays one
    return moved


def assert_sound(result: Array, moved: Array, bound: Array, *shown: Array) -> None:
    defined = ~np.isnan(result) & ~np.isnan(moved) & (result != moved)
    distance = np.abs(moved - result)
    # What f64 itself rounds in the two results.
    slack = np.nan_to_num(4 * np.spacing(np.maximum(np.abs(result), np.abs(moved))), nan=0.0)
    wrong = np.flatnonzero(defined & ~(distance <= bound + slack))
    assert not wrong.size, [(*(each[place] for each in shown), distance[place], bound[place]) for place in wrong[:3]]


@pytest.mark.parametrize("name", FLOAT_OPS)
def test_a_rule_bounds_every_perturbation(name: str) -> None:
    function, rule = OPS[name].pointwise, OPS[name].error
    assert function is not None
    values, bounds = operands_and_errors(len(OPS[name].operands), COUNT)
    if name in ("log", "log2", "log10", "sqrt", "rsqrt", "precise_sqrt", "pow", "log1p", "acosh"):
        values[0] = np.abs(values[0]) + (name == "acosh")
    if name in ("asin", "acos", "atanh"):
        values = [values[0] / (1 + np.abs(values[0]))]
    result = np.asarray(function(*values))
    bound = np.broadcast_to(rule(values, bounds, result), COUNT)
    assert np.mean(np.isfinite(bound)) > 0.5, "a rule that says infinity says nothing"
    for seed in range(4):
        moved = perturbed(values, bounds, seed)
        assert_sound(result, np.asarray(function(*moved)), bound, *values, *bounds, *moved)


@pytest.mark.parametrize("name", FLOAT_OPS)
def test_exact_operands_give_an_exact_result(name: str) -> None:
    function, rule = OPS[name].pointwise, OPS[name].error
    assert function is not None
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e308, 5e-324])
    values = [grid.ravel() for grid in np.meshgrid(*[special] * len(OPS[name].operands))]
    bound = rule(values, [np.zeros_like(value) for value in values], np.asarray(function(*values)))
    assert np.array_equal(np.broadcast_to(bound, values[0].shape), np.zeros_like(values[0]))


@pytest.mark.parametrize("name", FLOAT_OPS)
def test_an_unknown_operand_gives_no_nan_bound(name: str) -> None:
    function, rule = OPS[name].pointwise, OPS[name].error
    assert function is not None
    special = np.array([0.0, 1.0, -1.0, np.inf, -np.inf, 1e308])
    count = len(OPS[name].operands)
    grid = [axis.ravel() for axis in np.meshgrid(*[special] * count, *[np.array([0.0, 1.0, np.inf])] * count)]
    values, bounds = grid[:count], grid[count:]
    result = np.asarray(function(*values))
    assert not np.isnan(rule(values, bounds, result))[~np.isnan(result)].any()


def test_select_has_the_error_of_the_arm_it_takes() -> None:
    values, bounds = operands_and_errors(2, COUNT)
    condition = np.arange(COUNT) % 3 == 0
    result = np.where(condition, *values)
    bound = OPS["select"].error([condition, *values], [np.zeros(COUNT), *bounds], result)
    assert_sound(result, np.where(condition, *perturbed(values, bounds, 1)), bound)
    assert np.array_equal(bound, np.where(condition, *bounds))


@pytest.mark.parametrize("target", [BF16, I32], ids=str)
def test_casts_move_by_their_operand_s_error_and_one_step_to_integers(target: DType) -> None:
    op = Op("cast", (Value("x", F32),), (Value("y", target),))
    values, bounds = operands_and_errors(1, COUNT)
    moved = perturbed(values, bounds, 1)
    convert = np.trunc if target == I32 else np.positive  # rounding is the caller's to add
    result = convert(values[0])
    assert_sound(result, convert(moved[0]), error_rule(op)(values, bounds, result), *values, *moved)


def test_a_dot_moves_by_no_more_than_its_products() -> None:
    values, bounds = operands_and_errors(2, COUNT)
    bound = OPS["dot"].error(values, bounds, values[0] * values[1]).reshape(-1, 8).sum(axis=1)
    moved = perturbed(values, bounds, 1)
    result = (values[0] * values[1]).reshape(-1, 8).sum(axis=1)
    assert_sound(result, (moved[0] * moved[1]).reshape(-1, 8).sum(axis=1), bound)


def test_a_reduced_sum_and_maximum_move_by_no_more_than_the_sum_of_errors() -> None:
    values, bounds = operands_and_errors(8, COUNT)
    bound = OPS["reduce"].error(values, bounds, values[0])
    moved = perturbed(values, bounds, 1)
    assert_sound(np.sum(values, axis=0), np.sum(moved, axis=0), bound)
    assert_sound(np.max(values, axis=0), np.max(moved, axis=0), bound)
