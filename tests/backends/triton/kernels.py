"""Kernels in IR text for the tests of the gpu target, one list of ops a test can be read against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kdsl.ir.kernel import Buffer, Kernel, bind
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import verify

Array = np.ndarray[Any, np.dtype[Any]]

VECTOR_ADD = """
kernel vector_add(x: in f32[N], y: in f32[N], out: out f32[N]) at "vectors.py":5:1 {
  size N
  tile BN = 128
  program n_block < cdiv(N, BN)
  axis n < BN where BN*n_block + n < N
  %x: f32[n_block, n] = load x[BN*n_block + n] at 8:3
  %y: f32[n_block, n] = load y[BN*n_block + n] at 8:3
  %add: f32[n_block, n] = add %x, %y at 8:3
  store out[BN*n_block + n] = %add at 8:3
}
"""
SOFTMAX = """
kernel softmax(x: in f32[M, N], y: out f32[M, N]) at "rows.py":10:1 {
  size M
  size N
  tile BM = 4
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  %x: f32[m_block, m, n] = load x[BM*m_block + m, n] at 12:5
  %row_max: f32[m_block, m] = reduce %x {axis = n, combine = maximum} at 13:5
  %sub: f32[m_block, m, n] = sub %x, %row_max at 13:5
  %e: f32[m_block, m, n] = exp %sub at 13:5
  %reduce: f32[m_block, m] = reduce %e {axis = n, combine = add} at 14:5
  %div: f32[m_block, m, n] = div %e, %reduce at 14:5
  store y[BM*m_block + m, n] = %div at 14:5
}
"""
MATMUL = """
kernel matmul(a: in bf16[M, K], b: in bf16[K, N], bias: in f32[N], c: out bf16[M, N]) at "matmul.py":9:1 {
  size M
  size N
  size K
  tile BM = 32
  tile BN = 32
  tile BK = 16
  program m_block < cdiv(M, BM)
  program n_block < cdiv(N, BN)
  loop k_block < cdiv(K, BK)
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  axis k < BK where BK*k_block + k < K
  %zero: f32 = constant {value = 0.0} at 12:5
  %acc: f32[m, n] = broadcast %zero {axes = [m, n]} at 12:5
  %acc.1: f32[m_block, n_block, m, n] = for k_block (%acc.2: f32[m_block, n_block, k_block, m, n] = %acc) {
    %load: bf16[m_block, k_block, m, k] = load a[BM*m_block + m, BK*k_block + k] at 14:5
    %load.1: bf16[n_block, k_block, n, k] = load b[BK*k_block + k, BN*n_block + n] at 14:5
    %dot: f32[m_block, n_block, k_block, m, n] = dot %load, %load.1 {axis = k, precision = ieee} at 14:5
    %acc.3: f32[m_block, n_block, k_block, m, n] = add %acc.2, %dot at 14:5
    yield %acc.3
  } at 13:5
  %load.2: f32[n_block, n] = load bias[BN*n_block + n] at 15:5
  %h: f32[m_block, n_block, m, n] = add %acc.1, %load.2 at 15:5
  %sigmoid: f32[m_block, n_block, m, n] = sigmoid %h at 16:5
  %mul: f32[m_block, n_block, m, n] = mul %h, %sigmoid at 16:5
  %cast: bf16[m_block, n_block, m, n] = cast %mul at 16:5
  store c[BM*m_block + m, BN*n_block + n] = %cast at 16:5
}
"""
LAYERNORM = """
kernel layernorm(
  x: in f32[M, N],
  w: in f32[N],
  b: in f32[N],
  y: out f32[M, N],
  mean: out f32[M],
  eps: f32
) at "norm.py":9:1 {
  size M
  size N
  tile BM = 4
  require N > 0
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  %x: f32[m_block, m, n] = load x[BM*m_block + m, n] at 12:5
  %index: i32 = index {form = N} at 13:5
  %cast: f32 = cast %index at 13:5
  %reduce: f32[m_block, m] = reduce %x {axis = n, combine = add} at 13:5
  %mu: f32[m_block, m] = div %reduce, %cast at 13:5
  %d: f32[m_block, m, n] = sub %x, %mu at 14:5
  %mul: f32[m_block, m, n] = mul %d, %d at 15:5
  %reduce.1: f32[m_block, m] = reduce %mul {axis = n, combine = add} at 15:5
  %var: f32[m_block, m] = div %reduce.1, %cast at 15:5
  %argument: f32 = argument {scalar = eps} at 16:5
  %add: f32[m_block, m] = add %var, %argument at 16:5
  %r: f32[m_block, m] = rsqrt %add at 16:5
  %w: f32[n] = load w[n] at 17:5
  %b: f32[n] = load b[n] at 17:5
  %mul.1: f32[m_block, m, n] = mul %d, %r at 18:5
  %mul.2: f32[m_block, m, n] = mul %mul.1, %w at 18:5
  %add.1: f32[m_block, m, n] = add %mul.2, %b at 18:5
  store y[BM*m_block + m, n] = %add.1 at 18:5
  store mean[BM*m_block + m] = %mu at 19:5
}
"""
ATTENTION = """
kernel attention(
  q: in f32[B, H, L, D],
  k: in f32[B, H, S, D],
  v: in f32[B, H, S, D],
  out: out f32[B, H, L, D],
  scale: f32
) at "attention.py":20:1 {
  size B
  size H
  size L
  size S
  size D
  tile BL = 16
  tile BS = 16
  program b < B
  program h < H
  program l_block < cdiv(L, BL)
  loop n_block < cdiv(min(BL*l_block + BL, L, S), BS)
  axis l < BL where BL*l_block + l < L
  axis n < BS where BS*n_block + n < S
  axis d < D
  %low: f32 = constant {value = -inf} at 22:5
  %zero: f32 = constant {value = 0.0} at 22:5
  %m0: f32[l] = broadcast %low {axes = [l]} at 22:5
  %s0: f32[l] = broadcast %zero {axes = [l]} at 22:5
  %a0: f32[l, d] = broadcast %zero {axes = [l, d]} at 23:5
  %q: f32[b, h, l_block, l, d] = load q[b, h, BL*l_block + l, d] at 24:5
  %row_max: f32[b, h, l_block, l],
  %row_sum: f32[b, h, l_block, l],
  %acc: f32[b, h, l_block, l, d] = for n_block (
    %row_max.1: f32[b, h, l_block, n_block, l] = %m0,
    %row_sum.1: f32[b, h, l_block, n_block, l] = %s0,
    %acc.1: f32[b, h, l_block, n_block, l, d] = %a0
  ) {
    %k: f32[b, h, n_block, n, d] = load k[b, h, BS*n_block + n, d] at 26:5
    %dot: f32[b, h, l_block, n_block, l, n] = dot %q, %k {axis = d, precision = ieee} at 26:5
    %argument: f32 = argument {scalar = scale} at 26:5
    %s: f32[b, h, l_block, n_block, l, n] = mul %dot, %argument at 26:5
    %i: i32[n_block, n] = index {form = BS*n_block + n} at 27:5
    %j: i32[l_block, l] = index {form = BL*l_block + l} at 27:5
    %le: bool[l_block, n_block, l, n] = le %i, %j at 27:5
    %s.1: f32[b, h, l_block, n_block, l, n] = select %le, %s, %low at 27:5
    %reduce: f32[b, h, l_block, n_block, l] = reduce %s.1 {axis = n, combine = maximum} at 28:5
    %new_max: f32[b, h, l_block, n_block, l] = maximum %row_max.1, %reduce at 28:5
    %sub: f32[b, h, l_block, n_block, l, n] = sub %s.1, %new_max at 29:5
    %p: f32[b, h, l_block, n_block, l, n] = exp %sub at 29:5
    %sub.1: f32[b, h, l_block, n_block, l] = sub %row_max.1, %new_max at 29:5
    %alpha: f32[b, h, l_block, n_block, l] = exp %sub.1 at 29:5
    %mul: f32[b, h, l_block, n_block, l] = mul %row_sum.1, %alpha at 30:5
    %reduce.1: f32[b, h, l_block, n_block, l] = reduce %p {axis = n, combine = add} at 30:5
    %row_sum.2: f32[b, h, l_block, n_block, l] = add %mul, %reduce.1 at 30:5
    %mul.1: f32[b, h, l_block, n_block, l, d] = mul %acc.1, %alpha at 31:5
    %v: f32[b, h, n_block, n, d] = load v[b, h, BS*n_block + n, d] at 31:5
    %dot.1: f32[b, h, l_block, n_block, l, d] = dot %p, %v {axis = n, precision = ieee} at 31:5
    %acc.2: f32[b, h, l_block, n_block, l, d] = add %mul.1, %dot.1 at 31:5
    yield %new_max, %row_sum.2, %acc.2
  } at 25:5
  %div: f32[b, h, l_block, l, d] = div %acc, %row_sum at 32:5
  store out[b, h, BL*l_block + l, d] = %div at 32:5
}
"""
ARGMAX = """
kernel argmax_rows(x: in f32[M, N], y: out i32[M]) at "search.py":3:1 {
  size M
  size N
  program m < M
  axis n < N
  %x: f32[m, n] = load x[m, n] at 5:5
  %reduce: i32[m] = reduce %x {axis = n, combine = argmax} at 6:5
  store y[m] = %reduce at 6:5
}
"""
RESHAPE = """
kernel halves(x: in f32[M, 8], y: out f32[M, 4]) at "halves.py":3:1 {
  size M
  program m < M
  axis n < 8
  axis half < 2
  axis j < 4
  %x: f32[m, n] = load x[m, n] at 5:5
  %r: f32[m, half, j] = reshape %x {source = [n], target = [half, j]} at 6:5
  %s: f32[m, j] = reduce %r {axis = half, combine = add} at 7:5
  store y[m, j] = %s at 7:5
}
"""

FIBONACCI = """
kernel fibonacci(y: out i32[2]) {
  loop t < 10
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %a: i32, %b: i32 = for t (%a.1: i32[t] = %zero, %b.1: i32[t] = %one) {
    %sum: i32[t] = add %a.1, %b.1
    yield %b.1, %sum
  }
  store y[0] = %a
  store y[1] = %b
}
"""


def kernel(text: str) -> Kernel:
    return verify(parse_kernel(text))


def generic(kernel: Kernel, sizes: Mapping[str, int], seed: int = 0, *, integers: bool = False) -> dict[str, Any]:
    """Arguments of a kernel: normal numbers, or small integers whose sums and products are exact in f32."""
    generator = np.random.default_rng(seed)
    arguments: dict[str, Any] = {}
    for parameter in bind(kernel, sizes).parameters:
        if not isinstance(parameter, Buffer):
            arguments[parameter.name] = 0.5
        elif parameter.role != "out":
            shape = [extent.evaluate({}) for extent in parameter.shape]
            values = generator.integers(-3, 4, shape) if integers else generator.standard_normal(shape)
            arguments[parameter.name] = values.astype(parameter.dtype.numpy)
    return arguments
