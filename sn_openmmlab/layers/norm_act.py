"""Switchable Normalization followed by an activation in the same layer."""

import torch
from torch import Tensor
from torch.fx import Proxy

from sn_openmmlab.layers.leaf import record_leaf
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm


class SwitchNormAct(SwitchNorm):
    """What a BatchNorm with an activation of its own becomes, such as timm's ``BatchNormAct2d``.

    ``convert_batch_norm`` makes it out of one. It keeps the children of that layer: ``drop`` and
    ``act``, as far as there are any, run after the normalization, in this order.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalize ``x``, (N, C, *), then drop and activate; the output is like it."""
        if torch.jit.is_scripting():
            return self._activate(self._normalize(x))
        else:  # not compiled there
            return self._forward(x)

    @torch.jit.unused
    def _forward(self, x: Tensor) -> Tensor:
        # As one call: what is recorded of the layer holds the activation already.
        return record_leaf(self, x) if isinstance(x, Proxy) else self._activate(self._normalize(x))

    def _activate(self, y: Tensor) -> Tensor:
        if hasattr(self, 'drop'):
            y = self.drop(y)
        if hasattr(self, 'act'):
            y = self.act(y)
        return y


class SyncSwitchNormAct(SwitchNormAct, SyncSwitchNorm):
    """The same with the batch of several processes, from timm's ``SyncBatchNormAct``."""
