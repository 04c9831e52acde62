"""Start a kernel, and count blocks."""

from typing import Any

import torch
import triton
from torch import Tensor


def launch(kernel: Any, programs: int, tensor: Tensor, *args: Any, **constants: Any) -> None:
    """Run `programs` programs of a kernel on the device of its first argument, `tensor`."""
    if programs == 0:
        return
    # Triton launches on the current device, which need not be the tensor's.
    with torch.cuda.device_of(tensor):
        kernel[(programs,)](tensor, *args, **constants)


def block(size: int, limit: int) -> int:
    """Return the power of two that covers `size`, at most `limit`, itself a power of two."""
    return min(triton.next_power_of_2(max(size, 1)), limit)


def blocks(size: int, length: int) -> int:
    """Return how many blocks of `length` cover `size`."""
    return triton.cdiv(size, length)
