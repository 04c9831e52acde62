"""The norm layers: ours, by their names in configs, and torch's."""

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from sn_openmmlab.layers.batch_renorm import BatchRenorm
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

LAYERS: dict[str, type[SwitchNorm]] = {
    **dict.fromkeys(('SN', 'SN1d', 'SN2d', 'SN3d'), SwitchNorm),
    'SyncSN': SyncSwitchNorm,
}
# Not SN: a method that it is compared with.
RENORM_LAYERS: dict[str, type[BatchRenorm]] = dict.fromkeys(
    ('BRN', 'BRN1d', 'BRN2d', 'BRN3d'), BatchRenorm
)

# _NormBase is the base of BatchNorm, InstanceNorm, SN and BatchRenorm.
NORMS: tuple[type[nn.Module], ...] = (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)
