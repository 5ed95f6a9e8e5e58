"""Matrix multiplication with bias: one BM x BN tile of the result a program, accumulated in f32."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a, b, bias, c, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    row_inside, column_inside = (rows < M)[:, None], (columns < N)[None, :]
    a_tile = a + rows[:, None] * stride_a + depth[None, :]
    b_tile = b + depth[:, None] * stride_b + columns[None, :]
    accumulator = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a_tile, mask=row_inside & (k + depth < K)[None, :], other=0.0)
        right = tl.load(b_tile, mask=(k + depth < K)[:, None] & column_inside, other=0.0)
        accumulator = tl.dot(left, right, accumulator, input_precision="ieee")
        a_tile += BK
        b_tile += BK * stride_b
    accumulator += tl.load(bias + columns, mask=columns < N, other=0.0)[None, :].to(tl.float32)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], accumulator, mask=row_inside & column_inside)


def matmul(a, b, bias, BM=64, BN=64, BK=32):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BM), triton.cdiv(N, BN))
    matmul_kernel[grid](a, b, bias, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BM, BN, BK)
    return c
