from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kdsl.runtime.worker import Worker, WorkerError

pytest.importorskip("triton", reason="an extra; tests/test_extras.py fails without it")
pytest.importorskip("torch", reason="an extra; tests/test_extras.py fails without it")

MODULE = "kdsl.backends.triton.toolchain"
BF16 = np.dtype(ml_dtypes.bfloat16)
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Worker]:
    each = Worker("triton interpreter", {"TRITON_INTERPRET": "1"})
    yield each
    each.close()


@pytest.fixture(scope="module")
def compiler() -> Iterator[Worker]:
    each = Worker("triton compiler", {"TRITON_INTERPRET": ""})
    yield each
    each.close()


def module(body: str, parameters: str = "x, out, n, BLOCK: tl.constexpr") -> str:
    """An emitted module in small: one kernel, and a wrapper that allocates an output like x. The body is at line 8."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return f"""import torch
import triton
import triton.language as tl


@triton.jit
def kernel({parameters}):
{lines}


def launch(x, *scalars, block=16, grid=1, dtype=None, size=None):
    out = torch.empty(size or x.shape, dtype=getattr(torch, dtype) if dtype else x.dtype, device=x.device)
    kernel[(grid,)](x, out, x.numel(), *scalars, BLOCK=block)
    return out
"""


def run(interpreter: Worker, source: str, *values: Any, **keywords: Any) -> Array:
    arguments: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    for index, value in enumerate(values):
        if isinstance(value, np.ndarray):
            arrays[f"a{index}"] = value
            arguments.append({"name": f"a{index}", "kind": "array"})
        else:
            arguments.append({"name": f"a{index}", "kind": "scalar", "value": value})
    payload = {"source": source, "function": "launch", "arguments": arguments, "keywords": keywords}
    reply = interpreter.call(f"{MODULE}:run", payload, arrays)
    assert reply.values == {"outputs": 1}
    return reply.arrays["0"]


def pointwise(expression: str) -> str:
    return module(f"""
i = tl.arange(0, BLOCK)
a = tl.load(x + i)
tl.store(out + i, {expression})
""")


def rounded(values: Array) -> Array:
    return values.astype(np.float32).astype(BF16)


X = np.array([1.0078125, -2.5, 3.140625, 1e-3, 300.0, 0.1, -7.0, 65280.0] * 2, np.float64).astype(BF16)
WIDE = X.astype(np.float64)

EXPRESSIONS: dict[str, Array] = {
    "a + a": 2 * WIDE,
    "a + 1.0": WIDE + 1,
    "a * a": WIDE * WIDE,
    "a - a * a": WIDE - rounded(WIDE * WIDE).astype(np.float64),
    "a / 3.0": WIDE / 3,
    "-a": -WIDE,
    "tl.abs(a)": np.abs(WIDE),
    "tl.exp(a.to(tl.float32) * 0.001)": np.exp((WIDE * np.float32(0.001)).astype(np.float32)),
    "tl.where(a > 1.0, a, 0.5)": np.where(WIDE > 1, WIDE, 0.5),
    "(a > 1.0).to(tl.bfloat16)": WIDE > 1,
    "(a >= a).to(tl.float32)": np.ones(16),
    "tl.maximum(a, 0.0)": np.maximum(WIDE, 0),
    "tl.minimum(a, 2)": np.minimum(WIDE, 2),
    "tl.clamp(a, -1.0, 1.0)": np.clip(WIDE, -1, 1),
    "a.to(tl.int32)": np.trunc(WIDE),
    "(a.to(tl.int32) * 3).to(tl.bfloat16)": np.trunc(WIDE) * 3,
    "tl.fma(a, a, a)": WIDE * WIDE + WIDE,
    "tl.full((BLOCK,), 0.1, tl.bfloat16)": np.full(16, 0.1),
    "tl.zeros((BLOCK,), tl.bfloat16) + a": WIDE,
    "tl.sum(a, axis=0) + tl.zeros((BLOCK,), tl.float32)": np.full(16, rounded(WIDE.sum()[None]).astype(np.float64)),
    "tl.max(a, axis=0) + tl.zeros((BLOCK,), tl.float32)": np.full(16, WIDE.max()),
    "tl.argmax(a, axis=0) + tl.zeros((BLOCK,), tl.int32)": np.full(16, 7),
    "tl.argmin(a, axis=0) + tl.zeros((BLOCK,), tl.int32)": np.full(16, 6),
    "tl.reshape(tl.trans(tl.reshape(a, (4, 4))), (BLOCK,))": WIDE.reshape(4, 4).T.reshape(-1),
    "a.to(tl.int16, bitcast=True).to(tl.bfloat16, bitcast=True)": WIDE,
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_bf16_is_computed_as_float_and_rounded_once_an_operation(interpreter: Worker, expression: str) -> None:
    result = run(interpreter, pointwise(expression), X)
    assert result.dtype == BF16
    np.testing.assert_array_equal(result.astype(np.float64), rounded(EXPRESSIONS[expression]).astype(np.float64))


def test_a_bf16_sum_does_not_stop_at_256(interpreter: Worker) -> None:
    source = module("tl.store(out, tl.sum(tl.load(x + tl.arange(0, BLOCK)), axis=0))")
    assert run(interpreter, source, np.ones(1024, BF16), block=1024, size=1) == 1024


def test_bf16_rounding_toward_zero(interpreter: Worker) -> None:
    values = np.linspace(-3, 3, 16).astype(np.float32)
    source = pointwise('a.to(tl.bfloat16, fp_downcast_rounding="rtz")')
    truncated = (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
    np.testing.assert_array_equal(run(interpreter, source, values, dtype="bfloat16").astype(np.float32), truncated)


@pytest.mark.parametrize(
    ("name", "dtype", "largest"),
    [("float8e4nv", ml_dtypes.float8_e4m3fn, 448.0), ("float8e5", ml_dtypes.float8_e5m2, 57344.0)],
)
def test_casts_to_fp8_saturate(interpreter: Worker, name: str, dtype: type, largest: float) -> None:
    values = np.array([0.3, -1.7, 1e9, -1e9, np.inf, 3.0, 17.0, 1e-3] * 2, np.float32)
    result = run(interpreter, pointwise(f"a.to(tl.{name})"), values, dtype=np.dtype(dtype).name)
    assert result.dtype == dtype
    expected: Array = np.clip(values, -largest, largest).astype(dtype)
    np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32))


DTYPES = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


@pytest.mark.parametrize("dtype", [*DTYPES, BF16])
def test_every_dtype_is_loaded_and_stored_bit_for_bit(interpreter: Worker, dtype: Any) -> None:
    values = np.random.default_rng(0).integers(0, 2, 13).astype(dtype)
    if dtype != "bool":
        values = np.random.default_rng(0).integers(0, 256, 13 * values.itemsize, dtype=np.uint8).view(dtype)
    source = module("""
