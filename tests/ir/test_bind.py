"""Kernels bound to sizes that leave nothing to do."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from kdsl.diagnostics import KdslError
from kdsl.interpreter import Mode, run
from kdsl.ir.kernel import bind
from kdsl.ir.text import parse_kernel
from kdsl.ir.verify import verify

FLAT = """kernel scale(x: in f32[M*N], bias: in f32[M], y: out f32[M*N], sums: out f32[M], last: inout f32[M]) {
  size M
  size N
  tile B = 2
  program p < cdiv(M, B)
  loop k < 2
  axis m < B where B*p + m < M
  axis n < N
  %x: f32[p, m, n] = load x[N*B*p + N*m + n]
  %bias: f32[p, m] = load bias[B*p + m]
  %sum: f32[p, m] = for k (%a: f32[p, m] = %bias) {
    %s: f32[p, m] = reduce %x {axis = n, combine = add}
    %b: f32[p, m] = add %a, %s
    yield %b
  }
  store sums[B*p + m] = %sum
  %y: f32[p, m, n] = add %x, %bias
  store y[N*B*p + N*m + n] = %y
  store last[B*p + m] = %bias where B*p + m < N
}
"""


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize(("m", "n"), [(3, 0), (0, 3), (0, 0), (1, 1), (3, 2)])
def test_rows_without_elements_and_grids_without_programs(m: int, n: int, mode: Mode) -> None:
    kernel = verify(bind(verify(parse_kernel(FLAT)), {"M": m, "N": n}))
    x, bias = np.arange(m * n, dtype=np.float32), np.arange(1, m + 1, dtype=np.float32)
    last = np.full(m, 7, np.float32)
    got = run(kernel, {"x": x, "bias": bias, "last": last}, mode=mode)
    rows = x.reshape(m, n)
    assert np.array_equal(got["y"], (rows + bias[:, np.newaxis]).reshape(-1))
    assert np.array_equal(got["sums"], bias + 2 * rows.sum(axis=1))
    assert np.array_equal(got["last"], np.where(np.arange(m) < n, bias, last))


STRIDED = """kernel strided(x: in i32[1 + 2*S], y: out i32[3]) {
  size S
  axis m < 3
  %x: i32[m] = load x[S*m]
  %y: i32 = reduce %x {axis = m, combine = add}
  %i: i32[m] = index {form = m}
  %z: i32[m] = add %i, %y
  store y[m] = %z
}
"""


@pytest.mark.parametrize("stride", [0, 1, 2])
def test_a_stride_of_zero_meets_one_element_in_every_lane(stride: int) -> None:
    kernel = verify(bind(verify(parse_kernel(STRIDED)), {"S": stride}))
    x = np.arange(5, 6 + 2 * stride, dtype=np.int32)
    assert run(kernel, {"x": x})["y"].tolist() == [x[stride * np.arange(3)].sum() + i for i in range(3)]


def test_a_size_of_zero_that_divides_is_refused() -> None:
    text = STRIDED.replace("load x[S*m]", "load x[m - mod(m, S)]")
    with pytest.raises(KdslError, match=r"K0504.*S = 0 \(mod of m by zero\)"):
        bind(verify(parse_kernel(text)), {"S": 0})
