"""kdsl: kernels written once in a small tile language, for GPU, TPU and any XLA device, judged by a NumPy oracle."""

from kdsl.lang.dims import Dim, grid
from kdsl.lang.dtypes import DType, bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from kdsl.lang.kernel import Kernel, example, inline, kernel
from kdsl.lang.operations import (
    abs,
    all,
    any,
    argmax,
    argmin,
    axis,
    cast,
    ceil,
    cos,
    dot,
    erf,
    exp,
    exp2,
    floor,
    full,
    log,
    log2,
    max,
    maximum,
    min,
    minimum,
    prod,
    require,
    reshape,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    sum,
    tanh,
    where,
    zeros,
)
from kdsl.lang.tensors import Const, InOut, Out, Scalar, Tensor, Tile
from kdsl.lang.tiles import Index, OutsideKernelError, TileValue

__version__ = "0.1.0"

__all__ = [
    "Const", "DType", "Dim", "InOut", "Index", "Kernel", "Out", "OutsideKernelError", "Scalar", "Tensor", "Tile",
    "TileValue", "abs", "all", "any", "argmax", "argmin", "axis", "bf16", "bool_", "cast", "ceil", "cos", "dot", "erf",
    "example", "exp", "exp2", "f16", "f32", "f64", "floor", "full", "grid", "i16", "i32", "i64", "i8", "inline",
    "kernel", "log", "log2", "max", "maximum", "min", "minimum", "prod", "require", "reshape", "rsqrt", "sigmoid",
    "sin", "sqrt", "sum", "tanh", "u16", "u32", "u64", "u8", "where", "zeros",
]  # fmt: skip
