"""Triton's compiler and interpreter, called inside a worker process: `compile`, `run` and `probe`.

Each takes `(payload, arrays)` and returns `(payload, arrays)`. `compile` and `run` exclude each other in one process,
because Triton reads TRITON_INTERPRET once, when it is imported: `run` needs it set to 1, `compile` needs it unset.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .tensors import poisoned_allocations, to_numpy, to_torch

Arrays = dict[str, np.ndarray[Any, Any]]
Payload = dict[str, Any]

# Threads of a warp: 32 on every NVIDIA part, 64 on gfx9 (AMD Instinct MI300 and MI350, CDNA 3 and 4).
ARCHS = {"cuda:80": 32, "cuda:90": 32, "cuda:100": 32, "hip:gfx942": 64, "hip:gfx950": 64}
ALIGNED = [["tt.divisibility", 16]]
# What a launch adds on hip for a tensor of at most 2 GiB: offsets fit 32 bits, so buffer instructions can be used.
SMALL = [["tt.pointer_range", 32]]


class ToolchainError(Exception):
    """The compiler or interpreter refused the source. `line` is 1-based in the emitted source, None if not known.

    The text starts with "line N: " where the line is known, as the text is all that crosses a process boundary.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


def compile(payload: Payload, arrays: Arrays) -> tuple[Payload, Arrays]:
    """Compile one kernel of an emitted module with Triton's compiler; no GPU is needed.

    payload: `source` (text of the module), `kernel` (name of its @triton.jit function), `arch` (a key of ARCHS),
    `signature` {parameter: type} in Triton's notation ("*bf16", "i32", "fp32"; a suffix ":16" says that the address or
    value is a multiple of 16, ":1" that the value is 1: a launch specialises on both), `constexprs` {parameter: value},
    `options` {"num_warps": 4, ...}. Parameters are matched by name; each is in `signature` or `constexprs`.

    Returns `artefacts` {stage: bytes} (cuda: ptx, cubin; hip: amdgcn, hsaco; and the stages before), `text` {suffix:
    assembly, such as ".ptx"}, `shared_bytes` a
    program, `registers` a thread (hip: vector registers), `spills` (cuda: bytes of local memory a thread; hip: spilled
    registers), `ptx_instructions` (cuda: in the text, not executed). A figure that the tools did not give is absent.
    Raises ToolchainError with the compiler's message.
    """
    import triton
    import triton.compiler as compiler
    from triton.backends.compiler import GPUTarget

    if triton.knobs.runtime.interpret:
        raise ToolchainError("compile needs a process without TRITON_INTERPRET")
    if payload["arch"] not in ARCHS:
        raise ToolchainError(f"unknown arch {payload['arch']!r}: expected one of {', '.join(ARCHS)}")
    backend, _, chip = payload["arch"].partition(":")
    target = GPUTarget(backend, int(chip) if backend == "cuda" else chip, ARCHS[payload["arch"]])
    options = _checked_options(compiler.make_backend(target), payload.get("options", {}))
    with tempfile.TemporaryDirectory(prefix="kdsl-triton-") as folder, triton.knobs.cache.scope():
        # A cache of its own: nothing is shared with, or left to, any other process.
        triton.knobs.cache.dir = os.path.join(folder, "cache")
        with _loaded(payload["source"], Path(folder)) as module, _collected_stderr() as diagnostics:
            try:
                kernel = getattr(module, payload["kernel"])
                source = compiler.ASTSource(kernel, *_specialised(kernel.arg_names, payload, backend))
                compiled = triton.compile(source, target=target, options=options)
            except ToolchainError:
                raise
            except Exception as error:
                raise _refusal(error, module, payload["source"], diagnostics()) from error
        return _figures(compiled, backend, Path(folder)), {}


