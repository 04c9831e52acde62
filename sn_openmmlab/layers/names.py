"""What norm layers there are: ours by the names that configs know them by, and torch's."""

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

LAYERS: dict[str, type[SwitchNorm]] = {
    **dict.fromkeys(('SN', 'SN1d', 'SN2d', 'SN3d'), SwitchNorm),
    'SyncSN': SyncSwitchNorm,
}

# Of SN, BatchNorm and InstanceNorm the first is the base.
NORMS: tuple[type[nn.Module], ...] = (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)
