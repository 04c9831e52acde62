"""Makes the layer known to every OpenMMLab toolbox."""

from mmengine.registry import MODELS

from sn_openmmlab.checkpoints.safe_globals import allow_mmengine_checkpoints
from sn_openmmlab.layers.switch_norm import SwitchNorm

# Reloading the module registers anew.
MODELS.register_module(name=['SN', 'SN1d', 'SN2d', 'SN3d'], force=True, module=SwitchNorm)
allow_mmengine_checkpoints()