def run(payload: Payload, arrays: Arrays) -> tuple[Payload, Arrays]:
    """Run an emitted module's host function on CPU tensors under Triton's interpreter, mended as interpreter.py says.

    payload: `source`, `function` (the host wrapper's name), `arguments` (in order: {"name", "kind": "array"} taken from
    `arrays`, or {"name", "kind": "scalar", "value"}), `keywords` {name: scalar}. The given arrays are not changed. What
    the wrapper allocates without filling holds poison (tensors.py); so do masked-off lanes of loads without `other`.

    Returns `outputs` (how many tensors the wrapper returned) and them as arrays "0", "1", ... Raises ToolchainError for
    anything that went wrong, out-of-bounds accesses included.
    """
    import triton

    if not triton.knobs.runtime.interpret:
        raise ToolchainError("run needs a process with TRITON_INTERPRET=1")
    from . import interpreter  # imports Triton's: only now is it known to be of use

    interpreter.install()
    with (
        tempfile.TemporaryDirectory(prefix="kdsl-triton-") as folder,
        _loaded(payload["source"], Path(folder)) as module,
    ):
        values = [
            to_torch(arrays[argument["name"]]) if argument["kind"] == "array" else argument["value"]
            for argument in payload["arguments"]
        ]
        try:
            # The interpreter evaluates masked-off lanes too; what NumPy has to say about those is no one's concern.
            with poisoned_allocations(), np.errstate(all="ignore"):
                results = getattr(module, payload["function"])(*values, **payload.get("keywords", {}))
        except Exception as error:
            raise _refusal(error, module, payload["source"], "") from error
    outputs = results if isinstance(results, tuple) else (results,)
    return {"outputs": len(outputs)}, {str(index): to_numpy(tensor) for index, tensor in enumerate(outputs)}


def probe(payload: Payload, arrays: Arrays) -> tuple[Payload, Arrays]:
    """What is installed: `versions` {"triton", "torch"} and `archs` {arch: its assembler}; None is absent."""
    versions = {name: _version(name) for name in ("triton", "torch")}
    archs = {arch: _assembler(arch) if versions["triton"] else None for arch in ARCHS}
    return {"versions": versions, "archs": archs}, {}


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _assembler(arch: str) -> str | None:
    """Such as "ptxas 13.0" or "lld": cuda code goes through a bundled ptxas, hip code through Triton's own LLVM."""
    import triton

    backend, _, chip = arch.partition(":")
    if backend == "hip":
        return "lld" if "amd" in triton.backends.backends else None
    if "nvidia" not in triton.backends.backends:
        return None
    from triton.backends.nvidia.compiler import get_ptxas

    try:
        return f"ptxas {get_ptxas(int(chip)).version}"
    except RuntimeError:  # what Triton raises when it cannot find the tool
        return None


@contextlib.contextmanager
def _loaded(source: str, folder: Path) -> Iterator[ModuleType]:
    """The module, from a real file: Triton reads a kernel's source back from its file."""
    name = f"kdsl_emitted_{uuid.uuid4().hex}"
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise _refusal(error, module, source, "") from error
        yield module
    finally:
        del sys.modules[name]


def _checked_options(backend: Any, options: Mapping[str, Any]) -> Payload:
    """`options`, none of which the backend would drop without a word, as Triton does with those it does not know."""
    known = vars(backend.parse_options({}))
    if unknown := sorted(set(options) - set(known)):
        raise ToolchainError(f"unknown option {', '.join(unknown)} for {backend.target.backend}")
    return dict(options)


def _specialised(
    parameters: list[str], payload: Payload, backend: str
) -> tuple[dict[str, str], dict[str, Any], dict[tuple[int], list[list[Any]]]]:
    """Signature, constants and attributes, as Triton's launcher would give them for such arguments."""
    given, constants = payload["signature"], dict(payload["constexprs"])
    if set(given) | set(constants) != set(parameters):
        odd = sorted((set(given) | set(constants)) ^ set(parameters))
        raise ToolchainError(f"signature and kernel {payload['kernel']!r} differ in the parameters {', '.join(odd)}")
    signature: dict[str, str] = {}
    attributes: dict[tuple[int], list[list[Any]]] = {}
    for index, name in enumerate(parameters):
        kind, _, hint = given.get(name, "constexpr").partition(":")
        if hint not in ("", "1", "16"):
            raise ToolchainError(f"parameter {name!r}: the hint after ':' must be 1 or 16, not {hint!r}")
        if hint == "1":
            constants[name] = 1
        if hint == "16":
            attributes[(index,)] = ALIGNED + (SMALL if backend == "hip" and kind.startswith("*") else [])
        signature[name] = "constexpr" if name in constants else kind
    return signature, constants, attributes


