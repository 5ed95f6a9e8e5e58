"""Calls that JAX does not promise to keep. Tried with jax and jaxlib 0.10.2; the tests fail first if they move."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


def verify_stablehlo(text: str) -> None:
    """Parse a StableHLO module and run MLIR's verifier on it.

    Raises jaxlib.mlir.ir.MLIRError, with line and column of `text`, or ValueError where the verifier only says no.
    """
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        if not module.operation.verify():
            raise ValueError("the StableHLO module does not verify")


def run_stablehlo(text: str, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """Compile a StableHLO module's public @main with XLA for this CPU, run it and return its results.

    64-bit arguments need 64-bit types enabled by the caller: device_put would narrow them.
    """
    import jax

    device: Any = jax.devices("cpu")[0]
    results = _executable(text).execute_sharded([jax.device_put(argument, device) for argument in arguments])
    return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


@functools.lru_cache(maxsize=32)
def _executable(text: str) -> Any:
    """A module compiled for this CPU, once: it is run on many inputs."""
    import jax
    from jax._src.lib import xla_client

    device: Any = jax.devices("cpu")[0]
    return device.client.compile_and_load(text, xla_client.DeviceList((device,)), xla_client.CompileOptions())
