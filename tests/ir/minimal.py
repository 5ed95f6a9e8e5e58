"""A minimal kernel for every op of the table, as IR text: what the support table and the targets' tests start from.

`minimal(op, dtype)` is a kernel whose operands have that dtype, or None where the op does not take it. Names are alike
in all: x, y, z are inputs, i holds lane numbers, m a mask, o (p, q, r) the outputs; n is an axis of 16 lanes.
"""

from __future__ import annotations

import re

from kdsl.diagnostics import KdslError
from kdsl.ir.dtypes import DType
from kdsl.ir.kernel import Kernel
from kdsl.ir.ops import OPS
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import IRError, verify

LANES = 16

# What a result's dtype is for operands of T: T itself where not listed.
_BOOLEAN = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "is_nan", "is_inf", "is_finite"])

# T is the dtype; U the one that a dot of T gives; A the unsigned integer of T's width; ONE a number of T.
KERNELS = """
kernel cast(x: in T[16], o: out f32[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %r: f32[n] = cast %x
  store o[n] = %r
}
kernel bitcast(x: in T[16], o: out A[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %r: A[n] = bitcast %x
  store o[n] = %r
}
kernel select(m: in bool[16], x: in T[16], y: in T[16], o: out T[16]) {
  axis n < 16
  %m: bool[n] = load m[n]
  %x: T[n] = load x[n]
  %y: T[n] = load y[n]
  %r: T[n] = select %m, %x, %y
  store o[n] = %r
}
kernel constant(o: out T[16]) {
  axis n < 16
  %c: T = constant {value = ONE}
  %r: T[n] = broadcast %c {axes = [n]}
  store o[n] = %r
}
kernel argument(o: out T[1], s: T) {
  %s: T = argument {scalar = s}
  store o[0] = %s
}
kernel index(o: out T[16]) {
  axis n < 16
  %r: T[n] = index {form = n}
  store o[n] = %r
}
kernel in_bounds(o: out T[16]) {
  axis n < 16
  %r: T[n] = in_bounds {bounds = [n < 7]}
  store o[n] = %r
}
kernel broadcast(x: in T[1], o: out T[16]) {
  axis n < 16
  %x: T = load x[0]
  %r: T[n] = broadcast %x {axes = [n]}
  store o[n] = %r
}
kernel reduce(x: in T[16], o: out T[1]) {
  axis n < 16
  %x: T[n] = load x[n]
  %r: T = reduce %x {axis = n, combine = maximum}
  store o[0] = %r
}
kernel scan(x: in T[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %r: T[n] = scan %x {axis = n, combine = maximum}
  store o[n] = %r
}
kernel reshape(x: in T[16], o: out T[4, 4]) {
  axis n < 16
  axis j < 4
  axis k < 4
  %x: T[n] = load x[n]
  %r: T[j, k] = reshape %x {source = [n], target = [j, k]}
  store o[j, k] = %r
}
kernel dot(x: in T[16, 32], y: in T[32, 16], o: out U[16, 16]) {
  axis n < 16
  axis k < 32
  axis j < 16
  %x: T[n, k] = load x[n, k]
  %y: T[k, j] = load y[k, j]
  %r: U[n, j] = dot %x, %y {axis = k, precision = ieee}
  store o[n, j] = %r
}
kernel dot_scaled(x: in T[16, 32], y: in T[32, 16], z: in u8[16, 1], o: out f32[16, 16]) {
  axis n < 16
  axis k < 32
  axis j < 16
  axis g < 1
  %x: T[n, k] = load x[n, k]
  %y: T[k, j] = load y[k, j]
  %a: u8[n, g] = load z[n, g]
  %b: u8[j, g] = load z[j, g]
  %r: f32[n, j] = dot_scaled %x, %a, %y, %b {axis = k, left_group = g, right_group = g}
  store o[n, j] = %r
}
kernel load(x: in T[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  store o[n] = %x
}
kernel store(x: in T[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  store o[n] = %x
}
kernel for(x: in T[16], o: out T[16]) {
  loop t < 3
  axis n < 16
  %x: T[n] = load x[n]
  %r: T[n] = for t (%a: T[n] = %x) {
    yield %a
  }
  store o[n] = %r
}
kernel yield(x: in T[16], o: out T[16]) {
  loop t < 3
  axis n < 16
  %x: T[n] = load x[n]
  %r: T[n] = for t (%a: T[n] = %x) {
    yield %a
  }
  store o[n] = %r
}
kernel if(m: in bool[1], x: in T[16], y: in T[16], o: out T[16]) {
  axis n < 16
  %m: bool = load m[0]
  %x: T[n] = load x[n]
  %r: T[n] = if %m () {
    yield %x
  } () {
    %y: T[n] = load y[n]
    yield %y
  }
  store o[n] = %r
}
kernel while(x: in T[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %three: i32 = constant {value = 3}
  %c: i32, %r: T[n] = while %zero, %x (%i: i32, %a: T[n]) {
    %lt: bool = lt %i, %three
    yield %lt
  } (%j: i32, %b: T[n]) {
    %add: i32 = add %j, %one
    yield %add, %b
  }
  store o[n] = %r
}
kernel sort(x: in T[16], i: in i32[16], o: out T[16], p: out i32[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %i: i32[n] = load i[n]
  %r: T[n], %s: i32[n] = sort %x, %i {axis = n}
  store o[n] = %r
  store p[n] = %s
}
kernel topk(x: in T[16], o: out T[4], p: out i32[4]) {
  axis n < 16
  axis k < 4
  %x: T[n] = load x[n]
  %r: T[k], %s: i32[k] = topk %x {axis = n, target = k}
  store o[k] = %r
  store p[k] = %s
}
kernel gather(x: in T[16], i: in i32[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %i: i32[n] = load i[n]
  %r: T[n] = gather %x, %i {axis = n}
  store o[n] = %r
}
kernel flip(x: in T[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %r: T[n] = flip %x {axis = n}
  store o[n] = %r
}
kernel concat(x: in T[16], y: in T[16], o: out T[32]) {
  axis n < 16
  axis w < 32
  %x: T[n] = load x[n]
  %y: T[n] = load y[n]
  %r: T[w] = concat %x, %y {source = [n, n], target = w}
  store o[w] = %r
}
kernel join(x: in T[16], y: in T[16], o: out T[16, 2]) {
  axis n < 16
  axis h < 2
  %x: T[n] = load x[n]
  %y: T[n] = load y[n]
  %r: T[n, h] = join %x, %y {axis = h}
  store o[n, h] = %r
}
kernel split(x: in T[16, 2], o: out T[16], p: out T[16]) {
  axis n < 16
  axis h < 2
  %x: T[n, h] = load x[n, h]
  %r: T[n], %s: T[n] = split %x {axis = h}
  store o[n] = %r
  store p[n] = %s
}
kernel relabel(x: in T[16], o: out T[16]) {
  axis n < 16
  axis k < 16
  %x: T[n] = load x[n]
  %r: T[k] = relabel %x {source = n, target = k}
  store o[k] = %r
}
kernel histogram(x: in T[16], o: out i32[8]) {
  axis n < 16
  axis k < 8
  %x: T[n] = load x[n]
  %r: i32[k] = histogram %x {axis = n, target = k}
  store o[k] = %r
}
kernel philox(x: in T[16], y: in T[16], o: out T[16], p: out T[16], q: out T[16], r: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %y: T[n] = load y[n]
  %a: T[n], %b: T[n], %c: T[n], %d: T[n] = philox %x, %y, %x, %y, %x, %y {rounds = 10}
  store o[n] = %a
  store p[n] = %b
  store q[n] = %c
  store r[n] = %d
}
kernel load_at(x: in T[16], i: in i32[16], m: in bool[16], o: out T[16]) {
  axis n < 16
  %i: i32[n] = load i[n]
  %m: bool[n] = load m[n]
  %x: T[n] = load_at %i, %m {buffer = x, masked = true, fill = ONE}
  store o[n] = %x
}
kernel store_at(x: in T[16], i: in i32[16], m: in bool[16], o: inout T[16]) {
  axis n < 16
  %i: i32[n] = load i[n]
  %m: bool[n] = load m[n]
  %x: T[n] = load x[n]
  store_at %x, %i, %m {buffer = o, masked = true}
}
kernel atomic(x: in T[16], i: in i32[16], m: in bool[16], o: inout T[16], p: out T[16]) {
  axis n < 16
  %i: i32[n] = load i[n]
  %m: bool[n] = load m[n]
  %x: T[n] = load x[n]
  %r: T[n] = atomic %x, %i, %m {buffer = o, combine = add, masked = true}
  store p[n] = %r
}
kernel atomic_cas(x: in T[16], y: in T[16], i: in i32[16], o: inout T[16], p: out T[16]) {
  axis n < 16
  %i: i32[n] = load i[n]
  %x: T[n] = load x[n]
  %y: T[n] = load y[n]
  %r: T[n] = atomic_cas %x, %y, %i {buffer = o}
  store p[n] = %r
}
kernel reduce_by(x: in T[16], o: out T[1]) {
  axis n < 16
  %x: T[n] = load x[n]
  %r: T = reduce_by %x {axis = n} (%a: T[n], %b: T[n]) {
    %c: T[n] = maximum %a, %b
    yield %c
  }
  store o[0] = %r
}
kernel scan_by(x: in T[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %r: T[n] = scan_by %x {axis = n} (%a: T[n], %b: T[n]) {
    %c: T[n] = maximum %a, %b
    yield %c
  }
  store o[n] = %r
}
kernel assert(x: in T[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %c: bool[n] = eq %x, %x
  assert %c {message = "x is a number"}
  store o[n] = %x
}
kernel print(x: in T[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  print %x {message = "x"}
  store o[n] = %x
}
kernel breakpoint(x: in T[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  breakpoint
  store o[n] = %x
}
kernel poison(x: in T[16], o: out T[16]) {
  axis n < 16
  %x: T[n] = load x[n]
  %yes: bool = constant {value = true}
  %p: T[n] = poison {axes = [n]}
  %r: T[n] = select %yes, %x, %p
  store o[n] = %r
}
kernel let(x: in T[16], i: in i32[16], o: out T[16]) {
  integer stop
  loop t < stop
  axis n < 16
  %x: T[n] = load x[n]
  %i: i32 = load i[0]
  let %i {integer = stop}
  %r: T[n] = for t (%a: T[n] = %x) {
    yield %a
  }
  store o[n] = %r
}
"""
_BY_OP = {
    text.partition("(")[0]: text
    for text in re.findall(r"^kernel (.*?\n)(?=kernel|\Z)", KERNELS, re.DOTALL | re.MULTILINE)
}