i = tl.arange(0, BLOCK)
tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
""")
    result = run(interpreter, source, values)
    assert result.dtype == values.dtype
    assert result.tobytes() == values.tobytes()


MATMUL = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a, b, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    m = (pid // tiles_n) * BM + tl.arange(0, BM)
    n = (pid % tiles_n) * BN + tl.arange(0, BN)
    accumulator = tl.zeros((BM, BN), tl.float32)
    for start in RANGE(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(b + n[:, None] * K + k[None, :], mask=(n[:, None] < N) & (k[None, :] < K), other=0.0)
        accumulator = tl.dot(left, tl.trans(right), accumulator, input_precision="ieee")
    tl.store(
        out + m[:, None] * N + n[None, :],
        accumulator.to(out.dtype.element_ty),
        mask=(m[:, None] < M) & (n[None, :] < N),
    )


def launch(a, b):
    (M, K), (N, _) = a.shape, b.shape
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(M, 16) * triton.cdiv(N, 32),)](a, b, out, M, N, K, BM=16, BN=32, BK=16)
    return out
"""


@pytest.mark.parametrize("dtype", ["float16", "float32", BF16])
@pytest.mark.parametrize("loop", ["range", "tl.range"])
def test_a_ragged_matmul_accumulates_in_f32_and_rounds_once(interpreter: Worker, dtype: Any, loop: str) -> None:
    # Integers this small make every product and sum exact in f32.
    random = np.random.default_rng(1)
    a, b = (random.integers(-8, 8, shape).astype(dtype) for shape in [(33, 31), (37, 31)])
    result = run(interpreter, MATMUL.replace("RANGE", loop), a, b)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_array_equal(result.astype(np.float64), exact.astype(np.float32).astype(dtype).astype(np.float64))


def test_a_float_argument_is_an_fp32_scalar(interpreter: Worker) -> None:
    """So bf16 times it is fp32, as in a compiled launch, and not bf16."""
    source = module(
        "i = tl.arange(0, BLOCK)\ntl.store(out + i, tl.load(x + i) * scale)", "x, out, n, scale, BLOCK: tl.constexpr"
    )
    result = run(interpreter, source, X, 0.3, dtype="float32")
    np.testing.assert_array_equal(result, X.astype(np.float32) * np.float32(0.3))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("(i > 3) and (i < 9)", range(4, 9)), ("(i < 3) or (i > 13)", [0, 1, 2, 14, 15]), ("not (i < 12)", range(12, 16))],
)
def test_boolean_operators_on_blocks_are_elementwise(interpreter: Worker, expression: str, expected: Any) -> None:
    source = module(f"i = tl.arange(0, BLOCK)\ntl.store(out + i, tl.where({expression}, 1, 0))")
    result = run(interpreter, source, np.zeros(16, np.int32))
    assert np.flatnonzero(result).tolist() == list(expected)


