"""softmax: a Triton kernel, generated from rows.py:10.

softmax(x: float32[M, N]) -> y: float32[M, N]
"""

import torch
import triton
import triton.language as tl

# Offsets within a tensor are 32 bits wide; a last tile may reach past the end by less than 2**20 elements.
MAX_OFFSET = 2**31 - 2**20


@triton.jit
def maximum(a, b):
    """The larger; NaN if either is NaN, unlike tl.max."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def softmax_kernel(
    x_ptr, y_ptr, M, N, x_stride_m, x_stride_n, y_stride_m, y_stride_n, BM: tl.constexpr, BLOCK_N: tl.constexpr
):
    m_block = tl.program_id(0)
    offs_m = BM * m_block + tl.arange(0, BM)
    offs_n = tl.arange(0, BLOCK_N)
    mask_m = offs_m < M
    mask_n = offs_n < N
    # line 12
    x_ptrs = x_ptr + offs_m[:, None] * x_stride_m + offs_n[None, :] * x_stride_n
    x = tl.load(x_ptrs, mask=mask_m[:, None] & mask_n[None, :], other=float("-inf"))
    # line 13
    row_max = tl.reduce(x, 1, maximum)
    e = tl.exp(x - row_max[:, None])
    # line 14
    y = tl.div_rn(e, tl.sum(tl.where(mask_n[None, :], e, 0.0), axis=1)[:, None])
    y_ptrs = y_ptr + offs_m[:, None] * y_stride_m + offs_n[None, :] * y_stride_n
    tl.store(y_ptrs, y, mask=mask_m[:, None] & mask_n[None, :])


def softmax(x: torch.Tensor, *, BM: int = 4, num_warps: int = 4) -> torch.Tensor:
    """Launch softmax_kernel."""
    _check_tensor("x", x, torch.float32, 2, x.device)
    M, N = x.shape
    _check_tile("BM", BM, 1)
    y = torch.empty((M, N), dtype=torch.float32, device=x.device)
    _check_offsets(x, y)
    BLOCK_N = max(1, triton.next_power_of_2(N))
    programs = triton.cdiv(M, BM)
    if programs > 0:
        softmax_kernel[(programs,)](
            x,
            y,
            M,
            N,
            x.stride(0),
            x.stride(1),
            y.stride(0),
            y.stride(1),
            BM=BM,
            BLOCK_N=BLOCK_N,
            num_warps=num_warps,
            enable_fp_fusion=True,
        )
    return y


def _check_tensor(name, tensor, dtype, rank, device):
    if tensor.dtype != dtype:
        raise ValueError(f"{name} has dtype {tensor.dtype}, expected {dtype}")
    if tensor.dim() != rank:
        raise ValueError(f"{name} has {tensor.dim()} dimensions, expected {rank}")
    if tensor.device != device:
        raise ValueError(f"{name} is on {tensor.device}, expected {device}")


def _check_tile(name, size, least):
    if size < least or size & (size - 1):
        raise ValueError(f"{name} must be a power of two of at least {least}, not {size}")


def _check_offsets(*tensors):
    for tensor in tensors:
        if sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)) >= MAX_OFFSET:
            raise ValueError(f"a tensor of shape {tuple(tensor.shape)} spans too many elements for 32-bit offsets")
