"""NumPy arrays as CPU torch tensors and back, bit for bit, and allocations that show what was never written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from .memory import GARBAGE

# dtypes that NumPy lacks travel as their bits: ml_dtypes name -> torch attribute.
_AS_BITS = {
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2": "float8_e5m2",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
}


def to_torch(array: np.ndarray[Any, Any]) -> Any:
    """A CPU tensor with a copy of `array`: the same shape and element bits, contiguous."""
    import torch

    array = np.array(array, order="C", copy=True)
    if array.dtype.name not in _AS_BITS:
        return torch.from_numpy(array)
    bits = torch.from_numpy(array.view(f"i{array.dtype.itemsize}"))
    return bits.view(getattr(torch, _AS_BITS[array.dtype.name]))


def to_numpy(tensor: Any) -> np.ndarray[Any, Any]:
    """A contiguous copy of a CPU tensor; bf16 and fp8 become the ml_dtypes type of that name."""
    import torch

    tensor = tensor.detach().contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _AS_BITS:
        return np.array(tensor.numpy())
    bits = tensor.view(torch.int16 if tensor.element_size() == 2 else torch.int8)
    return np.array(bits.numpy()).view(getattr(ml_dtypes, name))


def fill_with_poison(tensor: Any) -> None:
    """NaN for floats, True for bool, bytes of 0xA5 for integers: what `memory.poison` gives."""
    import torch

    if tensor.dtype == torch.bool or tensor.is_floating_point() or tensor.is_complex():
        tensor.fill_(True if tensor.dtype == torch.bool else float("nan"))
    elif tensor.numel():
        pattern = torch.full((tensor.element_size(),), GARBAGE, dtype=torch.uint8).view(tensor.dtype)
        tensor.copy_(pattern.expand(tensor.shape))


@contextlib.contextmanager
def poisoned_allocations() -> Iterator[None]:
    """Within it, memory that torch leaves uninitialised (`empty` and its kin) is filled with poison."""
    import torch

    allocators = {
        torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty, torch.Tensor.new_empty_strided,
    }  # fmt: skip

    class Poison(torch.overrides.TorchFunctionMode):  # type: ignore[misc]  # mypy skips torch, so it is Any
        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            result = function(*args, **(kwargs or {}))
            if function in allocators:
                fill_with_poison(result)
            return result

    with Poison():
        yield
