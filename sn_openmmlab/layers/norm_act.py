"""Switchable Normalization followed by an activation in the same layer."""

import torch
from torch import Tensor
from torch.fx import Proxy

from sn_openmmlab.layers.leaf import record_leaf
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm


class SwitchNormAct(SwitchNorm):
    """Replace a BatchNorm that has its own activation, such as timm's `BatchNormAct2d`.

    `convert_batch_norm` makes one from the other. The children of that layer stay: `drop` and
    `act`, where they exist, run after the normalization, in this order.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalize `x`, (N, C, *), then drop and activate; the output has its shape and type."""
        if torch.jit.is_scripting():
            return self._activate(self._normalize(x))
        else:  # torch.jit.script compiles no branch that it cannot reach
            return self._forward(x)

    @torch.jit.unused
    def _forward(self, x: Tensor) -> Tensor:
        # One call in a torch.fx graph, which includes the activation.
        return record_leaf(self, x) if isinstance(x, Proxy) else self._activate(self._normalize(x))

    def _activate(self, y: Tensor) -> Tensor:
        if hasattr(self, 'drop'):
            y = self.drop(y)
        if hasattr(self, 'act'):
            y = self.act(y)
        return y


class SyncSwitchNormAct(SwitchNormAct, SyncSwitchNorm):
    """Replace timm's `SyncBatchNormAct`: the same, with the batch of several processes."""
