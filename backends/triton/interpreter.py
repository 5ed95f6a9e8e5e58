"""Triton's interpreter, mended so that it can judge emitted code. For a worker started with TRITON_INTERPRET=1.

Triton 3.9.0's interpreter, as shipped:
- holds bf16 and fp8 values as their bits and computes on those as integers; here they are ml_dtypes arrays, so every
  operation rounds once to nearest even, where the source says (sums and scans accumulate in f32 and round once: the
  order of a compiled kernel's additions is not defined);
- reads and writes outside tensors without a word; here each access is checked (memory.py);
- gives zero for masked-off lanes of a load without `other`, which Triton leaves undefined; here they are poison;
- lets `a and b`, `a or b`, `not a` on blocks yield one operand; here they are elementwise, as in a compiled kernel;
- treats a float argument as an untyped constant; here it is an fp32 scalar, as in a compiled launch;
- refuses argmax of a row of NaN; here it is the index of some element;
- reduces with a kernel's own combine function one element at a time; here by halves, which is as good an order.

Kept as shipped: programs run one after another; `max` and `min` ignore NaN; tf32 is not rounded; a loop counter is a
Python int; fp8 "e4b15" stays bits. `dot_scaled` and atomics on bf16 and fp8 would be wrong and are refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl
import triton.runtime.interpreter as ti

from .memory import Memory, is_floating, poison

# Triton ships no type information: its modules are Any to mypy, and a subclass of one of its classes needs an ignore.
Array = np.ndarray[Any, Any]

NARROW: dict[Any, np.dtype[Any]] = {
    tl.bfloat16: np.dtype(ml_dtypes.bfloat16),
    tl.float8e4nv: np.dtype(ml_dtypes.float8_e4m3fn),
    tl.float8e4b8: np.dtype(ml_dtypes.float8_e4m3fnuz),
    tl.float8e5: np.dtype(ml_dtypes.float8_e5m2),
    tl.float8e5b16: np.dtype(ml_dtypes.float8_e5m2fnuz),
}
# PTX's cvt to these two is .satfinite (PTX ISA, cvt): what is too large becomes the largest finite value.
LARGEST = {NARROW[tl.float8e4nv]: 448.0, NARROW[tl.float8e5]: 57344.0}
_shipped_numpy_dtype: Callable[[Any], np.dtype[Any]] = ti._get_np_dtype
_shipped_argument: Callable[[Any], Any] = ti._implicit_cvt


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype that holds values of a Triton dtype (scalar, pointer or block)."""
    scalar = dtype.scalar
    if not isinstance(scalar, tl.pointer_type) and scalar in NARROW:
        return NARROW[scalar]
    return _shipped_numpy_dtype(dtype)


def _is_narrow(array: Array) -> bool:
    return array.dtype in NARROW.values()


def _bits_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What the compiled load and store routines know: NumPy's own types."""
    return np.dtype(f"u{dtype.itemsize}") if dtype in NARROW.values() else dtype


def _wide(array: Array) -> Array:
    return array.astype(np.float32) if _is_narrow(array) else array


def round_to(values: Array, dtype: np.dtype[Any], *, toward_zero: bool = False) -> Array:
    """Float `values` in the float type `dtype`: to nearest even, or toward zero."""
    wide = _wide(values)
    rounded = wide.astype(dtype)
    if dtype in LARGEST:
        largest = np.array(LARGEST[dtype], wide.dtype)
        rounded = np.clip(wide, -largest, largest).astype(dtype)
    if toward_zero and dtype.itemsize < wide.dtype.itemsize:
        too_large = np.isfinite(wide) & ~(np.abs(_wide(rounded).astype(wide.dtype)) <= np.abs(wide))
        # One less as an integer is the next value toward zero, infinity included, in every IEEE-like format.
        bits = rounded.view(f"u{dtype.itemsize}")
        rounded = np.where(too_large, bits - bits.dtype.type(1), bits).view(dtype)
    return rounded