@contextlib.contextmanager
def _collected_stderr() -> Iterator[Any]:
    """Collect what native code writes to the process's stderr (MLIR's diagnostics); pass it on at the end."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as collected:

        def text() -> str:
            return os.pread(collected.fileno(), 1 << 20, 0).decode(errors="replace")

        os.dup2(collected.fileno(), 2)
        try:
            yield text
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.write(2, text().encode())
            os.close(saved)


def _refusal(error: BaseException, module: ModuleType, source: str, diagnostics: str) -> ToolchainError:
    """The innermost cause of `error`, with the deepest line of the emitted source that it or its traceback names."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    path = str(module.__file__)
    message = f"{type(chain[-1]).__name__}: {chain[-1]}"
    native = [line for line in diagnostics.splitlines() if "error:" in line]
    lines = [line for link in reversed(chain) if (line := _line_in(link, path, source)) is not None]
    if not lines:
        lines = [int(line) for line in re.findall(re.escape(path) + r'"?:(\d+)', "\n".join([message, *native]))]
    return ToolchainError("\n".join([message, *native]).replace(path, "<emitted>"), lines[0] if lines else None)


def _line_in(error: BaseException, path: str, source: str) -> int | None:
    if isinstance(error, SyntaxError):
        return error.lineno
    # Triton's CompilationError carries the text of one function and a node that counts its lines.
    text, node = getattr(error, "src", None), getattr(error, "node", None)
    if isinstance(text, str) and isinstance(node, ast.AST) and hasattr(node, "lineno") and text in source:
        return source[: source.index(text)].count("\n") + int(node.lineno)
    deepest, traceback = None, error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == path:
            deepest = traceback.tb_lineno
        traceback = traceback.tb_next
    return deepest


def _figures(compiled: Any, backend: str, folder: Path) -> Payload:
    sizes = {stage: len(text) for stage, text in compiled.asm.items() if stage != "source"}
    assembly = {f".{stage}": compiled.asm[stage] for stage in ("ptx", "amdgcn") if stage in compiled.asm}
    figures: Payload = {"artefacts": sizes, "text": assembly, "shared_bytes": int(compiled.metadata.shared)}
    if backend == "cuda":
        # Every instruction of a PTX body ends in ';'; what starts with '.' is a directive.
        instructions = re.findall(r"^\s+(?![./])[^;\n]*;", compiled.asm["ptx"], re.MULTILINE)
        return {**figures, "ptx_instructions": len(instructions), **_cubin_figures(compiled.asm["cubin"], folder)}
    metadata = dict(
        re.findall(r"^\s+\.(vgpr_count|[sv]gpr_spill_count):\s+(\d+)", compiled.asm["amdgcn"], re.MULTILINE)
    )
    if "vgpr_count" in metadata:
        figures["registers"] = int(metadata["vgpr_count"])
    if {"vgpr_spill_count", "sgpr_spill_count"} <= set(metadata):
        figures["spills"] = int(metadata["vgpr_spill_count"]) + int(metadata["sgpr_spill_count"])
    return figures


def _cubin_figures(cubin: bytes, folder: Path) -> Payload:
    """Registers and spilled bytes from the cubin's own resource table, as the bundled cuobjdump prints it."""
    import triton

    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    try:
        command = [triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(path)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (RuntimeError, OSError, subprocess.CalledProcessError):  # no cuobjdump here, or one that cannot read it
        return {}
    usage = dict(re.findall(r"\b(REG|LOCAL):(\d+)", printed))
    names = {"registers": "REG", "spills": "LOCAL"}
    return {name: int(usage[key]) for name, key in names.items() if key in usage}
