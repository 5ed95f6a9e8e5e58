"""Kernels read from TTIR, run on the oracle, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kdsl.diagnostics import KdslError
from kdsl.frontends.triton.importer import import_kernel
from kdsl.frontends.triton.text import parse_module
from kdsl.interpreter import run
from kdsl.ir.kernel import Kernel, bind, walk
from kdsl.ir.text import parse_kernel, print_kernel
from tests.frontends.triton.mutate import mutated
from tests.frontends.triton.texts import TRITON_38, captured, source

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(7)


def imported(file: str, name: str) -> Kernel:
    return import_kernel(parse_module(captured(file)[name]))


def launch(kernel: Kernel, grid: tuple[int, ...], **arguments: Any) -> dict[str, Array]:
    """Run the kernel on flat arrays; what it writes comes back in the shape that it was given in."""
    flat = {name: value.reshape(-1) if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
    sizes = {f"grid_{place}": extent for place, extent in enumerate(grid)}
    sizes |= {f"{name}_elements": value.size for name, value in flat.items() if isinstance(value, np.ndarray)}
    written = run(bind(kernel, sizes), flat)
    return {name: value.reshape(arguments[name].shape) for name, value in written.items()}


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


def softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def test_masked_addition() -> None:
    x, y = normal(300), normal(300)
    got = launch(imported("rows", "add"), (3,), x=x, y=y, out=np.full(310, 9, np.float32)[:300], n=290)["out"]
    np.testing.assert_array_equal(got[:290], x[:290] + y[:290])
    np.testing.assert_array_equal(got[290:], 9)


def test_softmax_of_ragged_rows() -> None:
    x = normal(5, 100)
    got = launch(imported("rows", "softmax"), (5,), x=x, out=np.zeros_like(x), stride=100, columns=100)["out"]
    np.testing.assert_allclose(got, softmax(x.astype(np.float64)), rtol=1e-5)


def test_layernorm_in_three_loops_over_a_row() -> None:
    x, weight, bias = normal(3, 300, dtype=ml_dtypes.bfloat16), normal(300), normal(300)
    out, mean = np.zeros_like(x), np.zeros(3, np.float32)
    given = {"x": x, "weight": weight, "bias": bias, "out": out, "mean_out": mean, "stride": 300, "columns": 300}
    got = launch(imported("rows", "layernorm"), (3,), **given, eps=1e-5)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(got["mean_out"], wide.mean(1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got["out"].astype(np.float64), expected, rtol=2**-8, atol=1e-5)  # half a bf16 quantum


def test_argmax_takes_the_first_of_equals() -> None:
    x = RANDOM.integers(-3, 3, (6, 50)).astype(np.float32)
    best, where = np.zeros(6, np.float32), np.zeros(6, np.int32)
    got = launch(imported("rows", "argmax"), (6,), x=x, best=best, where=where, columns=50)
    np.testing.assert_array_equal(got["best"], x.max(1))
    np.testing.assert_array_equal(got["where"], x.argmax(1))


def test_reduction_of_three_operands_by_a_function() -> None:
    x, mean, variance = normal(4, 40), np.zeros(4, np.float32), np.zeros(4, np.float32)
    got = launch(imported("rows", "welford"), (4,), x=x, mean_out=mean, variance_out=variance, columns=40)
    np.testing.assert_allclose(got["mean_out"], x.mean(1, dtype=np.float64), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got["variance_out"], x.var(1, dtype=np.float64), rtol=1e-4)


def test_signed_and_unsigned_integers() -> None:
    x = RANDOM.integers(-(2**31), 2**31, 64).astype(np.int32)
    y = RANDOM.integers(1, 2**31, 64).astype(np.int32) * RANDOM.choice(np.array([-1, 1], np.int32), 64)
    x[:2], y[0] = (0, -1), 7
    got = launch(imported("rows", "integers"), (), x=x, y=y, out=np.zeros_like(x))["out"]
    a, b = x.astype(object), y.astype(object)  # Python's integers, which have no width
    u, v = a % 2**32, b % 2**32
    quotient = abs(a) // abs(b) * np.sign(x.astype(np.int64) * y).astype(object)
    c = quotient + (a - quotient * b) + (a & b) + (a | b) + (a ^ b) + (a << 2) + (a >> 3) + ~a + abs(b)
    c += u // v + u % v + (u >> 5) + ((u * v) >> 32)
    c += np.minimum(a, b) + np.maximum(a, b) + np.minimum(u, v) + np.maximum(u, v)
    # Floats of 24 bits and back, saturated.
    c += np.minimum(u.astype(np.float32).astype(np.int64), 2**32 - 1).astype(object)
    c += np.minimum(x.astype(np.float32).astype(np.int64), 2**31 - 1).astype(object)
    c += int(np.bitwise_xor.reduce(x))
    c += (a * 2**32 + u) >> 32
    short = (x.astype(np.int16) * np.int16(2)).astype(np.int8)
    expected = (c + short.astype(object)) % 2**32
    np.testing.assert_array_equal(got.view(np.uint32).astype(object), expected)


def test_convolution_with_a_halo() -> None:
    x, w = normal(2, 100), normal(2, 4)
    kernel = imported("products", "conv1d")
    got = launch(kernel, (2, 2), x=x, w=w, y=np.zeros_like(x), channels=2, length=100)["y"]
    expected = [np.convolve(row, taps[::-1])[:100] for row, taps in zip(x.astype(np.float64), w, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_matmul_in_grouped_order_with_pointers_carried_by_the_loop() -> None:
    m, n, k = 100, 70, 80
    a, b = RANDOM.integers(-4, 5, (m, k)).astype(np.float16), RANDOM.integers(-4, 5, (k, n)).astype(np.float16)
    kernel = imported("products", "matmul")
    c = np.zeros((m, n), np.float16)
    got = launch(kernel, (2 * 3,), a=a, b=b, c=c, M=m, N=n, K=k, stride_am=k, stride_bk=n, stride_cm=n)["c"]
    np.testing.assert_array_equal(got, (a.astype(np.float64) @ b).astype(np.float16))


def test_causal_attention_whose_loop_ends_at_the_diagonal() -> None:
    q, k, v = (normal(2, 100, 64, dtype=np.float16) for _ in range(3))
    kernel = imported("products", "flash_attention")
    got = launch(kernel, (2, 2), q=q, k=k, v=v, out=np.zeros_like(q), scale=0.125, length=100)["out"]
    wide = [each.astype(np.float64) for each in (q, k, v)]
    scores = wide[0] @ wide[1].transpose(0, 2, 1) * 0.125
    scores[:, np.triu(np.ones((100, 100), bool), 1)] = -np.inf
    np.testing.assert_allclose(got.astype(np.float64), softmax(scores) @ wide[2], atol=4e-3)


@pytest.mark.parametrize(("first", "step"), [(0, 1), (1, 2), (5, 3), (4, 1)])
def test_nested_loops_and_a_tile_plus_its_transpose(first: int, step: int) -> None:
    x = RANDOM.integers(-9, 9, (4, 16, 16)).astype(np.float32)
    kernel = imported("control", "nested")
    got = launch(kernel, (), x=x, out=np.zeros((16, 16), np.float32), rows=4, first=first, step=step)["out"]
    tiles = [x[each] for row in range(first, 4, step) for each in range(row)]
    expected = sum((tile + tile.T for tile in tiles), np.zeros((16, 16)))
    np.testing.assert_array_equal(got, expected + x.reshape(-1)[8])


def test_lanes_are_moved_in_indices_rather_than_in_tiles() -> None:
    """One arange serves rows and head dimension: it is the index that changes its axis, not what it loads."""
    kernel = imported("products", "flash_attention")
    moved = [op for op in walk(kernel.body) if op.name == "relabel"]
    assert moved and all(op.result.dtype.is_integer and len(op.result.axes) == 1 for op in moved)


@pytest.mark.parametrize(("file", "name"), [("rows", "softmax"), ("products", "matmul"), ("control", "nested")])
def test_what_is_imported_prints_and_parses_back(file: str, name: str) -> None:
    kernel = imported(file, name)
    assert parse_kernel(print_kernel(kernel)) == kernel


def test_only_what_a_store_reaches_is_written() -> None:
    assert [each.name for each in imported("products", "matmul").written] == ["c"]
    assert [each.name for each in imported("rows", "layernorm").written] == ["out", "mean_out"]


def test_ops_keep_the_authors_lines() -> None:
    lines = source("rows").read_text().splitlines()
    (exp,) = (op for op in walk(imported("rows", "softmax").body) if op.name == "exp")
    assert exp.location is not None and "tl.exp(" in lines[exp.location.line - 1]
    assert exp.result.name.startswith("numerator")


@pytest.mark.parametrize(
    ("file", "name", "what", "text"),
    [
        ("lanes", "atomics", "tt.atomic_rmw", "tl.atomic_add(counts"),
        ("lanes", "softplus", "tt.elementwise_inline_asm", "tl.inline_asm_elementwise("),
        ("control", "early_return", "a return in the middle", "if length == 0:"),
        ("control", "walk", "arith.select of !tt.ptr<f32>", "source = a if swap == 0 else b"),
        ("lanes", "host_descriptor", "the argument source of type !tt.tensordesc<16x64xf16>", "def host_descriptor"),
    ],
)
def test_what_is_not_read_is_refused_by_name_and_line(file: str, name: str, what: str, text: str) -> None:
    with pytest.raises(KdslError) as caught:
        imported(file, name)
    assert caught.value.code == "K0913"
    assert what in caught.value.message
    assert caught.value.location is not None
    assert text in source(file).read_text().splitlines()[caught.value.location.line - 1]


def test_changed_texts_are_imported_or_refused() -> None:
    imported_texts = 0
    texts = [TRITON_38["argmax"], captured("rows")["softmax"], captured("products")["matmul"]]
    for seed in range(300):
        try:
            import_kernel(parse_module(mutated(texts[seed % 3], texts[(seed + 1) % 3], seed)))
            imported_texts += 1
        except KdslError as error:
            assert error.code in ("K0911", "K0913")
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    assert imported_texts > 20
