"""What Mosaic can compute on: kernels with explicit edges, in the dtypes and ops that TPUs have; all else is refused.

Measured with libtpu 0.0.52 for v5e, v6e and v7x: no float16, no 64-bit types, no arithmetic on 8-bit integers; 8-bit
floats e4m3fn and e5m2 are moved, cast and multiplied, e4m3fnuz is not known, and 4-bit floats only on v7x.
"""

from __future__ import annotations

from kdsl.diagnostics import fail
from kdsl.ir.dtypes import BOOL, DType
from kdsl.ir.kernel import Kernel, Op, Scalar, walk
from kdsl.passes import run_passes

from .access import TARGET, refuse
from .branches import flatten_branches
from .layout import taken_along

PASSES = ("explicit_edges", "fold", "cse", "dce")
# 8- and 16-bit integers may be moved and converted; all else is done in 32 bits.
MOVES = {"load", "store", "cast", "constant", "broadcast", "reshape", "select", "concat", "relabel", "bitcast", "yield"}
# What moves lanes, which Mosaic does to no booleans.
LANES = {"scan", "sort", "topk", "gather", "flip", "concat", "join", "split"}
# What small floats may be in besides moves.
PRODUCTS = {"dot", "dot_scaled"}

_ROUNDED = "its functions are not rounded correctly, and it has no wider type to do it in"
_HOST = "print or check on the oracle (target numpy), or store the values to an output"
_PLACES = "a TPU's blocks are fetched whole, at places known before a step, and Mosaic has no gather or scatter"
_DENSE = "index with tiles, or use the cpu target"

REFUSED: dict[str, tuple[str, str, str]] = {
    "fma": ("K0301", _ROUNDED, "write x * y + z, which is rounded twice"),
    "precise_div": ("K0301", _ROUNDED, "divide with /"),
    "precise_sqrt": ("K0301", _ROUNDED, "use sqrt"),
    "fmod": ("K0301", "its remainder of floats is x - y * trunc(x / y), not exact", "write that, if it will do"),
    "assert": ("K0301", "a kernel cannot stop its host", _HOST),
    "print": ("K0301", "what a kernel prints stays on the device", _HOST),
    "load_at": ("K0308", _PLACES, _DENSE),
    "store_at": ("K0308", _PLACES, _DENSE),
    "atomic": ("K0308", f"{_PLACES}, nor atomics", "give each program an output of its own, and combine those after"),
    "atomic_cas": ("K0308", f"{_PLACES}, nor atomics", "give each program an output of its own"),
    "let": (
        "K0308",
        "the steps of a grid are counted before it starts",
        "loop to the dimension's end, and mask by `where`",
    ),
}
"""Ops that have no form here: the code, why, and what to do instead."""


def legalize(kernel: Kernel) -> Kernel:
    """The kernel with explicit edges. Raises KdslError: K0302 a dtype, K0301 an operation that TPUs lack."""
    kernel = run_passes(kernel, ["drop_breakpoints"])
    for op in walk(kernel.body):
        _check_op(kernel, op)
    kernel = run_passes(flatten_branches(kernel), PASSES)
    for parameter in kernel.parameters:
        if isinstance(parameter, Scalar):
            if parameter.dtype.name not in ("f32", "i32"):
                raise _no_dtype(None, parameter.dtype, f"scalars ({parameter.name})", kernel)
        elif _is_absent(parameter.dtype):
            raise _no_dtype(None, parameter.dtype, f"tensors ({parameter.name})", kernel)
    for op in walk(kernel.body):
        _check(op)
    return kernel


def _is_absent(dtype: DType) -> bool:
    return dtype.bits == 64 or dtype.name in ("f16", "f8e4m3fnuz", "f4e2m1")


def _check_op(kernel: Kernel, op: Op) -> None:
    if op.name in REFUSED:
        code, problem, instead = REFUSED[op.name]
        raise fail(code, op.location, target=TARGET, problem=f"{op.name}: {problem}", instead=instead)
    if op.name == "cast" and op.attributes:
        problem = f"a cast with {', '.join(op.attributes)}: it rounds to nearest, and overflows as the dtype does"
        instead = "cast without it, after a clamp"
        raise fail("K0301", op.location, target=TARGET, problem=problem, instead=instead)
    if op.name == "gather" and len(taken_along(kernel, op)) > 1:
        raise refuse(op, "a gather by an index with two axes of its own", "let the grid or a loop run over one of them")
    if op.name == "histogram" and len(kernel.tile_axes(op.operands[0])) > 1:
        raise refuse(op, "a histogram of a tile with two dimensions", "let the grid or a loop run over the other one")
    if op.name == "while":
        for inner in (inner for region in op.regions for inner in walk(region)):
            if inner.name in ("for", "store"):
                problem = f"a {inner.name} in a while loop: only what is carried changes from one round to the next"
                raise refuse(inner, problem, "carry the values, and store them after the loop")
        for value in op.regions[0].arguments:
            if value.dtype.bits < 32 and value.dtype.name not in ("bf16", "bool"):
                raise refuse(op, f"the loop carries {value}, of {value.dtype}", "carry i32 or f32")


def _check(op: Op) -> None:
    dtypes = {value.dtype for value in (*op.operands, *op.results)}
    for dtype in dtypes:
        if _is_absent(dtype):
            raise _no_dtype(op, dtype, "arithmetic")
        if (
            dtype.is_integer
            and dtype.bits < 32
            and op.name not in MOVES
            and not (op.name == "dot" and dtype.name in ("i8", "i4"))
            and not (op.name == "dot_scaled" and dtype.name == "u8")
        ):
            raise _no_dtype(op, dtype, f"{op.name}: it moves and converts them, no more")
        if dtype.is_float and dtype.is_storage and op.name not in MOVES | PRODUCTS:
            raise _no_dtype(op, dtype, f"{op.name}: it moves, converts and multiplies them, no more")
    if op.name in LANES and BOOL in dtypes:
        raise _no_dtype(op, BOOL, f"{op.name}: it moves no booleans")
    if op.name == "bitcast" and {value.dtype.bits for value in op.operands} != {32}:
        raise _no_dtype(op, op.operands[0].dtype, "bitcast: it reinterprets 32-bit types")
    if op.name == "topk" and op.operands[0].dtype.name == "u32":
        raise _no_dtype(op, op.operands[0].dtype, "topk")
    if op.name == "reduce":
        (source,), combine = op.operands, op.attributes["combine"]
        if combine == "mul" or (combine in ("and", "or") and source.dtype.is_integer):
            raise fail(
                "K0301",
                op.location,
                target=TARGET,
                problem=f"a reduction by {combine} of {source.dtype}",
                instead="reduce booleans, or sum logarithms",
            )
        if source.dtype.name == "u32":
            raise _no_dtype(op, source.dtype, "reductions")
    if op.name == "dot" and op.operands[0].dtype.name == "i32":
        raise _no_dtype(op, op.operands[0].dtype, "dot")


def _no_dtype(op: Op | None, dtype: DType, what: str, kernel: Kernel | None = None) -> Exception:
    place = op.location if op is not None else kernel.location if kernel is not None else None
    return fail("K0302", place, target=TARGET, dtype=dtype, what=what)
