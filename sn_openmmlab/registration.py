"""Makes the layers known to every OpenMMLab toolbox, and lets torch read mmengine's checkpoints."""

from mmengine.registry import MODELS

from sn_openmmlab.checkpoints.safe_globals import allow_mmengine_checkpoints
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

_LAYERS = {**dict.fromkeys(('SN', 'SN1d', 'SN2d', 'SN3d'), SwitchNorm), 'SyncSN': SyncSwitchNorm}

for _name, _layer in _LAYERS.items():
    # Reloading this module registers anew, but another project's layer is not replaced.
    _present = MODELS.module_dict.get(_name)
    _ours = getattr(_present, '__module__', None) == _layer.__module__
    MODELS.register_module(name=_name, force=_ours, module=_layer)
allow_mmengine_checkpoints()