def test_argmax_passes_over_nan_and_takes_a_row_of_nan(interpreter: Worker) -> None:
    source = module("""
i = tl.arange(0, BLOCK)
a = tl.load(x + tl.arange(0, 2)[:, None] * BLOCK + i[None, :])
tl.store(out + tl.arange(0, 2), tl.argmax(a, axis=1))
""")
    values = np.full((2, 16), np.nan, np.float32)
    values[0, 5:7] = -1, 2
    result = run(interpreter, source, values, dtype="int32", size=2)
    assert result[0] == 6
    assert 0 <= result[1] < 16


def test_what_was_not_written_shows(interpreter: Worker) -> None:
    source = module("i = tl.arange(0, BLOCK)\ntl.store(out + i, tl.load(x + i), mask=i < 12)")
    assert np.isnan(run(interpreter, source, np.zeros(16, np.float32))[12:]).all()
    assert np.isnan(run(interpreter, source, np.zeros(16, BF16))[12:].astype(np.float32)).all()
    assert (run(interpreter, source, np.zeros(16, np.int32))[12:].view(np.uint8) == 0xA5).all()


def test_masked_off_lanes_without_other_are_poison_and_never_out_of_bounds(interpreter: Worker) -> None:
    source = module("i = tl.arange(0, BLOCK)\ntl.store(out + i, tl.load(x + i, mask=i < n))")
    result = run(interpreter, source, np.arange(13, dtype=np.float32), size=16)
    np.testing.assert_array_equal(result, [*range(13), np.nan, np.nan, np.nan])
    filled = source.replace("i < n", "i < n, other=7.0")
    np.testing.assert_array_equal(run(interpreter, filled, np.arange(13, dtype=np.float32), size=16)[13:], [7, 7, 7])


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        (
            "i = tl.arange(0, BLOCK)\na = tl.load(x + i)\ntl.store(out + i, a, mask=i < n)",
            9,
            "load of element 13 of 'x'",
        ),
        ("i = tl.arange(0, BLOCK)\na = tl.load(x + i - 1, mask=i < n)", 9, "load of element -1 of 'x'"),
        ("i = tl.arange(0, BLOCK)\ntl.store(out + i + 1, 0.0, mask=i < n)", 9, "store of element 13 of 'out'"),
        ("tl.store(out + (1 << 20), 0.0)", 8, "store of element 1048576 of 'out'"),
        ("tl.atomic_add(out + n, 1.0)", 8, "atomic of element 13 of 'out'"),
        ("tl.atomic_max(out + tl.arange(0, BLOCK), 1.0)", 8, "3 of 16 lanes out of bounds, the first is lane 13"),
    ],
)
def test_an_access_out_of_bounds_is_reported_with_its_line(
    interpreter: Worker, body: str, line: int, message: str
) -> None:
    with pytest.raises(WorkerError) as caught:
        run(interpreter, module(body), np.zeros(13, np.float32))
    assert caught.value.kind == "ToolchainError"
    assert caught.value.message.startswith(f"line {line}: OutOfBounds: ")
    assert message in caught.value.message


def test_an_access_outside_a_view_is_out_of_bounds_though_its_storage_goes_on(interpreter: Worker) -> None:
    source = module("tl.store(out, tl.load(x + n))").replace("kernel[(grid,)](x,", "x = x[:4]\n    kernel[(grid,)](x,")
    with pytest.raises(WorkerError, match="load of element 4 of 'x', which spans 4 elements"):
        run(interpreter, source, np.zeros(13, np.float32))


def test_atomics_reach_the_tensor(interpreter: Worker) -> None:
    source = module("tl.atomic_add(out + tl.program_id(0) % 2, tl.load(x + tl.program_id(0)))")
    source = source.replace("torch.empty(", "torch.zeros(")
    assert run(interpreter, source, np.arange(5, dtype=np.float32), size=2, grid=5).tolist() == [6, 4]


def test_helpers_and_wrappers_that_fail_are_reported_with_their_line(interpreter: Worker) -> None:
    helper = "@triton.jit\ndef past(p):\n    return tl.load(p + 100)\n\n\n@triton.jit\ndef kernel"
    source = module("tl.store(out, past(x))").replace("@triton.jit\ndef kernel", helper)
    with pytest.raises(WorkerError, match=r"^line 8: OutOfBounds: load of element 100"):
        run(interpreter, source, np.zeros(4, np.float32))
    with pytest.raises(WorkerError, match=r"^line 12: AttributeError"):
        run(interpreter, module("pass"), np.zeros(4, np.float32), dtype="no_such")


