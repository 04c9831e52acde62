"""Makes the layers, ``WithSN`` and the weight initializer known to every OpenMMLab toolbox.

It also lets torch read mmengine's checkpoints, and counters of operations know the layers.
"""

from mmengine.registry import MODELS, WEIGHT_INITIALIZERS

from sn_openmmlab.checkpoints.files.safe_globals import allow_mmengine_checkpoints
from sn_openmmlab.checkpoints.pretrained import SNPretrained
from sn_openmmlab.flop_counts import register_flop_counts
from sn_openmmlab.layers.names import LAYERS
from sn_openmmlab.with_sn import build_with_sn

_MODELS = {**LAYERS, 'WithSN': build_with_sn}

for _registry, _items in ((MODELS, _MODELS), (WEIGHT_INITIALIZERS, {'SNPretrained': SNPretrained})):
    for _name, _item in _items.items():
        # Reloading this module registers anew, but another project's item is not replaced.
        _present = _registry.module_dict.get(_name)
        _ours = getattr(_present, '__module__', None) == _item.__module__
        _registry.register_module(name=_name, force=_ours, module=_item)
allow_mmengine_checkpoints()
register_flop_counts()
