"""The oracle's speed: how many times faster it is than Triton's interpreter on the same algorithm, sizes and tiles.

    python -m bench.oracle [--json FILE] [--rounds N] [--small]

Aim: at least 30 in each case, and 50 in the geometric mean. Also shown: how many times as long as NumPy code that a
person vectorised by hand; aim: 6 at most. All results are compared before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import kdsl
from bench.harness import ROOT, Row, best_of, options, report
from kdsl.interpreter import mode_of, run
from kdsl.ir.kernel import Kernel, bind
from kdsl.kernels.attention import attention
from kdsl.kernels.layernorm import layernorm
from kdsl.kernels.matmul import matmul
from kdsl.kernels.softmax import softmax
from kdsl.lang.kernel import Example
from kdsl.runtime.examples import bind_example
from kdsl.runtime.worker import Worker

Array = np.ndarray[Any, np.dtype[Any]]
ROUNDS = 5


@dataclass(frozen=True)
class Case:
    """A kernel at given sizes; the rival is the function of the kernel's name under bench/rivals/triton."""

    name: str
    kernel: Any
    values: Mapping[str, Any]
    tiles: Mapping[str, int]
    vectorised: Callable[..., Array]
    scalars: Mapping[str, float] = field(default_factory=dict)


def main() -> None:
    given = options(__doc__.split("\n")[0], ROUNDS)
    environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    triton = Worker("triton interpreter", environment)
    rows, also = [], []
    for case in cases(small=given.small):
        ours, interpreted, vectorised = measure(case, triton, given.rounds)
        speed_up = Row(case.name, "x86", ours, interpreted, "Triton's interpreter", "ms", interpreted / ours)
        rows.append(speed_up)
        also.append(Row(case.name, "x86", ours, vectorised, "NumPy, by hand", "ms", ours / vectorised))
    triton.close()
    report("the oracle", rows, also, ratio="speed-up", also_ratio="times as long", worst=min, json_file=given.json)


def cases(small: bool) -> list[Case]:
    def size(full: int) -> int:
        return full // 8 if small else full

    rows, columns = size(512), size(781)
    side, hidden, length = size(512), size(1024), size(1024)
    return [
        Case(f"softmax {rows}x{columns}", softmax, {"M": rows, "N": columns}, {"BM": 1}, vectorised_softmax),
        Case(
            f"matmul {side}^3, 64x64x32",
            matmul,
            {"M": side, "N": side, "K": side, "activation": "none"},
            {"BM": 64, "BN": 64, "BK": 32},
            vectorised_matmul,
        ),
        Case(
            f"causal attention H=4 L={length} D=64, 64x64",
            attention,
            {"B": 1, "H": 4, "L": length, "S": length, "D": 64, "causal": True},
            {"BL": 64, "BS": 64},
            vectorised_attention,
            {"scale": 0.125},
        ),
        Case(
            f"layernorm {hidden}x{hidden}",
            layernorm,
            {"M": hidden, "N": hidden},
            {"BM": 1},
            vectorised_layernorm,
            {"epsilon": 1e-5},
        ),
    ]


def measure(case: Case, triton: Worker, rounds: int) -> tuple[float, float, float]:
    """Milliseconds of the oracle, of Triton's interpreter and of NumPy, once their results agree."""
    example = bind_example(case.kernel, Example({**case.values, **case.scalars, "T": kdsl.f32}))
    kernel = bind(example.kernel, example.sizes, case.tiles)
    if mode_of(kernel) != "batched":
        raise RuntimeError(f"{case.name} would not be evaluated in batches")
    arrays = inputs(kernel)
    rival = {"function": case.kernel.name, "keywords": {**case.tiles, **case.scalars}}

    def ours() -> None:
        run(kernel, {**arrays, **case.scalars})

    def interpreted() -> float:
        reply = triton.call("bench.rivals.triton.interpreted:timed", rival, arrays, timeout=600)
        return float(reply.values["seconds"])

    def vectorised() -> None:
        case.vectorised(**arrays, **case.scalars)

    (expected,) = run(kernel, {**arrays, **case.scalars}).values()
    reply = triton.call("bench.rivals.triton.interpreted:timed", rival, arrays, timeout=600)
    for other in (reply.arrays["result"], case.vectorised(**arrays, **case.scalars)):
        np.testing.assert_allclose(other, expected, rtol=1e-3, atol=1e-4, err_msg=case.name)
    best = best_of(rounds, {"ours": ours, "interpreted": interpreted, "vectorised": vectorised})
    return 1e3 * best["ours"], 1e3 * best["interpreted"], 1e3 * best["vectorised"]


def inputs(kernel: Kernel) -> dict[str, Array]:
    """Normal numbers for every input tensor."""
    rng = np.random.default_rng(0)
    return {
        buffer.name: rng.normal(size=[size.constant or 0 for size in buffer.shape]).astype(np.float32)
        for buffer in kernel.buffers
        if buffer.role == "in"
    }


# -- the same by hand in NumPy -------------------------------------------------------------------------------------


def vectorised_softmax(x: Array) -> Array:
    numerator = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(numerator / numerator.sum(axis=1, keepdims=True))


def vectorised_matmul(a: Array, b: Array, bias: Array) -> Array:
    return np.asarray(a @ b + bias)


def vectorised_attention(q: Array, k: Array, v: Array, scale: float) -> Array:
    scores = q @ k.swapaxes(2, 3) * np.float32(scale)
    scores = np.where(np.tri(q.shape[2], k.shape[2], dtype=bool), scores, np.float32(-np.inf))
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    return np.asarray(weights @ v / weights.sum(axis=3, keepdims=True))


def vectorised_layernorm(x: Array, weight: Array, bias: Array, epsilon: float) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + np.float32(epsilon)) * weight + bias)


if __name__ == "__main__":
    main()
