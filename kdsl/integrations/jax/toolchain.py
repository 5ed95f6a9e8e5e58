"""What a worker process runs with JAX: emitted sources on x86, TPU compilation with no TPU, StableHLO.

Every function takes (payload, arrays) and returns (values, arrays): plain JSON values and NumPy arrays by name.
A payload that names an emitted function has

    source      text of a module that stands alone
    function    the name of a function in it
    arguments   its positional arguments, in order:
                {"name", "kind": "array", "shape", "dtype"}   dtype as NumPy and ml_dtypes name it, such as "bfloat16";
                                                              `run` reads shape and dtype off the array `name` itself
                {"kind": "scalar", "value"}                   a Python number, a constant of the compiled program
    keywords    its keyword arguments (optional): sizes, tiles, interpret

Results of a function are the arrays "0", "1", ... in order. Errors are `emitted.ToolchainError`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import metadata
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (gives NumPy the name "bfloat16" and its like)
import numpy as np

from kdsl.integrations.jax import emitted, private

Payload = dict[str, Any]
Arrays = dict[str, np.ndarray]
Returned = tuple[dict[str, Any], Arrays]

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",  # TPUs are compiled for, never opened
    "TPU_SKIP_MDS_QUERY": "1",  # no metadata server to ask
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # else a second worker dies on libtpu's lock file
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",  # any topology will do; these two only silence warnings
    "TPU_WORKER_HOSTNAMES": "localhost",
}
"""Environment variables a worker needs before it imports jax."""

TOPOLOGIES = {"v5e": "v5e:2x2", "v6e": "v6e:2x2", "v7x": "tpu7x:2x2x1"}
"""libtpu's name of the smallest machine of each generation."""


def run(payload: Payload, arrays: Arrays) -> Returned:
    """Run an emitted function on the CPU.

    Values: {"x64": whether 64-bit types were enabled, which is only so when an argument has one}.
    """
    import jax

    x64 = any(_is_64_bit(array.dtype) for array in arrays.values())
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu), jax.enable_x64(x64), _blame(payload):
        arguments = [
            argument["value"] if argument["kind"] == "scalar" else jax.device_put(arrays[argument["name"]], cpu)
            for argument in payload["arguments"]
        ]
        results = _function(payload)(*arguments, **payload.get("keywords", {}))
        return {"x64": x64}, _numbered([np.asarray(result) for result in jax.tree.leaves(results)])


def compile_tpu(payload: Payload, arrays: Arrays) -> Returned:
    """Compile an emitted function for the TPU generation payload["arch"] (v5e, v6e, v7x); no TPU is needed.

    Values: hlo_bytes (the compiled program as text), custom_calls (how many Pallas kernels are in it),
    memory (bytes, by kind; VMEM is not among them) and, where XLA knows, flops and bytes (accessed).
    """
    import jax
    from jax.sharding import Mesh, SingleDeviceSharding

    wide = [spec["name"] for spec in payload["arguments"] if spec["kind"] == "array" and _is_64_bit(spec["dtype"])]
    if wide:
        raise emitted.ToolchainError(f"TPUs have no 64-bit types: {', '.join(wide)}")
    device = _tpu(payload["arch"])
    # With no mesh, lowering asks the default device (the CPU) which TPU it is, and some operations then fail.
    with jax.sharding.set_mesh(Mesh(np.array([device]), ("x",))), _blame(payload):
        traced, specs = _traceable(payload, SingleDeviceSharding(device))
        compiled = jax.jit(traced).lower(*specs).compile()
    text = compiled.as_text()
    costs = compiled.cost_analysis() or {}
    memory = compiled.memory_analysis()
    values: dict[str, Any] = {
        "hlo_bytes": len(text),
        "custom_calls": text.count('custom_call_target="tpu_custom_call"'),
        "memory": {
            kind: getattr(memory, f"{kind}_size_in_bytes") for kind in ("generated_code", "argument", "output", "temp")
        },
    }
    values |= {name: costs[key] for name, key in (("flops", "flops"), ("bytes", "bytes accessed")) if key in costs}
    return values, {}


