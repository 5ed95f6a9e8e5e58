"""Kernels to batch: the ready-made ones, others in IR text, three as an importer of Triton kernels gives them."""

from __future__ import annotations

import functools
import importlib

from kdsl.ir.kernel import Kernel
from kdsl.runtime.examples import bind_example, examples_of


@functools.cache
def ready_made(name: str, example: int) -> Kernel:
    """The IR of a kernel of the package, for the dtypes and constants of an example, from 0."""
    kernel = getattr(importlib.import_module(f"kdsl.kernels.{name}"), name)
    return bind_example(kernel, examples_of(kernel)[example]).kernel


# One program a row; a row number that no tile axis goes with, sums and maxima of a row, and a running sum.
ROWS = """
kernel rows(x: in f32[M, N], weight: in f32[M], y: out f32[M, N], best: out i32[M], sums: out f32[M, N]) {
  size M
  size N
  program row < M
  axis n < next_pow2(N) where n < N
  %x: f32[row, n] = load x[row, n]
  %max: f32[row] = reduce %x {axis = n, combine = maximum}
  %best: i32[row] = reduce %x {axis = n, combine = argmax}
  %weight: f32[row] = load weight[row]
  %shifted: f32[row, n] = sub %x, %max
  %scaled: f32[row, n] = mul %shifted, %weight
  %place: i32[row] = index {form = row}
  %number: f32[row] = cast %place
  %y: f32[row, n] = add %scaled, %number
  %sums: f32[row, n] = scan %x {axis = n, combine = add}
  store y[row, n] = %y
  store best[row] = %best
  store sums[row, n] = %sums
}
"""

# Several loops over one axis: a sum, a maximum and a count are carried, and each step stores a column block.
GATHER = """
kernel gather(x: in f32[M, N], total: out f32[M], top: out f32[M], count: out i32[M], double: out f32[M, N]) {
  size M
  size N
  tile BM = 2
  tile BN = 2
  program m_block < cdiv(M, BM)
  loop n_block < cdiv(N, BN)
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  %zero: f32 = constant {value = 0.0}
  %low: f32 = constant {value = -1000.0}
  %none: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %zeros: f32[m] = broadcast %zero {axes = [m]}
  %lows: f32[m] = broadcast %low {axes = [m]}
  %t: f32[m_block, m], %h: f32[m_block, m], %c: i32 = for n_block (
    %t.1: f32[m_block, n_block, m] = %zeros,
    %h.1: f32[m_block, n_block, m] = %lows,
    %c.1: i32[n_block] = %none
  ) {
    %x: f32[m_block, n_block, m, n] = load x[BM*m_block + m, BN*n_block + n]
    %sum: f32[m_block, n_block, m] = reduce %x {axis = n, combine = add}
    %t.2: f32[m_block, n_block, m] = add %sum, %t.1
    %max: f32[m_block, n_block, m] = reduce %x {axis = n, combine = maximum}
    %h.2: f32[m_block, n_block, m] = maximum %h.1, %max
    %c.2: i32[n_block] = add %c.1, %one
    %double: f32[m_block, n_block, m, n] = add %x, %x
    store double[BM*m_block + m, BN*n_block + n] = %double
    yield %t.2, %h.2, %c.2
  }
  store total[BM*m_block + m] = %t
  store top[BM*m_block + m] = %h
  store count[BM*m_block + m] = %c
}
"""

# The trip count of each program is its own, and so is what it stores in the loop.
TRIANGLE = """
kernel triangle(x: in f32[M, M], sums: out f32[M], steps: inout f32[M, M]) {
  size M
  program row < M
  loop column < row + 1
  %zero: f32 = constant {value = 0.0}
  %s: f32[row] = for column (%s.1: f32[row, column] = %zero) {
    %x: f32[row, column] = load x[row, column]
    %s.2: f32[row, column] = add %s.1, %x
    store steps[row, column] = %s.2
    yield %s.2
  }
  store sums[row] = %s
}
"""

# -- as an importer of Triton kernels gives them: flat tensors, affine offsets, bounds for masks ---------------------

FLAT_ADD = """
kernel flat_add(x: in f32[n], y: in f32[n], out: out f32[n]) {
  size n
  program pid < cdiv(n, 8)
  axis i < 8
  %x: f32[pid, i] = load x[8*pid + i] where 8*pid + i < n fill 0.0
  %y: f32[pid, i] = load y[8*pid + i] where 8*pid + i < n fill 0.0
  %sum: f32[pid, i] = add %x, %y
  store out[8*pid + i] = %sum where 8*pid + i < n
}
"""

FLAT_SOFTMAX = """
kernel flat_softmax(x: in f32[n_rows*stride], y: inout f32[n_rows*stride]) {
  size n_rows
  size n_columns
  size stride
  require stride >= n_columns
  program pid < n_rows
  axis i < next_pow2(n_columns)
  %x: f32[pid, i] = load x[stride*pid + i] where i < n_columns fill -inf
  %max: f32[pid] = reduce %x {axis = i, combine = maximum}
  %shifted: f32[pid, i] = sub %x, %max
  %weights: f32[pid, i] = exp %shifted
  %sum: f32[pid] = reduce %weights {axis = i, combine = add}
  %y: f32[pid, i] = div %weights, %sum
  store y[stride*pid + i] = %y where i < n_columns
}
"""

FLAT_MATMUL = """
kernel flat_matmul(a: in f32[M*K], b: in f32[K*N], c: out f32[M*N]) {
  size M
  size N
  size K
  program pid_m < cdiv(M, 4)
  program pid_n < cdiv(N, 2)
  loop step < cdiv(K, 2)
  axis i < 4
  axis j < 2
  axis k < 2
  %zero: f32 = constant {value = 0.0}
  %zeros: f32[i, j] = broadcast %zero {axes = [i, j]}
  %acc: f32[pid_m, pid_n, i, j] = for step (%acc.1: f32[pid_m, pid_n, step, i, j] = %zeros) {
    %a: f32[pid_m, step, i, k] = load a[4*K*pid_m + K*i + 2*step + k] where 4*pid_m + i < M and 2*step + k < K fill 0.0
    %b: f32[pid_n, step, j, k] = load b[2*N*step + N*k + 2*pid_n + j] where 2*step + k < K and 2*pid_n + j < N fill 0.0
    %dot: f32[pid_m, pid_n, step, i, j] = dot %a, %b {axis = k, precision = ieee}
    %acc.2: f32[pid_m, pid_n, step, i, j] = add %acc.1, %dot
    yield %acc.2
  }
  store c[4*N*pid_m + N*i + 2*pid_n + j] = %acc where 4*pid_m + i < M and 2*pid_n + j < N
}
"""
