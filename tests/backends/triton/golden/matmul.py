"""matmul: a Triton kernel, generated from matmul.py:9.

matmul(a: bfloat16[M, K], b: bfloat16[K, N], bias: float32[N]) -> c: bfloat16[M, N]
"""

import torch
import triton
import triton.language as tl

# Offsets within a tensor are 32 bits wide; a last tile may reach past the end by less than 2**20 elements.
MAX_OFFSET = 2**31 - 2**20


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    c_ptr,
    M,
    N,
    K,
    a_stride_m,
    a_stride_k,
    b_stride_k,
    b_stride_n,
    bias_stride_n,
    c_stride_m,
    c_stride_n,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    pid = tl.program_id(0)
    n_block = pid % tl.cdiv(N, BN)
    m_block = pid // tl.cdiv(N, BN)
    offs_m = BM * m_block + tl.arange(0, BM)
    offs_n = BN * n_block + tl.arange(0, BN)
    mask_m = offs_m < M
    mask_n = offs_n < N
    # line 12
    acc = tl.zeros((BM, BN), tl.float32)
    # line 13
    for k_block in range(tl.cdiv(K, BK)):
        offs_k = BK * k_block + tl.arange(0, BK)
        mask_k = offs_k < K
        # line 14
        a_ptrs = a_ptr + offs_m[:, None] * a_stride_m + offs_k[None, :] * a_stride_k
        a = tl.load(a_ptrs, mask=mask_m[:, None] & mask_k[None, :], other=0.0)
        b_ptrs = b_ptr + offs_k[:, None] * b_stride_k + offs_n[None, :] * b_stride_n
        b = tl.load(b_ptrs, mask=mask_n[None, :] & mask_k[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    # line 15
    bias = tl.load(bias_ptr + offs_n * bias_stride_n, mask=mask_n)
    h = acc + bias[None, :]
    # line 16
    c_ptrs = c_ptr + offs_m[:, None] * c_stride_m + offs_n[None, :] * c_stride_n
    tl.store(c_ptrs, (h * tl.sigmoid(h)).to(tl.bfloat16), mask=mask_m[:, None] & mask_n[None, :])


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor,
    *,
    BM: int = 32,
    BN: int = 32,
    BK: int = 16,
    num_warps: int = 4,
) -> torch.Tensor:
    """Launch matmul_kernel."""
    _check_tensor("a", a, torch.bfloat16, 2, a.device)
    _check_tensor("b", b, torch.bfloat16, 2, a.device)
    _check_tensor("bias", bias, torch.float32, 1, a.device)
    M, K = a.shape
    N = b.shape[1]
    _check_shape("b", b, (K, N))
    _check_shape("bias", bias, (N,))
    _check_tile("BM", BM, 1)
    _check_tile("BN", BN, 1)
    _check_tile("BK", BK, 16)
    c = torch.empty((M, N), dtype=torch.bfloat16, device=a.device)
    _check_offsets(a, b, bias, c)
    programs = triton.cdiv(M, BM) * triton.cdiv(N, BN)
    if programs > 0:
        matmul_kernel[(programs,)](
            a,
            b,
            bias,
            c,
            M,
            N,
            K,
            a.stride(0),
            a.stride(1),
            b.stride(0),
            b.stride(1),
            bias.stride(0),
            c.stride(0),
            c.stride(1),
            BM=BM,
            BN=BN,
            BK=BK,
            num_warps=num_warps,
            enable_fp_fusion=True,
        )
    return c


def _check_tensor(name, tensor, dtype, rank, device):
    if tensor.dtype != dtype:
        raise ValueError(f"{name} has dtype {tensor.dtype}, expected {dtype}")
    if tensor.dim() != rank:
        raise ValueError(f"{name} has {tensor.dim()} dimensions, expected {rank}")
    if tensor.device != device:
        raise ValueError(f"{name} is on {tensor.device}, expected {device}")


def _check_shape(name, tensor, shape):
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, expected {shape}")


def _check_tile(name, size, least):
    if size < least or size & (size - 1):
        raise ValueError(f"{name} must be a power of two of at least {least}, not {size}")


def _check_offsets(*tensors):
    for tensor in tensors:
        if sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)) >= MAX_OFFSET:
            raise ValueError(f"a tensor of shape {tuple(tensor.shape)} spans too many elements for 32-bit offsets")
