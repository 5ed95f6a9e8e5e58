"""Kernels as IR text: the five of the demo, and odd ones that each need one thing of the target."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.ir.dtypes import DTYPES
from kdsl.ir.kernel import Kernel
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import verify

VECTOR_ADD = """
kernel vector_add(x: in DT[N], y: in DT[N], z: out DT[N]) at "vector_add.py":7:1 {
  size N
  tile BN = 64
  program n_block < cdiv(N, BN)
  axis n < BN where BN*n_block + n < N
  %x: DT[n_block, n] = load x[BN*n_block + n] at 9:5
  %y: DT[n_block, n] = load y[BN*n_block + n] at 9:5
  %add: DT[n_block, n] = add %x, %y at 9:5
  store z[BN*n_block + n] = %add at 9:5
}
"""

SOFTMAX = """
kernel softmax(x: in DT[M, N], y: out DT[M, N]) at "softmax.py":7:1 {
  size M
  size N
  tile BM = 8
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis N_lane < N
  %load: DT[m_block, m, N_lane] = load x[BM*m_block + m, N_lane] at 9:5
  %row: f32[m_block, m, N_lane] = cast %load at 9:5
  %largest: f32[m_block, m] = reduce %row {axis = N_lane, combine = maximum} at 10:5
  %sub: f32[m_block, m, N_lane] = sub %row, %largest at 10:5
  %e: f32[m_block, m, N_lane] = exp %sub at 10:5
  %reduce: f32[m_block, m] = reduce %e {axis = N_lane, combine = add} at 11:5
  %div: f32[m_block, m, N_lane] = div %e, %reduce at 11:5
  %cast: DT[m_block, m, N_lane] = cast %div at 11:5
  store y[BM*m_block + m, N_lane] = %cast at 11:5
}
"""

MATMUL = """
kernel matmul(a: in DT[M, K], b: in DT[K, N], bias: in DT[N], c: out DT[M, N]) at "matmul.py":9:1 {
  size M
  size N
  size K
  tile BM = 64
  tile BN = 64
  tile BK = 32
  program m_block < cdiv(M, BM)
  program n_block < cdiv(N, BN)
  loop k_block < cdiv(K, BK)
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  axis k < BK where BK*k_block + k < K
  %zero: f32 = constant {value = 0.0} at 12:9
  %acc: f32[m, n] = broadcast %zero {axes = [m, n]} at 12:9
  %acc.3: f32[m_block, n_block, m, n] = for k_block (%acc.1: f32[m_block, n_block, k_block, m, n] = %acc) {
    %load: DT[m_block, k_block, m, k] = load a[BM*m_block + m, BK*k_block + k] at 14:13
    %load.1: DT[n_block, k_block, n, k] = load b[BK*k_block + k, BN*n_block + n] at 14:13
    %dot: f32[m_block, n_block, k_block, m, n] = dot %load, %load.1 {axis = k, precision = ieee} at 14:13
    %acc.2: f32[m_block, n_block, k_block, m, n] = add %acc.1, %dot at 14:13
    yield %acc.2
  } at 13:9
  %load.2: DT[n_block, n] = load bias[BN*n_block + n] at 15:9
  %cast: f32[n_block, n] = cast %load.2 at 15:9
  %h: f32[m_block, n_block, m, n] = add %acc.3, %cast at 15:9
  %maximum: f32[m_block, n_block, m, n] = maximum %h, %zero at 16:9
  %cast.1: DT[m_block, n_block, m, n] = cast %maximum at 16:9
  store c[BM*m_block + m, BN*n_block + n] = %cast.1 at 16:9
}
"""

LAYERNORM = """
kernel layernorm(x: in DT[M, N], weight: in DT[N], bias: in DT[N], eps: f32, y: out DT[M, N]) at "layernorm.py":9:1 {
  size M
  size N
  tile BM = 8
  require N > 0 at 10:1
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis N_lane < N
  %load: DT[m_block, m, N_lane] = load x[BM*m_block + m, N_lane] at 11:5
  %row: f32[m_block, m, N_lane] = cast %load at 11:5
  %index: i32 = index {form = N} at 12:5
  %count: f32 = cast %index at 12:5
  %reduce: f32[m_block, m] = reduce %row {axis = N_lane, combine = add} at 12:5
  %mean: f32[m_block, m] = div %reduce, %count at 12:5
  %centred: f32[m_block, m, N_lane] = sub %row, %mean at 13:5
  %mul: f32[m_block, m, N_lane] = mul %centred, %centred at 14:5
  %reduce.1: f32[m_block, m] = reduce %mul {axis = N_lane, combine = add} at 14:5
  %variance: f32[m_block, m] = div %reduce.1, %count at 14:5
  %argument: f32 = argument {scalar = eps} at 15:5
  %add: f32[m_block, m] = add %variance, %argument at 15:5
  %rsqrt: f32[m_block, m] = rsqrt %add at 15:5
  %normal: f32[m_block, m, N_lane] = mul %centred, %rsqrt at 15:5
  %load.1: DT[N_lane] = load weight[N_lane] at 16:5
  %cast: f32[N_lane] = cast %load.1 at 16:5
  %mul.1: f32[m_block, m, N_lane] = mul %normal, %cast at 16:5
  %load.2: DT[N_lane] = load bias[N_lane] at 16:5
  %cast.1: f32[N_lane] = cast %load.2 at 16:5
  %add.1: f32[m_block, m, N_lane] = add %mul.1, %cast.1 at 16:5
  %cast.2: DT[m_block, m, N_lane] = cast %add.1 at 16:5
  store y[BM*m_block + m, N_lane] = %cast.2 at 16:5
}
"""

_ATTENTION = """
kernel attention(q: in DT[B, H, L, D], k: in DT[B, H, S, D], v: in DT[B, H, S, D], scale: f32, out: out DT[B, H, L, D])
    at "attention.py":11:1 {
  size B
  size H
  size L
  size S
  size D
  tile BL = 64
  tile BS = 32
  program b < B
  program h < H
  program l_block < cdiv(L, BL)
  loop n_block < TRIPS
  axis l < BL where BL*l_block + l < L
  axis n < BS where BOUND
  axis d < D
  %low: f32 = constant {value = -inf} at 13:5
  %zero: f32 = constant {value = 0.0} at 13:5
  %row_max: f32[l] = broadcast %low {axes = [l]} at 13:5
  %row_sum: f32[l] = broadcast %zero {axes = [l]} at 13:5
  %acc: f32[l, d] = broadcast %zero {axes = [l, d]} at 14:5
  %row_max.3: f32[b, h, l_block, l], %row_sum.3: f32[b, h, l_block, l], %acc.3: f32[b, h, l_block, l, d] = for n_block (
      %row_max.1: f32[b, h, l_block, n_block, l] = %row_max, %row_sum.1: f32[b, h, l_block, n_block, l] = %row_sum,
      %acc.1: f32[b, h, l_block, n_block, l, d] = %acc) {
    %load: DT[b, h, l_block, l, d] = load q[b, h, BL*l_block + l, d] at 16:9
    %load.1: DT[b, h, NB n_block, n, d] = load k[b, h, BS*n_block + n, d] at 16:9
    %dot: f32[b, h, l_block, n_block, l, n] = dot %load, %load.1 {axis = d, precision = ieee} at 16:9
    %argument: f32 = argument {scalar = scale} at 16:9
    %s: f32[b, h, l_block, n_block, l, n] = mul %dot, %argument at 16:9
    MASK
    %reduce: f32[b, h, l_block, n_block, l] = reduce %SCORE {axis = n, combine = maximum} at 19:9
    %new_max: f32[b, h, l_block, n_block, l] = maximum %row_max.1, %reduce at 19:9
    %sub: f32[b, h, l_block, n_block, l, n] = sub %SCORE, %new_max at 20:9
    %p: f32[b, h, l_block, n_block, l, n] = exp %sub at 20:9
    %sub.1: f32[b, h, l_block, n_block, l] = sub %row_max.1, %new_max at 20:9
    %alpha: f32[b, h, l_block, n_block, l] = exp %sub.1 at 20:9
    %mul: f32[b, h, l_block, n_block, l] = mul %row_sum.1, %alpha at 21:9
    %reduce.1: f32[b, h, l_block, n_block, l] = reduce %p {axis = n, combine = add} at 21:9
    %row_sum.2: f32[b, h, l_block, n_block, l] = add %mul, %reduce.1 at 21:9
    %mul.1: f32[b, h, l_block, n_block, l, d] = mul %acc.1, %alpha at 22:9
    %cast: DT[b, h, l_block, n_block, l, n] = cast %p at 22:9
    %load.2: DT[b, h, NB n_block, n, d] = load v[b, h, BS*n_block + n, d] at 22:9
    %dot.1: f32[b, h, l_block, n_block, l, d] = dot %cast, %load.2 {axis = n, precision = ieee} at 22:9
    %acc.2: f32[b, h, l_block, n_block, l, d] = add %mul.1, %dot.1 at 22:9
    yield %new_max, %row_sum.2, %acc.2
  } at 15:5
  %div: f32[b, h, l_block, l, d] = div %acc.3, %row_sum.3 at 23:5
  %cast.1: DT[b, h, l_block, l, d] = cast %div at 23:5
  store out[b, h, BL*l_block + l, d] = %cast.1 at 23:5
}
"""

ATTENTION = (
    _ATTENTION.replace("TRIPS", "cdiv(S, BS)")
    .replace("BOUND", "BS*n_block + n < S")
    .replace("NB ", "")
    .replace("MASK", "")
    .replace("SCORE", "s")
)
CAUSAL_ATTENTION = (
    _ATTENTION.replace("TRIPS", "cdiv(min(BL*l_block + BL, L, S), BS)")
    .replace("BOUND", "BS*n_block + n < min(BL*l_block + BL, L, S)")
    .replace("NB ", "l_block, ")
    .replace(
        "MASK",
        """%index: i32[n_block, n] = index {form = BS*n_block + n} at 18:9
    %index.1: i32[l_block, l] = index {form = BL*l_block + l} at 18:9
    %le: bool[l_block, n_block, l, n] = le %index, %index.1 at 18:9
    %t: f32[b, h, l_block, n_block, l, n] = select %le, %s, %low at 18:9""",
    )
    .replace("SCORE", "t")
)

ARGMAX_ROWS = """
kernel argmax_rows(x: in DT[M, N], y: out i32[M], z: out i32[M]) {
  size M
  size N
  tile BM = 8
  program m_block < cdiv(M, BM)
  axis m < BM where BM*m_block + m < M
  axis n < N
  %x: DT[m_block, m, n] = load x[BM*m_block + m, n]
  %high: i32[m_block, m] = reduce %x {axis = n, combine = argmax}
  %low: i32[m_block, m] = reduce %x {axis = n, combine = argmin}
  store y[BM*m_block + m] = %high
  store z[BM*m_block + m] = %low
}
"""

SPLIT_HALVES = """
kernel split_halves(x: in f32[M, 12], y: out f32[M, 3, 4]) {
  size M
  program m < M
  axis i < 12
  axis q < 3
  axis r < 4
  %x: f32[m, i] = load x[m, i]
  %t: f32[m, q, r] = reshape %x {source = [i], target = [q, r]}
  %sum: f32[m, r] = reduce %t {axis = q, combine = add}
  %y: f32[m, q, r] = add %t, %sum
  store y[m, q, r] = %y
}
"""

ACCUMULATE = """
kernel accumulate(x: in f32[M, N], total: inout f32[M], count: out i32[M]) {
  size M
  size N
  tile BM = 4
  tile BN = 16
  program m_block < cdiv(M, BM)
  loop n_block < cdiv(N, BN)
  loop t < 3
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  for n_block () {
    %x: f32[m_block, n_block, m, n] = load x[BM*m_block + m, BN*n_block + n]
    %s: f32[m_block, n_block, m] = reduce %x {axis = n, combine = add}
    %old: f32[m_block, m] = load total[BM*m_block + m]
    %new: f32[m_block, n_block, m] = add %old, %s
    store total[BM*m_block + m] = %new
    yield
  }
  %one: i32 = constant {value = 1}
  %start: i32[m] = broadcast %one {axes = [m]}
  %power: i32[m] = for t (%p: i32[t, m] = %start) {
    %q: i32[t, m] = add %p, %p
    yield %q
  }
  store count[BM*m_block + m] = %power
}
"""

NESTED = """
kernel nested(x: in f32[M, N], y: out f32[M]) {
  size M
  size N
  tile BN = 8
  program m < M
  loop i < 1 + m
  loop n_block < cdiv(N, BN)
  axis n < BN where BN*n_block + n < N
  %zero: f32 = constant {value = 0.0}
  %all: f32[m] = for i (%outer: f32[m, i] = %zero) {
    %inner: f32[m, i] = for n_block (%acc: f32[m, i, n_block] = %outer) {
      %x: f32[i, n_block, n] = load x[i, BN*n_block + n]
      %s: f32[i, n_block] = reduce %x {axis = n, combine = add}
      %next: f32[m, i, n_block] = add %acc, %s
      yield %next
    }
    yield %inner
  }
  store y[m] = %all
}
"""

STRIDED_WINDOW = """
kernel strided_window(x: in f32[L], w: in f32[3], y: out f32[P]) {
  size L
  size P = floordiv(L + 1, 2)
  tile BL = 16
  program l_block < cdiv(P, BL)
  loop t < 3
  axis l < BL where BL*l_block + l < P
  %zero: f32 = constant {value = 0.0}
  %start: f32[l] = broadcast %zero {axes = [l]}
  %acc: f32[l_block, l] = for t (%a: f32[l_block, t, l] = %start) {
    %x: f32[l_block, t, l] = load x[2*BL*l_block + 2*l + t - 1] where 0 <= 2*BL*l_block + 2*l + t - 1 < L fill 0.0
    %w: f32[t] = load w[t]
    %p: f32[l_block, t, l] = mul %x, %w
    %b: f32[l_block, t, l] = add %a, %p
    yield %b
  }
  store y[BL*l_block + l] = %acc
}
"""

REVERSE = """
kernel reverse(x: in f32[N], y: out f32[N], z: out f32[2*N]) {
  size N
  tile BN = 16
  program n_block < cdiv(N, BN)
  axis n < BN where BN*n_block + n < N
  axis u < 2
  %x: f32[n_block, n] = load x[N - 1 - BN*n_block - n]
  store y[BN*n_block + n] = %x
  %i: i32[u] = index {form = u}
  %f: f32[u] = cast %i
  %p: f32[n_block, n, u] = add %x, %f
  store z[2*BN*n_block + 2*n + u] = %p
}
"""

PARTIAL_STORE = """
kernel partial_store(x: in f32[M, N], y: inout f32[M, N], S: i32) {
  size M
  size N
  size K
  tile BM = 4
  tile BN = 8
  program m_block < cdiv(M, BM)
  program n_block < cdiv(N, BN)
  axis m < BM where BM*m_block + m < M
  axis n < BN where BN*n_block + n < N
  %x: f32[m_block, n_block, m, n] = load x[BM*m_block + m, BN*n_block + n]
  %s: i32 = argument {scalar = S}
  %f: f32 = cast %s
  %v: f32[m_block, n_block, m, n] = mul %x, %f
  store y[BM*m_block + m, BN*n_block + n] = %v where BN*n_block + n < BM*m_block + m + K
}
"""


def kernel(text: str, dtype: str = "f32") -> Kernel:
    """The kernel of a text in which DT stands for the dtype."""
    return verify(parse_kernel(text.replace("DT", dtype)))


NUMPY = {name: dtype.numpy for name, dtype in DTYPES.items()}

INTEGER_BINARY = ["add", "sub", "mul", "floordiv", "floormod", "maximum", "minimum", "and", "or", "xor", "shl", "shr"]
FLOAT_BINARY = ["add", "sub", "mul", "div", "maximum", "minimum"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
BINARY = {*INTEGER_BINARY, *FLOAT_BINARY, *COMPARISONS, "pow", "atan2"}


def each_op(dtype: str, ops: Sequence[tuple[str, str]], lanes: int = 64) -> Kernel:
    """A kernel that stores the result of each (op, result dtype) of x[N] and y[N], or of x alone, in `<op>_<dtype>`."""
    outputs = ", ".join(f"{op}_{result}: out {result}[N]" for op, result in ops)
    lines = []
    for op, result in ops:
        name, operands = f"{op}_{result}", "%x, %y" if op in BINARY else "%x"
        lines += [f"%{name}: {result}[n_block, n] = {op} {operands}", f"store {name}[{lanes}*n_block + n] = %{name}"]
    return kernel(
        f"""
kernel each_op(x: in DT[N], y: in DT[N], {outputs}) {{
  size N
  program n_block < cdiv(N, {lanes})
  axis n < {lanes} where {lanes}*n_block + n < N
  %x: DT[n_block, n] = load x[{lanes}*n_block + n]
  %y: DT[n_block, n] = load y[{lanes}*n_block + n]
  {chr(10).join(lines)}
}}""",
        dtype,
    )