class Builder(ti.InterpreterBuilder):  # type: ignore[misc]  # untyped base
    """Evaluates each operation of the interpreted kernel. `memory` holds the tensors of the current launch."""

    memory = Memory()

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, cache_policy: Any, is_volatile: Any) -> Any:
        element = ptrs.get_element_ty()
        dtype = numpy_dtype(element)
        fill = np.broadcast_to(poison(dtype), ptrs.data.shape) if other is None else other.data
        addresses = self.memory.resolve(ptrs.data, mask.data, dtype.itemsize, "load")
        bits = ti._interpreter.load(addresses, mask.data, fill.view(_bits_dtype(dtype)), _bits_dtype(dtype))
        return ti.TensorHandle(bits.view(dtype), element)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, cache_policy: Any) -> Any:
        dtype = numpy_dtype(ptrs.get_element_ty())
        addresses = self.memory.resolve(ptrs.data, mask.data, dtype.itemsize, "store")
        return ti._interpreter.store(addresses, value.data.astype(dtype).view(_bits_dtype(dtype)), mask.data)

    def create_atomic_rmw(self, rmwOp: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        return super().create_atomic_rmw(rmwOp, self._checked(ptr, val, mask.data), val, mask, sem, scope)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        everywhere = np.ones(ptr.data.shape, np.bool_)
        return super().create_atomic_cas(self._checked(ptr, val, everywhere), cmp, val, sem, scope)

    def _checked(self, ptr: Any, value: Any, mask: Array) -> Any:
        if _is_narrow(value.data):
            raise NotImplementedError(f"an atomic operation on {value.data.dtype.name} cannot be interpreted")
        return ti.TensorHandle(self.memory.resolve(ptr.data, mask, value.data.dtype.itemsize, "atomic"), ptr.dtype)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        # By the dtype of the data: a comparison's handle still carries the type of its operands.
        dtype = numpy_dtype(dst_type)
        floats = is_floating(src.data.dtype) and is_floating(dtype)
        return ti.TensorHandle(round_to(src.data, dtype) if floats else src.data.astype(dtype), dst_type.scalar)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        dtype = numpy_dtype(dst_type)
        if not (is_floating(src.data.dtype) and is_floating(dtype)):  # fp8e4b15, which ml_dtypes does not have
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        toward_zero = rounding_mode == ti._ir.ROUNDING_MODE.RTZ
        return ti.TensorHandle(round_to(src.data, dtype, toward_zero=toward_zero), dst_type.scalar)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        if not _is_narrow(z.data):
            return super().create_fma(x, y, z)
        product = x.data.astype(np.float64) * y.data.astype(np.float64)  # exact
        return ti.TensorHandle((product + z.data.astype(np.float64)).astype(z.data.dtype), z.dtype.scalar)

    def create_dot_scaled(self, *operands: Any) -> Any:
        raise NotImplementedError("dot_scaled cannot be interpreted")


def _first_extreme(pick: Callable[..., Array], worst: float) -> Callable[..., Array]:
    """argmax or argmin that passes over NaN; a row of nothing but NaN gives its first index."""

    def run(data: Array, **kwargs: Any) -> Array:
        return pick(np.where(np.isnan(data), worst, data) if is_floating(data.dtype) else data, **kwargs)

    return run


_REDUCTIONS: dict[Any, Callable[..., Array]] = {
    None: np.asarray,
    np.nanmax: np.fmax.reduce,
    np.nanmin: np.fmin.reduce,
    np.nanargmax: _first_extreme(np.argmax, -np.inf),
    np.nanargmin: _first_extreme(np.argmin, np.inf),
}


class Reduce(ti.ReduceOps):  # type: ignore[misc]  # untyped base
    def sum(self, input: Any) -> Any:
        total = np.sum(_wide(input.handle.data), axis=self.axis, keepdims=self.keep_dims)
        return self.to_tensor(total, input.dtype)

    def min_max(self, input: Any, val_reduce_op: Any, idx_reduce_op: Any = None) -> Any:
        def widened(shipped: Any) -> Any:
            if shipped is None:
                return None
            return lambda data, **kwargs: _REDUCTIONS[shipped](_wide(data), **kwargs)

        return super().min_max(input, widened(val_reduce_op), widened(idx_reduce_op))

    def generic_reduce(self, input: Any) -> Any:
        """A combine function of the kernel's own, on halves of the axis (whose extent is a power of two) at a time: as
        shipped, it is called on single elements, some 50 us each."""
        parts = [data.handle.data for data in input]
        if self.axis is None:
            parts = [part.reshape(-1) for part in parts]
        axis = self.axis or 0
        while parts[0].shape[axis] > 1:
            halves = [np.split(part, 2, axis) for part in parts]
            pairs = [
                self.to_tensor(half[side], data.dtype)
                for side in (0, 1)
                for half, data in zip(halves, input, strict=True)
            ]
            combined = self.combine_fn.fn(*pairs)
            results = combined if isinstance(combined, tuple) else (combined,)
            parts = [result.handle.data for result in results]
        if not self.keep_dims:
            parts = [np.squeeze(part, axis) for part in parts]
        elif self.axis is None:
            parts = [part.reshape([1] * len(input[0].shape)) for part in parts]
        return [self.to_tensor(part, data.dtype) for part, data in zip(parts, input, strict=True)]


class Scan(ti.ScanOps):  # type: ignore[misc]  # untyped base
    def cumsum(self, input: Any) -> Any:
        return [self.to_tensor(np.cumsum(_wide(input.handle.data), axis=self.axis), dtype=input.dtype)]

    def cumprod(self, input: Any) -> Any:
        return [self.to_tensor(np.cumprod(_wide(input.handle.data), axis=self.axis), dtype=input.dtype)]


class Launch(ti.GridExecutor):  # type: ignore[misc]  # untyped base
    """One launch: enters its tensors into a fresh Memory before the programs run."""

    def _init_args_hst(self, args_dev: Any, kwargs: Any) -> Any:
        positional, named = super()._init_args_hst(args_dev, kwargs)
        Builder.memory = Memory()
        for name, value in [*zip(self.arg_names, positional, strict=False), *named.items()]:
            for tensor in _tensors_in(value):
                Builder.memory.add(name, tensor)
        return positional, named


def _tensors_in(value: Any) -> list[Any]:
    if hasattr(value, "data_ptr"):
        return [value]
    if isinstance(value, tuple):
        return [tensor for part in value for tensor in _tensors_in(part)]
    return [value.base] if isinstance(value, ti.TensorDescriptor) else []


def _argument(value: Any) -> Any:
    """A launch argument as the kernel sees it."""
    if isinstance(value, float):
        return tl.tensor(ti.TensorHandle(np.array([value], np.float32), tl.float32), tl.float32)
    argument = _shipped_argument(value)
    if hasattr(value, "data_ptr"):
        argument.handle.data = np.array([Builder.memory.address(value)], np.uint64)
    return argument


class Transformer(ti.ASTTransformer):  # type: ignore[misc]  # untyped base
    """As shipped, and boolean operators go through `boolean` and `negation`; operands stay lazy."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        no_parameters = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        operands: list[ast.expr] = [ast.Lambda(args=no_parameters, body=value) for value in node.values]
        return self._call("_kdsl_boolean", node, [ast.Constant(isinstance(node.op, ast.And)), *operands])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self._call("_kdsl_negation", node, [node.operand]) if isinstance(node.op, ast.Not) else node

    def _call(self, name: str, node: ast.expr, args: list[ast.expr]) -> ast.AST:
        call = ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=args, keywords=[])
        return ast.copy_location(call, node)


def boolean(conjunction: bool, *operands: Callable[[], Any]) -> Any:
    """`and` / `or`: a compile-time operand decides or drops out, tensors combine elementwise, all of them evaluated."""
    combine = ti.interpreter_semantic.logical_and if conjunction else ti.interpreter_semantic.logical_or
    result: Any = None
    for operand in operands:
        value = operand()
        dynamic = isinstance(value, tl.tensor)
        if not dynamic and bool(value) != conjunction:
            return value
        if not isinstance(result, tl.tensor):
            result = value
        elif dynamic:
            result = combine(_truth(result), _truth(value))
    return result


def negation(value: Any) -> Any:
    return ti.interpreter_semantic.not_(_truth(value)) if isinstance(value, tl.tensor) else not value


def _truth(value: Any) -> Any:
    return value if value.dtype == tl.int1 else value != 0


def install() -> None:
    """Put all of the above in place of what Triton ships, for the rest of this process; twice is as good as once."""
    if isinstance(ti.interpreter_builder, Builder):
        return
    ti._get_np_dtype = numpy_dtype
    ti._implicit_cvt = _argument
    ti.ReduceOps, ti.ScanOps, ti.GridExecutor = Reduce, Scan, Launch
    ti.interpreter_builder = Builder()
    ti.interpreter_semantic = ti.TritonSemantic(ti.interpreter_builder)
    # The rewriter copies this module's names into the globals of the function it rewrites.
    ti._kdsl_boolean, ti._kdsl_negation = boolean, negation
    ti.FunctionRewriter.ast_transformer = Transformer()
