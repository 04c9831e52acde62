"""The names by which configs know the layers."""

from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

LAYERS: dict[str, type[SwitchNorm]] = {
    **dict.fromkeys(('SN', 'SN1d', 'SN2d', 'SN3d'), SwitchNorm),
    'SyncSN': SyncSwitchNorm,
}
