"""Kernels in IR text for the tests of ops that move lanes: every axis ragged where the op allows it."""

from __future__ import annotations

SCANS = """
kernel scans(x: in i32[M, N], y: in f32[M, N], o: out i32[M, N], p: out f32[M, N], q: out i32[M, N], r: out f32[M],
  s: out i32[M]) {
  size M
  size N
  tile BM = 4
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  %x: i32[m_block, m, n] = load x[BM*m_block + m, n]
  %y: f32[m_block, m, n] = load y[BM*m_block + m, n]
  %sums: i32[m_block, m, n] = scan %x {axis = n, combine = add, reverse = true}
  %peaks: f32[m_block, m, n] = scan %y {axis = n, combine = maximum}
  %a: i32[m_block, m, n], %b: i32[m_block, m, n] = scan_by %x, %sums {axis = n} (
    %s: i32[m_block, m, n], %t: i32[m_block, m, n], %u: i32[m_block, m, n], %v: i32[m_block, m, n]
  ) {
    %su: i32[m_block, m, n] = mul %s, %u
    %tu: i32[m_block, m, n] = mul %t, %u
    %w: i32[m_block, m, n] = add %tu, %v
    yield %su, %w
  }
  %p: i32[m_block, m], %r: i32[m_block, m] = reduce_by %x, %x {axis = n} (
    %h: i32[m_block, m, n], %i: i32[m_block, m, n], %j: i32[m_block, m, n], %k: i32[m_block, m, n]
  ) {
    %hj: i32[m_block, m, n] = mul %h, %j
    %ij: i32[m_block, m, n] = mul %i, %j
    %l: i32[m_block, m, n] = add %ij, %k
    yield %hj, %l
  }
  %z: f32[m_block, m] = reduce_by %y {axis = n} (%c: f32[m_block, m, n], %d: f32[m_block, m, n]) {
    %half: f32 = constant {value = 0.5}
    %e: f32[m_block, m, n] = add %c, %d
    %f: f32[m_block, m, n] = mul %e, %half
    %g: f32[m_block, m, n] = add %f, %f
    yield %g
  }
  store o[BM*m_block + m, n] = %sums
  store p[BM*m_block + m, n] = %peaks
  store q[BM*m_block + m, n] = %b
  store r[BM*m_block + m] = %z
  store s[BM*m_block + m] = %r
}
"""
ORDERS = """
kernel orders(
  x: in f32[M, N], o: out f32[M, N], lanes: out i32[M, N], best: out f32[M, 2], where: out i32[M, 2],
  counts: out i32[M, 8]
) {
  size M
  size N
  tile BM = 4
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  axis k < 2
  axis bin < 8
  %x: f32[m_block, m, n] = load x[BM*m_block + m, n]
  %i: i32[n] = index {form = n}
  %sorted: f32[m_block, m, n], %order: i32[m_block, m, n] = sort %x, %i {axis = n, descending = true}
  %top: f32[m_block, m, k], %at: i32[m_block, m, k] = topk %x {axis = n, target = k}
  %whole: i32[m_block, m, n] = cast %x
  %count: i32[m_block, m, bin] = histogram %whole {axis = n, target = bin}
  store o[BM*m_block + m, n] = %sorted
  store lanes[BM*m_block + m, n] = %order
  store best[BM*m_block + m, k] = %top
  store where[BM*m_block + m, k] = %at
  store counts[BM*m_block + m, bin] = %count
}
"""
MOVES = """
kernel moves(x: in f32[M, 8], i: in i32[M, 4], o: out f32[M, 8], p: out f32[M, 16], q: out f32[M, 8], r: out f32[M, 4],
  t: out f32[8, M], c: out i32[16]) {
  size M
  tile BM = 4
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < 8
  axis j < 4
  axis h < 2
  axis w < 16
  axis v < 8
  axis bin < 16
  %x: f32[m_block, m, n] = load x[BM*m_block + m, n]
  %i: i32[m_block, m, j] = load i[BM*m_block + m, j]
  %flipped: f32[m_block, m, n] = flip %x {axis = n}
  %both: f32[m_block, m, w] = concat %x, %flipped {source = [n, n], target = w}
  %pairs: f32[m_block, m, j, h] = reshape %x {source = [n], target = [j, h]}
  %even: f32[m_block, m, j], %odd: f32[m_block, m, j] = split %pairs {axis = h}
  %swapped: f32[m_block, m, j, h] = join %odd, %even {axis = h}
  %back: f32[m_block, m, n] = reshape %swapped {source = [j, h], target = [n]}
  %taken: f32[m_block, m, j] = gather %x, %i {axis = n}
  %other: f32[m_block, m, v] = relabel %x {source = n, target = v}
  %twice: f32[m_block, m, v] = add %other, %other
  %flat: i32[w] = index {form = w}
  %count: i32[bin] = histogram %flat {axis = w, target = bin}
  store o[BM*m_block + m, n] = %flipped
  store p[BM*m_block + m, w] = %both
  store q[BM*m_block + m, n] = %back
  store r[BM*m_block + m, j] = %taken
  store t[v, BM*m_block + m] = %twice
  store c[bin] = %count
}
"""
PRODUCTS = """
kernel products(
  a: in f32[M, K], b: in f32[K, N], v: in f32[K], c: out f32[M, N], d: out f32[M, N], e: out f32[M, N],
  f: out f32[M], g: out f32[M]
) {
  size M
  size N
  size K
  axis m < M
  axis n < N
  axis k < K
  %a: f32[m, k] = load a[m, k]
  %b: f32[n, k] = load b[k, n]
  %c: f32[m, n] = dot %a, %b {axis = k, precision = tf32}
  %d: f32[m, n] = dot %a, %b {axis = k, precision = bf16}
  %e: f32[m, n] = dot %a, %b {axis = k, precision = tf32x3}
  %v: f32[k] = load v[k]
  %f: f32[m] = dot %a, %v {axis = k, precision = tf32}
  %g: f32[m] = dot %a, %v {axis = k, precision = bf16}
  store c[m, n] = %c
  store d[m, n] = %d
  store e[m, n] = %e
  store f[m] = %f
  store g[m] = %g
}
"""
GATHERS = """
kernel gathers(x: in f32[4, 8], i: in u8[2, 8], j: in i64[4], o: out f32[4, 2, 8], p: out f32[4], q: out f32[8]) {
  axis r < 4
  axis n < 8
  axis a < 2
  %x: f32[r, n] = load x[r, n]
  %i: u8[n, a] = load i[a, n]
  %taken: f32[r, n, a] = gather %x, %i {axis = n}
  %j: i64[r] = load j[r]
  %diagonal: f32[r] = gather %x, %j {axis = n}
  %two: i32 = constant {value = 2}
  %row: f32[n] = gather %x, %two {axis = r}
  store o[r, a, n] = %taken
  store p[r] = %diagonal
  store q[n] = %row
}
"""
