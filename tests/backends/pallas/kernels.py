"""Kernels in IR text for the tests of the tpu target. `T` stands for the dtype of the tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kdsl.ir.kernel import Buffer, Kernel, size_values
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import verify

Array = np.ndarray[Any, np.dtype[Any]]

VECTOR_ADD = """
kernel vector_add(x: in T[N], y: in T[N], z: out T[N]) at "add.py":3:1 {
  size N
  tile BN = 1024
  program n_block < cdiv(N, BN)
  axis n < BN where BN*n_block + n < N
  %x: T[n_block, n] = load x[BN*n_block + n] at 5:10
  %y: T[n_block, n] = load y[BN*n_block + n] at 5:10
  %add: T[n_block, n] = add %x, %y at 5:10
  store z[BN*n_block + n] = %add at 5:10
}
"""
SOFTMAX = """
kernel softmax(x: in T[M, N], y: out T[M, N]) at "softmax.py":3:1 {
  size M
  size N
  tile BM = 32
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  %x: T[m_block, m, n] = load x[BM*m_block + m, n] at 5:10
  %cast: f32[m_block, m, n] = cast %x at 5:10
  %max: f32[m_block, m] = reduce %cast {axis = n, combine = maximum} at 6:10
  %sub: f32[m_block, m, n] = sub %cast, %max at 6:10
  %e: f32[m_block, m, n] = exp %sub at 6:10
  %s: f32[m_block, m] = reduce %e {axis = n, combine = add} at 7:10
  %div: f32[m_block, m, n] = div %e, %s at 8:10
  %cast.1: T[m_block, m, n] = cast %div at 8:10
  store y[BM*m_block + m, n] = %cast.1 at 8:10
}
"""
MATMUL = """
kernel matmul(a: in T[M, K], b: in T[K, N], bias: in T[N], c: out T[M, N]) at "matmul.py":3:1 {
  size M
  size N
  size K
  tile BM = 128
  tile BN = 128
  tile BK = 64
  program m_block < cdiv(M, BM)
  program n_block < cdiv(N, BN)
  loop k_block < cdiv(K, BK)
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  axis k < BK where BK*k_block + k < K
  %z: f32 = constant {value = 0.0} at 6:3
  %zeros: f32[m, n] = broadcast %z {axes = [m, n]} at 6:3
  %acc: f32[m_block, n_block, m, n] = for k_block (%acc.1: f32[m_block, n_block, k_block, m, n] = %zeros) {
    %a: T[m_block, k_block, m, k] = load a[BM*m_block + m, BK*k_block + k] at 8:3
    %b: T[n_block, k_block, n, k] = load b[BK*k_block + k, BN*n_block + n] at 8:3
    %dot: f32[m_block, n_block, k_block, m, n] = dot %a, %b {axis = k, precision = ieee} at 8:3
    %add: f32[m_block, n_block, k_block, m, n] = add %acc.1, %dot at 8:3
    yield %add
  } at 7:3
  %bias: T[n_block, n] = load bias[BN*n_block + n] at 9:3
  %cast: f32[n_block, n] = cast %bias at 9:3
  %y: f32[m_block, n_block, m, n] = add %acc, %cast at 9:3
  %zero: f32 = constant {value = 0.0} at 10:3
  %relu: f32[m_block, n_block, m, n] = maximum %y, %zero at 10:3
  %cast.1: T[m_block, n_block, m, n] = cast %relu at 10:3
  store c[BM*m_block + m, BN*n_block + n] = %cast.1 at 10:3
}
"""
LAYERNORM = """
kernel layernorm(x: in T[M, N], weight: in T[N], bias: in T[N], eps: f32, y: out T[M, N]) at "layernorm.py":3:1 {
  size M
  size N
  tile BM = 32
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  %load: T[m_block, m, n] = load x[BM*m_block + m, n] at 5:10
  %x: f32[m_block, m, n] = cast %load at 5:10
  %count: i32 = index {form = N} at 6:10
  %count_f: f32 = cast %count at 6:10
  %reduce: f32[m_block, m] = reduce %x {axis = n, combine = add} at 6:10
  %mean: f32[m_block, m] = div %reduce, %count_f at 6:10
  %d: f32[m_block, m, n] = sub %x, %mean at 7:10
  %mul: f32[m_block, m, n] = mul %d, %d at 8:10
  %reduce.1: f32[m_block, m] = reduce %mul {axis = n, combine = add} at 8:10
  %variance: f32[m_block, m] = div %reduce.1, %count_f at 8:10
  %eps: f32 = argument {scalar = eps} at 9:10
  %add: f32[m_block, m] = add %variance, %eps at 9:10
  %rsqrt: f32[m_block, m] = rsqrt %add at 9:10
  %mul.1: f32[m_block, m, n] = mul %d, %rsqrt at 9:10
  %w: T[n] = load weight[n] at 10:10
  %cast.2: f32[n] = cast %w at 10:10
  %mul.2: f32[m_block, m, n] = mul %mul.1, %cast.2 at 10:10
  %b: T[n] = load bias[n] at 10:10
  %cast.3: f32[n] = cast %b at 10:10
  %add.1: f32[m_block, m, n] = add %mul.2, %cast.3 at 10:10
  %cast.4: T[m_block, m, n] = cast %add.1 at 10:10
  store y[BM*m_block + m, n] = %cast.4 at 10:10
}
"""
# STOP is where the keys end, SEEN the scores that count.
ATTENTION = """
kernel attention(q: in T[B, H, L, D], k: in T[B, H, S, D],
       v: in T[B, H, S, D], out: out T[B, H, L, D]) at "attention.py":3:1 {
  size B
  size H
  size L
  size S
  size D
  tile BL = 128
  tile BS = 64
  program b < B
  program h < H
  program l_block < cdiv(L, BL)
  loop n_block < cdiv(STOP, BS)
  axis l < BL where BL*l_block + l < L
  axis n < BS where BS*n_block + n < STOP
  axis d < D
  %lowest: f32 = constant {value = -inf} at 6:3
  %max0: f32[l] = broadcast %lowest {axes = [l]} at 6:3
  %z: f32 = constant {value = 0.0} at 6:3
  %sum0: f32[l] = broadcast %z {axes = [l]} at 6:3
  %acc0: f32[l, d] = broadcast %z {axes = [l, d]} at 7:3
  %q: T[b, h, l_block, l, d] = load q[b, h, BL*l_block + l, d] at 9:3
  %m1: f32[b, h, l_block, l], %s1: f32[b, h, l_block, l], %a1: f32[b, h, l_block, l, d] = for n_block (
      %row_max: f32[b, h, l_block, n_block, l] = %max0,
      %row_sum: f32[b, h, l_block, n_block, l] = %sum0,
      %acc: f32[b, h, l_block, n_block, l, d] = %acc0
  ) {
    %k: T[KEYS] = load k[b, h, BS*n_block + n, d] at 9:3
    %dot: f32[b, h, l_block, n_block, l, n] = dot %q, %k {axis = d, precision = ieee} at 9:3
    %scale: f32 = constant {value = 0.125} at 9:3
    %s: f32[b, h, l_block, n_block, l, n] = mul %dot, %scale at 9:3
    %row: i32[l_block, l] = index {form = BL*l_block + l} at 10:3
    %column: i32[n_block, n] = index {form = BS*n_block + n} at 10:3
    %seen: bool[l_block, n_block, l, n] = le %column, %row at 10:3
    %s.1: f32[b, h, l_block, n_block, l, n] = select %seen, %s, %lowest at 10:3
    %max: f32[b, h, l_block, n_block, l] = reduce %SEEN {axis = n, combine = maximum} at 11:3
    %new_max: f32[b, h, l_block, n_block, l] = maximum %row_max, %max at 11:3
    %sub: f32[b, h, l_block, n_block, l, n] = sub %SEEN, %new_max at 12:3
    %p: f32[b, h, l_block, n_block, l, n] = exp %sub at 12:3
    %sub.1: f32[b, h, l_block, n_block, l] = sub %row_max, %new_max at 12:3
    %alpha: f32[b, h, l_block, n_block, l] = exp %sub.1 at 12:3
    %mul: f32[b, h, l_block, n_block, l] = mul %row_sum, %alpha at 13:3
    %psum: f32[b, h, l_block, n_block, l] = reduce %p {axis = n, combine = add} at 13:3
    %row_sum.1: f32[b, h, l_block, n_block, l] = add %mul, %psum at 13:3
    %mul.1: f32[b, h, l_block, n_block, l, d] = mul %acc, %alpha at 14:3
    %cast: T[b, h, l_block, n_block, l, n] = cast %p at 14:3
    %v: T[KEYS] = load v[b, h, BS*n_block + n, d] at 14:3
    %dot.1: f32[b, h, l_block, n_block, l, d] = dot %cast, %v {axis = n, precision = ieee} at 14:3
    %acc.1: f32[b, h, l_block, n_block, l, d] = add %mul.1, %dot.1 at 14:3
    yield %new_max, %row_sum.1, %acc.1
  } at 8:3
  %div: f32[b, h, l_block, l, d] = div %a1, %s1 at 15:3
  %cast.1: T[b, h, l_block, l, d] = cast %div at 15:3
  store out[b, h, BL*l_block + l, d] = %cast.1 at 15:3
}
"""
CAUSAL = {"STOP": "min(BL*l_block + BL, L, S)", "SEEN": "s.1", "KEYS": "b, h, l_block, n_block, n, d"}
FULL = {"STOP": "S", "SEEN": "s", "KEYS": "b, h, n_block, n, d"}

STATISTICS = """
kernel statistics(x: in f32[M, N], r: in f32[M], y: out f32[M, N],
       mean: out f32[M], top: out i32[M]) at "statistics.py":1:1 {
  size M
  size N
  tile BM = 8
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  %x: f32[m_block, m, n] = load x[BM*m_block + m, n] at 2:1
  %r: f32[m_block, m] = load r[BM*m_block + m] at 3:1
  %t: f32[m_block, m, n] = mul %x, %r at 4:1
  store y[BM*m_block + m, n] = %t at 4:1
  %s: f32[m_block, m] = reduce %t {axis = n, combine = add} at 5:1
  store mean[BM*m_block + m] = %s at 5:1
  %a: i32[m_block, m] = reduce %t {axis = n, combine = argmax} at 6:1
  store top[BM*m_block + m] = %a at 6:1
}
"""
ROW_SUM = """
kernel row_sum(x: in f32[M, N], y: out f32[M, N], s: out f32[M]) at "row_sum.py":1:1 {
  size M
  size N
  program m < M
  axis n < N
  %x: f32[m, n] = load x[m, n] at 2:1
  %s: f32[m] = reduce %x {axis = n, combine = add} at 5:1
  %d: f32[m, n] = div %x, %s at 5:1
  store y[m, n] = %d at 5:1
  store s[m] = %s at 5:1
}
"""
COLUMN_SUM = """
kernel column_sum(x: in f32[M, N], y: out f32[N]) at "column_sum.py":1:1 {
  size M
  size N
  tile BM = 8
  tile BN = 128
  program n_block < cdiv(N, BN)
  loop m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  %z: f32 = constant {value = 0.0} at 2:1
  %a0: f32[n] = broadcast %z {axes = [n]} at 2:1
  %a: f32[n_block, n] = for m_block (%acc: f32[n_block, m_block, n] = %a0) {
    %x: f32[n_block, m_block, m, n] = load x[BM*m_block + m, BN*n_block + n] at 4:1
    %s: f32[n_block, m_block, n] = reduce %x {axis = m, combine = add} at 4:1
    %b: f32[n_block, m_block, n] = add %acc, %s at 4:1
    yield %b
  } at 3:1
  store y[BN*n_block + n] = %a at 5:1
}
"""
OUTER_SUM = """
kernel outer_sum(x: in f32[B, M, H], y: out f32[M], z: out bool[M], w: out i32[B, M, H]) at "outer_sum.py":1:1 {
  size B
  size M
  size H
  tile BM = 128
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis b < B
  axis h < H
  %x: f32[m_block, m, b, h] = load x[b, BM*m_block + m, h] at 2:1
  %s: f32[m_block, m, h] = reduce %x {axis = b, combine = add} at 3:1
  %t: f32[m_block, m] = reduce %s {axis = h, combine = add} at 3:1
  %i: i32 = index {form = B*H} at 4:1
  %c: f32 = cast %i at 4:1
  %d: f32[m_block, m] = div %t, %c at 4:1
  store y[BM*m_block + m] = %d at 4:1
  %one: f32 = constant {value = 1.0} at 5:1
  %g: bool[m_block, m, b, h] = gt %x, %one at 5:1
  %o: bool[m_block, m, h] = reduce %g {axis = b, combine = or} at 5:1
  %p: bool[m_block, m] = reduce %o {axis = h, combine = or} at 5:1
  store z[BM*m_block + m] = %p at 5:1
  %j: i32[m_block, m, b, h] = cast %x at 6:1
  %n: i32 = index {form = M} at 6:1
  %q: i32[m_block, m, b, h] = floordiv %j, %n at 6:1
  store w[b, BM*m_block + m, h] = %q at 6:1
}
"""
AXPY = """
kernel axpy(x: in f32[M, N], alpha: f32, y: inout f32[M, N]) at "axpy.py":1:1 {
  size M
  size N
  size S
  tile BM = 8
  tile BN = 128
  program m_block < cdiv(M, BM)
  program n_block < cdiv(N, BN)
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  %x: f32[m_block, n_block, m, n] = load x[BM*m_block + m, BN*n_block + n] at 2:1
  %y: f32[m_block, n_block, m, n] = load y[BM*m_block + m, BN*n_block + n] at 2:1
  %al: f32 = argument {scalar = alpha} at 2:1
  %p: f32[m_block, n_block, m, n] = mul %x, %al at 2:1
  %q: f32[m_block, n_block, m, n] = add %p, %y at 2:1
  store y[BM*m_block + m, BN*n_block + n] = %q where BN*n_block + n < S at 2:1
}
"""
BOOLS = """
kernel bools(x: in f32[M, N], b: in bool[M, N], i: in i8[M, N],
       y: out bool[M, N], z: out i8[M, N], any: out bool[M]) at "bools.py":1:1 {
  size M
  size N
  tile BM = 32
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  %x: f32[m_block, m, n] = load x[BM*m_block + m, n] at 2:1
  %b: bool[m_block, m, n] = load b[BM*m_block + m, n] at 2:1
  %i: i8[m_block, m, n] = load i[BM*m_block + m, n] at 2:1
  %j: i32[m_block, m, n] = cast %i at 2:1
  %z: i32 = constant {value = 3} at 2:1
  %g: bool[m_block, m, n] = gt %j, %z at 2:1
  %h: bool[m_block, m, n] = and %b, %g at 2:1
  store y[BM*m_block + m, n] = %h at 2:1
  %k: i8[m_block, m, n] = cast %x at 2:1
  store z[BM*m_block + m, n] = %k at 2:1
  %any: bool[m_block, m] = reduce %h {axis = n, combine = or} at 2:1
  store any[BM*m_block + m] = %any at 2:1
}
"""
TRANSPOSE = """
kernel transpose(x: in f32[M, N], y: out f32[N, M], s: out f32[M, N]) at "transpose.py":1:1 {
  size M
  size N
  tile BM = 128
  tile BN = 128
  program m_block < cdiv(M, BM)
  program n_block < cdiv(N, BN)
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  %x: f32[m_block, n_block, m, n] = load x[BM*m_block + m, BN*n_block + n] at 2:1
  store y[BN*n_block + n, BM*m_block + m] = %x at 2:1
  %row: i32[m_block, m] = index {form = BM*m_block + m}
  %col: i32[n_block, n] = index {form = BN*n_block + n}
  %l: bool[m_block, n_block, m, n] = le %col, %row
  %i: i32[m_block, n_block, m, n] = mul %row, %col
  %c: f32[m_block, n_block, m, n] = cast %i
  %t: f32[m_block, n_block, m, n] = select %l, %c, %x
  store s[BM*m_block + m, BN*n_block + n] = %t at 2:1
}
"""
INTEGERS = """
kernel integers(x: in i32[M, N], w: in i32[M, N], u: in u32[M, N],
       y: out i32[M, N], z: out u32[M, N], f: out bf16[M, N]) at "integers.py":1:1 {
  size M
  size N
  tile BM = 8
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  %x: i32[m_block, m, n] = load x[BM*m_block + m, n] at 2:1
  %w: i32[m_block, m, n] = load w[BM*m_block + m, n] at 2:1
  %u: u32[m_block, m, n] = load u[BM*m_block + m, n] at 2:1
  %a: i32[m_block, m, n] = floordiv %x, %w at 3:1
  %b: i32[m_block, m, n] = floormod %x, %w at 3:1
  %c: i32[m_block, m, n] = shl %x, %w at 3:1
  %d: i32[m_block, m, n] = shr %x, %w at 3:1
  %e: i32[m_block, m, n] = xor %a, %b at 3:1
  %g: i32[m_block, m, n] = add %c, %d at 3:1
  %h: i32[m_block, m, n] = xor %e, %g at 3:1
  %s: i32[m_block, m] = reduce %h {axis = n, combine = add} at 4:1
  %t: i32[m_block, m, n] = sub %h, %s at 4:1
  store y[BM*m_block + m, n] = %t at 4:1
  %big: u32 = constant {value = 4000000000} at 4:1
  %v: u32[m_block, m, n] = and %u, %big at 4:1
  %lt: bool[m_block, m, n] = lt %v, %u at 4:1
  %k: u32[m_block, m, n] = select %lt, %v, %u at 4:1
  store z[BM*m_block + m, n] = %k at 5:1
  %f: bf16[m_block, m, n] = cast %x at 6:1
  store f[BM*m_block + m, n] = %f at 6:1
}
"""


def kernel(text: str, dtype: str = "f32", **replaced: str) -> Kernel:
    """The kernel of a text, verified."""
    for old, new in replaced.items():
        text = text.replace(old, new)
    for before in ("in ", "out ", "inout ", ": "):
        text = text.replace(f"{before}T[", f"{before}{dtype}[")
    return verify(parse_kernel(text))


def inputs(kernel: Kernel, sizes: Mapping[str, int], exact: bool = False, seed: int = 0) -> dict[str, Any]:
    """Arguments: floats from a normal distribution, or small integers (`exact`); integers over their whole range."""
    random, values = np.random.default_rng(seed), size_values(kernel, sizes)
    arguments: dict[str, Any] = {}
    for parameter in kernel.parameters:
        if not isinstance(parameter, Buffer):
            arguments[parameter.name] = 0.5
        elif parameter.role != "out":
            shape = [int(extent.evaluate(values)) for extent in parameter.shape]
            arguments[parameter.name] = _array(random, parameter, shape, exact)
    return arguments


def _array(random: np.random.Generator, buffer: Buffer, shape: list[int], exact: bool) -> Array:
    dtype = buffer.dtype.numpy
    if buffer.dtype.kind == "bool":
        return random.random(shape) < 0.5
    if buffer.dtype.is_integer:
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    return (random.integers(-2, 3, shape) if exact else random.standard_normal(shape)).astype(dtype)
