"""What an emitted host function checks with: small functions that the module contains when it calls them."""

from __future__ import annotations

CHECKS: dict[str, str] = {
    "_check_tensor": """
def _check_tensor(name, tensor, dtype, rank, device):
    if tensor.dtype != dtype:
        raise ValueError(f"{name} has dtype {tensor.dtype}, expected {dtype}")
    if tensor.dim() != rank:
        raise ValueError(f"{name} has {tensor.dim()} dimensions, expected {rank}")
    if tensor.device != device:
        raise ValueError(f"{name} is on {tensor.device}, expected {device}")
""",
    "_check_shape": """
def _check_shape(name, tensor, shape):
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, expected {shape}")
""",
    "_check_tile": """
def _check_tile(name, size, least):
    if size < least or size & (size - 1):
        raise ValueError(f"{name} must be a power of two of at least {least}, not {size}")
""",
    "_check_offsets": """
def _check_offsets(*tensors):
    for tensor in tensors:
        if sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)) >= MAX_OFFSET:
            raise ValueError(f"a tensor of shape {tuple(tensor.shape)} spans too many elements for 32-bit offsets")
""",
}
CHECKS = {name: text.strip() for name, text in CHECKS.items()}
