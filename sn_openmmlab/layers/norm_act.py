"""Switchable Normalization followed by an activation in the same layer."""

from torch import Tensor

from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm


class SwitchNormAct(SwitchNorm):
    """What a BatchNorm with an activation of its own becomes, such as timm's ``BatchNormAct2d``.

    ``convert_batch_norm`` makes it out of one. It keeps the children of that layer: ``drop`` and
    ``act``, as far as there are any, run after the normalization, in this order.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalize ``x``, (N, C, *), then drop and activate; the output is like it."""
        y = super().forward(x)
        for name in ('drop', 'act'):
            step = getattr(self, name, None)
            if step is not None:
                y = step(y)
        return y


class SyncSwitchNormAct(SwitchNormAct, SyncSwitchNorm):
    """The same with the batch of several processes, from timm's ``SyncBatchNormAct``."""
