"""Kernels to batch whose programs go different ways: branches, whiles, runtime integers, access at computed places."""

from __future__ import annotations

# Branches on a value, on a place, nested; loads that only one branch may make; stores in both.
BRANCHES = """
kernel branches(x: in f32[M], limit: in i32[M], table: in f32[4], y: inout f32[M, 3], z: inout f32[M]) {
  size M
  program row < M
  axis n < 3
  %x: f32[row] = load x[row]
  %limit: i32[row] = load limit[row]
  %zero: i32 = constant {value = 0}
  %three: i32 = constant {value = 3}
  %row: i32[row] = index {form = row}
  %enough: bool[row] = gt %limit, %zero
  %first: bool[row] = lt %row, %three
  %a: f32[row] = if %enough () {
    %t: f32[row] = if %first () {
      %known: f32[row] = load table[row]
      store z[row] = %known
      yield %known
    } () {
      yield %x
    }
    %twice: f32[row] = add %t, %t
    %wide: f32[row, n] = broadcast %twice {axes = [n]}
    store y[row, n] = %wide
    yield %twice
  } () {
    %lane: i32[n] = index {form = n}
    %number: f32[n] = cast %lane
    %sum: f32[row, n] = add %number, %x
    store y[row, n] = %sum where 1 <= n
    yield %x
  }
  %b: f32[row] = if %first () {
    yield %a
  } () {
    store z[row] = %a
    yield %x
  }
  store y[row, 0] = %b
}
"""

# Each program halves its number as often as it takes, and stores what it sees on the way.
HALVING = """
kernel halving(x: in i32[M], steps: inout i32[M], seen: inout i32[M, 8], counts: inout i32[8]) {
  size M
  integer at[row]
  program row < M
  %x: i32[row] = load x[row]
  %zero: i32 = constant {value = 0}
  %one: i32 = constant {value = 1}
  %two: i32 = constant {value = 2}
  %odd: i32[row] = floormod %x, %two
  %is_odd: bool[row] = eq %odd, %one
  if %is_odd () {
    %left: i32[row], %count: i32[row] = while %x, %zero (%v: i32[row], %c: i32[row]) {
      %more: bool[row] = gt %v, %zero
      yield %more
    } (%w: i32[row], %d: i32[row]) {
      %half: i32[row] = floordiv %w, %two
      %next: i32[row] = add %d, %one
      let %d {integer = at}
      store seen[row, at] = %half
      atomic %one, %d {buffer = counts, combine = add}
      yield %half, %next
    }
    store steps[row] = %count
    yield
  } () {
    yield
  }
}
"""

# Sequences of different lengths, each in its own tensor row: the length is loaded, and bounds the tiles.
LENGTHS = """
kernel lengths(length: in i32[M], start: in i32[M], x: in f32[N], sums: out f32[M], top: out f32[M]) {
  size M
  size N
  tile BN = 2
  integer count[row]
  integer first[row]
  program row < M
  loop step < cdiv(count, BN)
  axis n < BN where BN*step + n < count
  %length: i32[row] = load length[row]
  let %length {integer = count}
  %start: i32[row] = load start[row]
  let %start {integer = first}
  %zero: f32 = constant {value = 0.0}
  %low: f32 = constant {value = -100.0}
  %sum: f32[row], %top: f32[row] = for step (%s: f32[row, step] = %zero, %t: f32[row, step] = %low) {
    %x: f32[row, step, n] = load x[BN*step + first + n]
    %part: f32[row, step] = reduce %x {axis = n, combine = add}
    %s.1: f32[row, step] = add %s, %part
    %best: f32[row, step] = reduce %x {axis = n, combine = maximum}
    %t.1: f32[row, step] = maximum %t, %best
    yield %s.1, %t.1
  }
  store sums[row] = %sum
  store top[row] = %top
}
"""

# Rows of a table by number, none where the number is negative.
EMBEDDING = """
kernel embedding(number: in i32[M], table: in f32[V, D], y: out f32[M, D]) {
  size M
  size V
  size D
  program row < M
  axis d < D
  %number: i32[row] = load number[row]
  %zero: i32 = constant {value = 0}
  %real: bool[row] = ge %number, %zero
  %place: i32[d] = index {form = d}
  %y: f32[row, d] = load_at %number, %place, %real {buffer = table, masked = true, fill = 0.0}
  store y[row, d] = %y
}
"""
