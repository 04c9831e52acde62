"""What a forward pass changes beside its outputs, kept from before it."""

from collections import defaultdict

import torch
from torch import Tensor, nn

from sn_openmmlab.inference.random_state import RandomState


class KeptState:
    """The buffers of a model and the state of the random numbers.

    Args:
        model: its buffers must stay the same tensors from here on.
    """

    def __init__(self, model: nn.Module) -> None:
        groups: dict[tuple, list[Tensor]] = defaultdict(list)
        for buffer in model.buffers():
            groups[buffer.device, buffer.dtype].append(buffer)
        self._own = list(groups.values())
        self._kept = [[buffer.clone() for buffer in group] for group in self._own]
        self.random = RandomState.now()

    @torch.no_grad()
    def keep(self) -> None:
        """Keep the state of now."""
        for own, kept in zip(self._own, self._kept, strict=True):
            torch._foreach_copy_(kept, own)
        self.random = RandomState.now()

    @torch.no_grad()
    def restore_buffers(self) -> None:
        """Set the buffers back."""
        for own, kept in zip(self._own, self._kept, strict=True):
            torch._foreach_copy_(own, kept)