def minimal(op: str, dtype: DType) -> Kernel | None:
    """The kernel for one op on operands of a dtype, or None where the op does not take the dtype."""
    try:
        return verify(parse_kernel(minimal_text(op, dtype)))
    except (IRError, KdslError):
        return None


def minimal_text(op: str, dtype: DType) -> str:
    """The kernel's text, well formed only if the op takes the dtype."""
    accumulator = dtype.name if dtype.bits == 64 else "i32" if dtype.kind == "int" else "f32"
    one = {"bool": "true", "float": "1.0"}.get(dtype.kind, "1")
    words = {"T": dtype.name, "U": accumulator, "A": f"u{dtype.bits}", "ONE": one}
    text = _BY_OP.get(op) or _pointwise(op)
    return "kernel minimal_" + re.sub(r"\b(T|U|A|ONE)\b", lambda word: words[word[0]], text)


def _pointwise(op: str) -> str:
    names = ["x", "y", "z"][: len(OPS[op].operands)]
    result = "bool" if op in _BOOLEAN else "T"
    arguments = [*(f"{name}: in T[16]" for name in names), f"o: out {result}[16]"]
    loads = [f"%{name}: T[n] = load {name}[n]" for name in names]
    call = f"%r: {result}[n] = {op} {', '.join(f'%{name}' for name in names)}"
    lines = ["axis n < 16", *loads, call, "store o[n] = %r"]
    return "\n  ".join([f"{op}({', '.join(arguments)}) {{", *lines]) + "\n}\n"
