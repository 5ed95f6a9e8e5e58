"""attention: a Triton kernel, generated from attention.py:20.

attention(
    q: float32[B, H, L, D], k: float32[B, H, S, D], v: float32[B, H, S, D], scale: float32
) -> out: float32[B, H, L, D]
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
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    H,
    L,
    S,
    D,
    q_stride_b,
    q_stride_h,
    q_stride_l,
    q_stride_d,
    k_stride_b,
    k_stride_h,
    k_stride_s,
    k_stride_d,
    v_stride_b,
    v_stride_h,
    v_stride_s,
    v_stride_d,
    out_stride_b,
    out_stride_h,
    out_stride_l,
    out_stride_d,
    BL: tl.constexpr,
    BS: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(0)
    l_block = pid % tl.cdiv(L, BL)
    h = pid // tl.cdiv(L, BL) % H
    b = pid // tl.cdiv(L, BL) // H
    offs_l = BL * l_block + tl.arange(0, BL)
    offs_d = tl.arange(0, BLOCK_D)
    mask_l = offs_l < L
    mask_d = offs_d < D
    # line 22
    row_max = tl.full((BL,), float("-inf"), tl.float32)
    row_sum = tl.zeros((BL,), tl.float32)
    # line 23
    acc = tl.zeros((BL, BLOCK_D), tl.float32)
    # line 24
    q_ptrs = q_ptr + b * q_stride_b + h * q_stride_h + offs_l[:, None] * q_stride_l + offs_d[None, :] * q_stride_d
    q = tl.load(q_ptrs, mask=mask_l[:, None] & mask_d[None, :], other=0.0)
    # line 25
    for n_block in range(tl.cdiv(tl.minimum(tl.minimum(BL * l_block + BL, L), S), BS)):
        offs_n = BS * n_block + tl.arange(0, BS)
        mask_n = offs_n < S
        # line 26
        k_ptrs = k_ptr + b * k_stride_b + h * k_stride_h + offs_n[:, None] * k_stride_s + offs_d[None, :] * k_stride_d
        k = tl.load(k_ptrs, mask=mask_n[:, None] & mask_d[None, :], other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        # line 27
        s_1 = tl.where(offs_n[None, :] <= offs_l[:, None], s, float("-inf"))
        # line 28
        new_max = tl.maximum(
            row_max,
            tl.reduce(tl.where(mask_n[None, :], s_1, float("-inf")), 1, maximum),
            propagate_nan=tl.PropagateNan.ALL,
        )
        # line 29
        p = tl.exp(s_1 - new_max[:, None])
        alpha = tl.exp(row_max - new_max)
        # line 30
        p_1 = tl.where(mask_n[None, :], p, 0.0)
        row_sum = row_sum * alpha + tl.sum(p_1, axis=1)
        # line 31
        v_ptrs = v_ptr + b * v_stride_b + h * v_stride_h + offs_n[:, None] * v_stride_s + offs_d[None, :] * v_stride_d
        v = tl.load(v_ptrs, mask=mask_n[:, None] & mask_d[None, :], other=0.0)
        acc = tl.dot(p_1, v, acc * alpha[:, None], input_precision="ieee")
        row_max = new_max
    # line 32
    out_ptrs = out_ptr + b * out_stride_b + h * out_stride_h
    out_ptrs += offs_l[:, None] * out_stride_l + offs_d[None, :] * out_stride_d
    tl.store(out_ptrs, tl.div_rn(acc, row_sum[:, None]), mask=mask_l[:, None] & mask_d[None, :])


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, *, BL: int = 16, BS: int = 16, num_warps: int = 4
) -> torch.Tensor:
    """Launch attention_kernel."""
    _check_tensor("q", q, torch.float32, 4, q.device)
    _check_tensor("k", k, torch.float32, 4, q.device)
    _check_tensor("v", v, torch.float32, 4, q.device)
    B, H, L, D = q.shape
    S = k.shape[2]
    _check_shape("k", k, (B, H, S, D))
    _check_shape("v", v, (B, H, S, D))
    _check_tile("BL", BL, 1)
    _check_tile("BS", BS, 16)
    out = torch.empty((B, H, L, D), dtype=torch.float32, device=q.device)
    _check_offsets(q, k, v, out)
    BLOCK_D = max(16, triton.next_power_of_2(D))
    programs = B * H * triton.cdiv(L, BL)
    if programs > 0:
        attention_kernel[(programs,)](
            q,
            k,
            v,
            out,
            scale,
            H,
            L,
            S,
            D,
            q.stride(0),
            q.stride(1),
            q.stride(2),
            q.stride(3),
            k.stride(0),
            k.stride(1),
            k.stride(2),
            k.stride(3),
            v.stride(0),
            v.stride(1),
            v.stride(2),
            v.stride(3),
            out.stride(0),
            out.stride(1),
            out.stride(2),
            out.stride(3),
            BL=BL,
            BS=BS,
            BLOCK_D=BLOCK_D,
            num_warps=num_warps,
            enable_fp_fusion=True,
        )
    return out


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
