"""Calls of the rivals under Triton's interpreter; for a process of its own that has TRITON_INTERPRET=1."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from typing import Any

import torch


def timed(payload: Mapping[str, Any], arrays: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the function of the module of the same name; gives its `seconds` and its `result`."""
    name = payload["function"]
    function = getattr(importlib.import_module(f"bench.rivals.triton.{name}"), name)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    start = time.perf_counter()
    result = function(**tensors, **payload["keywords"])
    return {"seconds": time.perf_counter() - start}, {"result": result.numpy()}
