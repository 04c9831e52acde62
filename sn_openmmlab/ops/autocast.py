"""Turn autocast off: normalization chooses its own types, as BatchNorm does."""

from contextlib import AbstractContextManager, nullcontext

import torch


def without_autocast(device: torch.device) -> AbstractContextManager:
    """Return a context in which autocast is off on `device`."""
    # Tensors without values, on which shapes are inferred, have no autocast.
    if device.type != 'meta' and torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()
