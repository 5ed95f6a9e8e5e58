"""Kernels in IR text for the tests of access at computed places and of branches."""

from __future__ import annotations

ACCESSES = """
kernel accesses(x: in f32[N], i: in i32[N], s: inout f32[N], total: inout f32[1], peak: inout f32[4],
  seen: inout i32[1], old: out i32[2], lock: inout i32[1]) {
  size N
  program n_block < 2
  axis n < 8 where 8*n_block + n < N
  %at: i32[n_block, n] = index {form = 8*n_block + n}
  %i: i32[n_block, n] = load_at %at {buffer = i}
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %four: i32 = constant {value = 4}
  %x: f32[n_block, n] = load_at %i {buffer = x}
  store_at %x, %at {buffer = s}
  atomic %x, %zero {buffer = total, combine = add}
  %low: i32[n_block, n] = floormod %at, %four
  atomic %x, %low {buffer = peak, combine = maximum}
  %before: i32[n_block] = atomic %one, %zero {buffer = seen, combine = add}
  store old[n_block] = %before
  %was: i32[n_block] = atomic_cas %zero, %one, %zero {buffer = lock}
}
"""
BRANCHES = """
kernel branches(x: in f32[M, N], ends: in i32[M], o: out f32[M, N], steps: out i32[M], parity: out i32[M]) {
  size M
  size N
  program m < M
  integer stop[m]
  loop t < stop
  axis n < N where n < stop
  axis l < N
  %end: i32[m] = load ends[m]
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %two: i32 = constant {value = 2}
  %big: f32 = constant {value = 100.0}
  let %end {integer = stop}
  %x: f32[m, l] = load x[m, l]
  %start: f32[m, n] = load x[m, n]
  %sum: f32[m, n] = for t (%a: f32[m, t, n] = %start) {
    %b: f32[m, t, n] = add %a, %start
    yield %b
  }
  store o[m, l] = %x
  store o[m, n] = %sum
  %c: i32[m], %n: i32[m] = while %end, %zero (%v: i32[m], %w: i32[m]) {
    %more: bool[m] = gt %v, %one
    yield %more
  } (%p: i32[m], %q: i32[m]) {
    %half: i32[m] = truncdiv %p, %two
    %next: i32[m] = add %q, %one
    yield %half, %next
  }
  store steps[m] = %n
  %rest: i32[m] = truncmod %end, %two
  %odd: bool[m] = eq %rest, %one
  %d: i32[m] = if %odd () {
    %e: i32[m] = neg %end
    store o[m, 0] = %big
    yield %e
  } () {
    %again: bool[m] = gt %end, %two
    %f: i32[m] = if %again () {
      yield %two
    } () {
      yield %zero
    }
    yield %f
  }
  store parity[m] = %d
}
"""
SEARCH = """
kernel first_zero(x: in i32[M, N], o: out i32[M]) {
  size M
  size N
  program m < M
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %size: i32 = index {form = N}
  %last: i32[m] = while %zero (%i: i32[m]) {
    %inside: bool[m] = lt %i, %size
    %row: i32[m] = index {form = m}
    %x: i32[m] = load_at %row, %i, %inside {buffer = x, masked = true, fill = 0}
    %full: bool[m] = ne %x, %zero
    %go: bool[m] = and %inside, %full
    yield %go
  } (%j: i32[m]) {
    %next: i32[m] = add %j, %one
    yield %next
  }
  store o[m] = %last
}
"""
REPORTS = """
kernel reports(x: in f32[N], o: out f32[N]) {
  size N
  axis n < N
  %x: f32[n] = load x[n]
  %zero: f32 = constant {value = 0.0}
  %fine: bool[n] = ge %x, %zero
  assert %fine {message = "x is \\"negative\\" — ∅"}
  print %x, %fine {message = "values"}
  %r: f32[n] = sqrt %x
  store o[n] = %r
}
"""
# Sums over runs of lanes, rows of which start and stop where a loaded number says; an inner loop over another such.
RUNS = """
kernel runs(x: in f32[T], starts: in i32[B], stops: in i64[B], o: out f32[B], p: inout f32[T], q: out i32[B]) {
  size T
  size B
  program b < B
  integer start[b]
  integer stop[b]
  integer deep[b, t]
  loop t < cdiv(stop - start, 4)
  loop u < deep
  axis n < 4 where 4*t + n + start < stop
  axis k < 4 where k < deep
  %start: i32[b] = load starts[b]
  let %start {integer = start}
  %stop: i64[b] = load stops[b]
  let %stop {integer = stop}
  %zero: f32 = constant {value = 0.0}
  %none: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %sum: f32[b], %count: i32[b] = for t (%a: f32[b, t] = %zero, %c: i32[b, t] = %none) {
    %x: f32[b, t, n] = load x[4*t + n + start]
    %part: f32[b, t] = reduce %x {axis = n, combine = add}
    %next: f32[b, t] = add %a, %part
    store p[4*t + n + start] = %x
    %depth: i32[t] = index {form = t + 1}
    let %depth {integer = deep}
    %i: i32[k] = index {form = k}
    %low: i32[b, t] = reduce %i {axis = k, combine = add}
    %more: i32[b, t] = for u (%d: i32[b, t, u] = %c) {
      %e: i32[b, t, u] = add %d, %one
      yield %e
    }
    %both: i32[b, t] = add %more, %low
    %far: i32[b] = index {form = stop}
    %all: i32[b, t] = add %both, %far
    yield %next, %all
  }
  store o[b] = %sum
  store q[b] = %count
}
"""
ATOMICS = """
kernel atomics(x: in i32[8], y: in bf16[8], m: in bool[8], a: inout i32[2], b: inout i32[2], c: inout i32[2],
  d: inout i32[2], e: inout i32[2], f: inout i32[2], g: inout bf16[2], lock: inout i32[2], old: out i32[2]) {
  program p < 2
  axis n < 4
  %i: i32[p, n] = index {form = 4*p + n}
  %x: i32[p, n] = load x[4*p + n]
  %y: bf16[p, n] = load y[4*p + n]
  %m: bool[p, n] = load m[4*p + n]
  %two: i32 = constant {value = 2}
  %at: i32[p, n] = floormod %i, %two
  atomic %x, %at, %m {buffer = a, combine = add, masked = true}
  atomic %x, %at, %m {buffer = b, combine = maximum, masked = true}
  atomic %x, %at, %m {buffer = c, combine = minimum, masked = true}
  atomic %x, %at, %m {buffer = d, combine = and, masked = true}
  atomic %x, %at, %m {buffer = e, combine = or, masked = true}
  atomic %x, %at, %m {buffer = f, combine = xor, masked = true}
  atomic %y, %at, %m {buffer = g, combine = add, masked = true}
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %slot: i32[p] = index {form = p}
  %wanted: bool[p] = load m[p]
  %was: i32[p] = atomic_cas %zero, %one, %slot, %wanted {buffer = lock, masked = true}
  %next: i32[p] = atomic %two, %slot {buffer = lock, combine = exchange}
  %shown: i32[p] = select %wanted, %was, %next
  store old[p] = %shown
}
"""
