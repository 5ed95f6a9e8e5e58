"""TTIR text of `@triton.jit` functions, made by Triton's own front end and its TTIR passes. No GPU is needed.

Helpers come out inlined and constexprs folded; names and lines of the author's source are in the text's locations.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from kdsl.diagnostics import Location, fail

Example = tuple[Mapping[str, str], Mapping[str, Any]]  # a signature and constexprs, as `ttir_of` takes them
NOTHING: Mapping[str, Any] = MappingProxyType({})
WARP_SIZES = {"cuda": 32, "hip": 64}  # threads; 64 on every gfx9 part


def ttir_of(
    function: Any,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any] = NOTHING,
    target: str = "cuda:90",
    options: Mapping[str, Any] = NOTHING,
) -> str:
    """The TTIR text of a `@triton.jit` function.

    `signature` {parameter: type} is in Triton's notation ("*fp32", "i32", "fp32", "tensordesc<fp16[16, 64]>"; a suffix
    ":16" says that the address or value is a multiple of 16, ":1" that the value is 1: what a launch specialises on).
    `constexprs` {parameter: value}. Each parameter is in one of the two, or has a default. `target` is such as
    "cuda:90" or "hip:gfx942". `options` are Triton's: `debug` keeps assertions.

    Raises KdslError K0912 for what Triton's front end does not take.
    """
    import triton
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget, Language
    from triton.compiler import ASTSource, make_backend

    name = getattr(function, "__name__", function)
    kind, _, chip = target.partition(":")
    if kind not in WARP_SIZES or not chip:
        raise fail("K0912", None, name=name, problem=f"there is no target {target!r}; cuda:90 is one")
    backend = make_backend(GPUTarget(kind, int(chip) if chip.isdigit() else chip, WARP_SIZES[kind]))
    if not isinstance(function, triton.JITFunction):
        raise fail("K0912", None, name=name, problem="it is no @triton.jit function (was TRITON_INTERPRET set?)")
    place = Location(function.fn.__code__.co_filename, function.fn.__code__.co_firstlineno)
    source = ASTSource(function, *_specialised(function, signature, constexprs, place))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    settings = backend.parse_options({**options, **source.parse_options()})
    helpers = backend.get_codegen_implementation(settings), backend.get_module_map()
    try:
        module = source.make_ir(backend.target, settings, *helpers, context)
        stages: dict[str, Any] = {}
        backend.add_stages(stages, settings, Language.TRITON)
        return str(stages["ttir"](module, {}))
    except Exception as error:  # whatever Triton's front end raises is about the user's kernel
        cause = error
        while cause.__cause__ is not None and isinstance(cause.__cause__, Exception):
            cause = cause.__cause__
        raise fail("K0912", place, name=function.__name__, problem=f"{type(cause).__name__}: {cause}") from error


def ttir_of_file(path: Path, examples: Mapping[str, Example], target: str = "cuda:90") -> dict[str, str]:
    """The TTIR text of each kernel of a Python file that `examples` names. The file is run, as an import would."""
    with loaded(path) as module:
        return {name: ttir_of(getattr(module, name), *example, target) for name, example in examples.items()}


@contextlib.contextmanager
def loaded(path: Path) -> Iterator[ModuleType]:
    """A Python file as a module, known to Python by a name of its own for as long as the context lasts."""
    name = f"kdsl_captured_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]


def _specialised(
    function: Any, signature: Mapping[str, str], constexprs: Mapping[str, Any], place: Location
) -> tuple[dict[str, str], dict[tuple[int], Any], dict[tuple[int], list[list[Any]]]]:
    """Signature, constants and attributes, as Triton's launcher would give them for such arguments."""
    kinds: dict[str, str] = {}
    constants: dict[tuple[int], Any] = {}
    attributes: dict[tuple[int], list[list[Any]]] = {}
    if unknown := sorted({*signature, *constexprs} - set(function.arg_names)):
        raise fail("K0912", place, name=function.__name__, problem=f"it has no parameter {', '.join(unknown)}")
    for index, parameter in enumerate(function.params):
        name = parameter.name
        kind, _, hint = signature.get(name, "constexpr").partition(":")
        if name in constexprs:
            constants[(index,)] = constexprs[name]
        elif hint == "1":
            constants[(index,)] = 1
        elif name not in signature:
            if not parameter.has_default:
                raise fail("K0912", place, name=function.__name__, problem=f"its parameter {name} is not given")
            constants[(index,)] = parameter.default
        elif hint == "16":
            attributes[(index,)] = [["tt.divisibility", 16]]
        kinds[name] = "constexpr" if (index,) in constants else kind
    return kinds, constants, attributes
