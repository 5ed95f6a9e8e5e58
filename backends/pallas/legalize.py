"""What Mosaic can compute on: kernels with explicit edges, in the dtypes and ops that TPUs have; all else is refused.

Measured with libtpu 0.0.52 for v5e, v6e and v7x: no float16, no 64-bit types, no arithmetic on 8-bit integers.
"""

from __future__ import annotations

from kdsl.diagnostics import fail
from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Kernel, Op, Scalar, walk
from kdsl.passes import run_passes

from .access import TARGET

PASSES = ("explicit_edges", "fold", "cse", "dce")
# 8- and 16-bit integers may be moved and converted; all else is done in 32 bits.
MOVES = {"load", "store", "cast", "constant", "broadcast", "reshape", "select"}


def legalize(kernel: Kernel) -> Kernel:
    """The kernel with explicit edges. Raises KdslError: K0302 a dtype, K0301 an operation that TPUs lack."""
    kernel = run_passes(kernel, PASSES)
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
    return dtype.bits == 64 or dtype.name == "f16"


def _check(op: Op) -> None:
    dtypes = {value.dtype for value in (*op.operands, *op.results)}
    for dtype in dtypes:
        if _is_absent(dtype):
            raise _no_dtype(op, dtype, "arithmetic")
        if (
            dtype.is_integer
            and dtype.bits < 32
            and op.name not in MOVES
            and not (op.name == "dot" and dtype.name == "i8")
        ):
            raise _no_dtype(op, dtype, f"{op.name}: it moves and converts them, no more")
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