def export_stablehlo(payload: Payload, arrays: Arrays) -> Returned:
    """Export an emitted function as a StableHLO module for the CPU; the module is parsed back and verified.

    payload["x64"] (optional) enables 64-bit types even where no argument has one.

    Values: text; bytes (the portable artefact's size); x64; platforms (["cpu"], or ["cpu", "tpu"] where one module
    lowers for both) and, if it does not, tpu_error. `text` is always the module for the CPU alone, whose @main takes
    the array arguments in order and nothing else.
    """
    import jax
    from jax import export

    wide = any(_is_64_bit(spec["dtype"]) for spec in payload["arguments"] if spec["kind"] == "array")
    x64 = wide or bool(payload.get("x64"))  # a function may compute in 64 bits without taking any
    with jax.enable_x64(x64), _blame(payload):
        traced, specs = _traceable(payload)
        jitted = jax.jit(traced, keep_unused=True)  # else @main would lack arguments that no result depends on
        exported = export.export(jitted, platforms=("cpu",))(*specs)
        text = exported.mlir_module()
        private.verify_stablehlo(text)
        values: dict[str, Any] = {"text": text, "bytes": len(exported.mlir_module_serialized), "x64": x64}
        try:
            with _blame(payload):
                values["platforms"] = list(export.export(jitted, platforms=("cpu", "tpu"))(*specs).platforms)
        except emitted.ToolchainError as error:
            values |= {"platforms": ["cpu"], "tpu_error": str(error)}
    return values, {}


def run_stablehlo(payload: Payload, arrays: Arrays) -> Returned:
    """Run the StableHLO module payload["text"] on the CPU; its @main takes the arrays payload["names"], in order."""
    import jax

    x64 = any(_is_64_bit(array.dtype) for array in arrays.values())
    with jax.enable_x64(x64), emitted.blame():
        results = private.run_stablehlo(payload["text"], [arrays[name] for name in payload["names"]])
    return {"x64": x64}, _numbered(results)


def probe(payload: Payload, arrays: Arrays) -> Returned:
    """Say what this environment has.

    Values: versions of jax, jaxlib and libtpu (None if absent), archs (TPU generations that a one-line program
    was just compiled for) and missing ({arch: why not}).
    """
    source = "def negate(x):\n    return -x\n"
    argument = {"name": "x", "kind": "array", "shape": [8, 128], "dtype": "float32"}
    archs, missing = [], {}
    for arch in TOPOLOGIES:
        try:
            compile_tpu({"source": source, "function": "negate", "arguments": [argument], "arch": arch}, {})
            archs.append(arch)
        except (emitted.ToolchainError, ImportError) as error:
            missing[arch] = str(error)
    versions = {package: _version(package) for package in ("jax", "jaxlib", "libtpu")}
    return {"versions": versions, "archs": archs, "missing": missing}, {}


@functools.cache
def _tpu(arch: str) -> Any:
    """One device of a machine that need not exist; raises ToolchainError if libtpu is absent or lacks `arch`."""
    from jax.experimental import topologies

    if arch not in TOPOLOGIES:
        raise emitted.ToolchainError(f"no TPU generation {arch!r}; known: {', '.join(TOPOLOGIES)}")
    with emitted.blame():
        return topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[arch]).devices[0]


def _function(payload: Payload) -> Callable[..., Any]:
    module = emitted.load(payload["source"])
    function: Callable[..., Any] = getattr(module, payload["function"])
    return function


def _traceable(payload: Payload, sharding: Any = None) -> tuple[Callable[..., Any], list[Any]]:
    """The function of its array arguments alone, and their shapes and dtypes."""
    import jax

    arguments, keywords, function = payload["arguments"], payload.get("keywords", {}), _function(payload)

    def traced(*given: Any) -> Any:
        remaining = iter(given)
        values = [argument["value"] if argument["kind"] == "scalar" else next(remaining) for argument in arguments]
        return function(*values, **keywords)

    traced.__name__ = re.sub(r"\W", "_", payload["function"])  # XLA names the program by it
    specs = [
        jax.ShapeDtypeStruct(tuple(argument["shape"]), np.dtype(argument["dtype"]), sharding=sharding)
        for argument in arguments
        if argument["kind"] == "array"
    ]
    return traced, specs


def _blame(payload: Payload) -> AbstractContextManager[None]:
    return emitted.blame(Path(str(emitted.load(payload["source"]).__file__)))


def _numbered(results: list[np.ndarray]) -> Arrays:
    return {str(i): result for i, result in enumerate(results)}


def _is_64_bit(dtype: np.dtype | str) -> bool:
    return np.dtype(dtype).itemsize == 8 and np.dtype(dtype).kind in "iuf"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
