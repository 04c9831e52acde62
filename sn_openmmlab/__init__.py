"""Switchable Normalization for OpenMMLab.

The tensor functions and the layers need only torch. Where mmengine is installed, by either of its
distributions, importing this package registers `SN`, `SyncSN`, `BRN`, `WithNorm`, the hooks and the
weight initializer `SNPretrained` in its root registry, and so in every toolbox.
"""

from importlib.util import find_spec

from sn_openmmlab.layers.batch_average import batch_average, update_bn
from sn_openmmlab.layers.batch_renorm import BatchRenorm
from sn_openmmlab.layers.convert.calibration import calibrate_switch_norm
from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from sn_openmmlab.layers.convert.inflate import inflate_module, inflate_weights
from sn_openmmlab.layers.convert.ratio_groups import split_ratio_weights, split_ratios
from sn_openmmlab.layers.convert.sync import convert_sync_switch_norm, revert_sync_switch_norm
from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

__all__ = [
    'BatchRenorm',
    'SwitchNorm',
    'SyncSwitchNorm',
    'batch_average',
    'calibrate_switch_norm',
    'convert_batch_norm',
    'convert_sync_switch_norm',
    'inflate_module',
    'inflate_weights',
    'revert_sync_switch_norm',
    'sparsify',
    'split_ratio_weights',
    'split_ratios',
    'update_bn',
]
__version__ = '0.1.0'

if find_spec('mmengine') is not None:
    from sn_openmmlab import registration  # noqa: F401
