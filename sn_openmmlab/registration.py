"""Makes the layers and their weight initializer known to every OpenMMLab toolbox.

It also lets torch read mmengine's checkpoints, and counters of operations know the layers.
"""

from mmengine.registry import MODELS, WEIGHT_INITIALIZERS

from sn_openmmlab.checkpoints.files.safe_globals import allow_mmengine_checkpoints
from sn_openmmlab.checkpoints.pretrained import SNPretrained
from sn_openmmlab.flop_counts import register_flop_counts
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

_LAYERS = {**dict.fromkeys(('SN', 'SN1d', 'SN2d', 'SN3d'), SwitchNorm), 'SyncSN': SyncSwitchNorm}

for _registry, _items in ((MODELS, _LAYERS), (WEIGHT_INITIALIZERS, {'SNPretrained': SNPretrained})):
    for _name, _item in _items.items():
        # Reloading this module registers anew, but another project's item is not replaced.
        _present = _registry.module_dict.get(_name)
        _ours = getattr(_present, '__module__', None) == _item.__module__
        _registry.register_module(name=_name, force=_ours, module=_item)
allow_mmengine_checkpoints()
register_flop_counts()