ADD = """import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i * stride, mask=i < n)
    b = tl.load(y + i * stride, mask=i < n)
    tl.store(out + i * stride, a + b, mask=i < n)
"""
POINTERS = ("x", "y", "out")


def compiled(compiler: Worker, arch: str, source: str = ADD, hint: str = "", **changes: Any) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "source": source,
        "kernel": "add",
        "signature": {
            **dict.fromkeys(POINTERS, f"*bf16{hint}"),
            "n": f"i32{hint}",
            "stride": "i32:1" if hint else "i32",
        },
        "constexprs": {"BLOCK": 1024},
        "arch": arch,
        "options": {"num_warps": 4, "num_stages": 2},
    }
    return compiler.call(f"{MODULE}:compile", {**payload, **changes}).values


def check_figures(figures: dict[str, Any], binary: str) -> None:
    assert figures["artefacts"][binary] > 1000
    assert figures["shared_bytes"] == 0
    assert 0 < figures["registers"] <= 255
    assert figures["spills"] == 0


@pytest.mark.parametrize("arch", ["cuda:80", "cuda:90", "cuda:100"])
def test_a_kernel_compiles_to_ptx_and_cubin(compiler: Worker, arch: str) -> None:
    figures = compiled(compiler, arch)
    check_figures(figures, "cubin")
    assert figures["artefacts"]["ptx"] > 1000
    # Two loads and a store an element, 8 elements a thread; and some addresses and comparisons.
    assert 24 < figures["ptx_instructions"] < 500


@pytest.mark.parametrize("arch", ["hip:gfx942", "hip:gfx950"])
def test_a_kernel_compiles_to_hsaco(compiler: Worker, arch: str) -> None:
    figures = compiled(compiler, arch)
    check_figures(figures, "hsaco")
    assert "ptx_instructions" not in figures


@pytest.mark.parametrize("arch", ["cuda:90", "hip:gfx942"])
def test_hints_of_alignment_and_unit_stride_vectorise(compiler: Worker, arch: str) -> None:
    plain, hinted = compiled(compiler, arch), compiled(compiler, arch, hint=":16")
    stage = "ptx" if arch.startswith("cuda") else "amdgcn"
    assert hinted["artefacts"][stage] < 0.8 * plain["artefacts"][stage]


def test_a_compiler_error_names_the_line_of_the_emitted_source(compiler: Worker) -> None:
    with pytest.raises(WorkerError, match=r"^line 9: (.|\n)*no_such_thing") as caught:
        compiled(compiler, "cuda:90", ADD.replace("tl.load(y", "tl.no_such_thing(y"))
    assert caught.value.kind == "ToolchainError"
    with pytest.raises(WorkerError, match=r"^line 8: SyntaxError"):
        compiled(compiler, "cuda:90", ADD.replace("a = tl", "a = = tl"))


def test_the_assembler_s_own_message_is_passed_on(compiler: Worker) -> None:
    assembly = 'tl.inline_asm_elementwise("no.such.op $0, $1;", "=h,h", [a + b], tl.bfloat16, True, 1)'
    with pytest.raises(WorkerError, match=r"PTXASError(.|\n)*Unknown modifier '.such'"):
        compiled(compiler, "cuda:90", ADD.replace("a + b", assembly))


def test_what_does_not_fit_the_kernel_is_refused(compiler: Worker) -> None:
    with pytest.raises(WorkerError, match="differ in the parameters step, stride"):
        signature = {**dict.fromkeys(POINTERS, "*bf16"), "n": "i32", "step": "i32"}
        compiled(compiler, "cuda:90", signature=signature)
    with pytest.raises(WorkerError, match="unknown option num_stage for cuda"):
        compiled(compiler, "cuda:90", options={"num_stage": 2})
    with pytest.raises(WorkerError, match="unknown arch 'cuda:70'"):
        compiled(compiler, "cuda:70")


def test_a_worker_of_the_wrong_kind_says_so(compiler: Worker, interpreter: Worker) -> None:
    with pytest.raises(WorkerError, match="without TRITON_INTERPRET"):
        compiled(interpreter, "cuda:90")
    with pytest.raises(WorkerError, match="with TRITON_INTERPRET=1"):
        run(compiler, module("pass"), np.zeros(4, np.float32))


def test_probe_finds_what_the_other_tests_used(compiler: Worker) -> None:
    found = compiler.call(f"{MODULE}:probe", {}).values
    assert found["versions"]["triton"].startswith("3.")
    assert found["archs"]["cuda:90"].startswith("ptxas ")
    assert found["archs"]["hip:gfx942"] == "lld"
