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
- reduces and scans with a kernel's own combine function one element at a time; here by halves and by slices;
- has no device library, no tf32 rounding, fp8 dots of bits, dot_scaled in bf16; here NumPy does those (stand_ins.py);
- drops device_assert, which a compiled kernel checks in debug mode; here it is checked.

Kept as shipped: programs run one after another; `max` and `min` ignore NaN; a loop counter is a Python int; fp8 "e4b15"
stays bits. Atomics on fp8, and others than additions on bf16, would be wrong and are refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl
import triton.runtime.interpreter as ti
from triton.language.extra import libdevice

from kdsl.ir import functions

from . import stand_ins
from .interpreter_reductions import Reduce, Scan
from .memory import Memory, as_f32, is_floating, poison

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


def round_to(values: Array, dtype: np.dtype[Any], *, toward_zero: bool = False) -> Array:
    """Float `values` in the float type `dtype`: to nearest even, or toward zero."""
    wide = as_f32(values)
    rounded = wide.astype(dtype)
    if dtype in LARGEST:
        largest = np.array(LARGEST[dtype], wide.dtype)
        rounded = np.clip(wide, -largest, largest).astype(dtype)
    if toward_zero and dtype.itemsize < wide.dtype.itemsize:
        too_large = np.isfinite(wide) & ~(np.abs(as_f32(rounded).astype(wide.dtype)) <= np.abs(wide))
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
        if val.data.dtype == NARROW[tl.bfloat16] and rmwOp == ti._ir.ATOMIC_OP.FADD:
            return self._add_bf16(ptr, val, mask)
        return super().create_atomic_rmw(rmwOp, self._checked(ptr, val, mask.data), val, mask, sem, scope)

    def _add_bf16(self, ptr: Any, val: Any, mask: Any) -> Any:
        """One lane after the other."""
        addresses = self.memory.resolve(ptr.data, mask.data, 2, "atomic")
        before = np.zeros_like(val.data)
        for lane in zip(*np.nonzero(mask.data), strict=True):
            place, on = addresses[lane].reshape(1), np.ones(1, np.bool_)
            bits = ti._interpreter.load(place, on, np.zeros(1, np.uint16), np.dtype(np.uint16))
            before[lane] = bits.view(val.data.dtype)[0]
            after = (before[lane] + val.data[lane]).reshape(1).astype(val.data.dtype)
            ti._interpreter.store(place, after.view(np.uint16), on)
        return ti.TensorHandle(before, val.dtype.scalar)

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
        return ti.TensorHandle(functions.fma(x.data, y.data, z.data), z.dtype.scalar)

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        tf32 = input_precision == ti._ir.INPUT_PRECISION.TF32
        return ti.TensorHandle(stand_ins.dot(a.data, b.data, d.data, tf32), d.dtype.scalar)

    def create_dot_scaled(
        self, lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any, rhs_format: Any, *rest: Any
    ) -> Any:
        result = stand_ins.dot_scaled(lhs.data, lhs_scale.data, rhs.data, rhs_scale.data, rest[-1].data)
        return ti.TensorHandle(result, tl.float32)

    def create_assert(self, condition: Any, message: str) -> None:
        if not condition.data.all():
            raise AssertionError(message)


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


def _library_function(function: Callable[[Any], Array]) -> Callable[..., Any]:
    """A function of arrays as one of the kernel's tensors."""

    def call(*operands: Any) -> Any:
        tensors = [ti.interpreter_semantic.to_tensor(operand) for operand in operands]
        result = function([tensor.handle.data for tensor in tensors])
        scalar = tensors[0].dtype
        is_block = any(tensor.type.is_block() for tensor in tensors)
        kind = tl.block_type(scalar, list(result.shape)) if is_block else scalar
        return tl.tensor(ti.TensorHandle(result, scalar), kind)

    return call


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
    ti.interpreter_builder.options = ti.InterpreterOptions(
        debug=True, sanitize_overflow=False, allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
    )
    for name, function in stand_ins.library().items():
        setattr(libdevice, name, _library_function(function))
    ti.interpreter_semantic = ti.TritonSemantic(ti.interpreter_builder)
    # The rewriter copies this module's names into the globals of the function it rewrites.
    ti._kdsl_boolean, ti._kdsl_negation = boolean, negation
    ti.FunctionRewriter.ast_transformer = Transformer()
