"""Registration of layers, hooks, initializers and a transform in mmengine, so in every toolbox.

It also lets torch read mmengine's checkpoints, and counters of operations know the layers.
"""

from mmengine.registry import HOOKS, MODELS, TRANSFORMS, WEIGHT_INITIALIZERS

from sn_openmmlab.checkpoints.files.safe_globals import allow_mmengine_checkpoints
from sn_openmmlab.checkpoints.pretrained import SNPretrained
from sn_openmmlab.flop_counts import register_flop_counts
from sn_openmmlab.hooks.atomic_checkpoint_hook import AtomicCheckpointHook
from sn_openmmlab.hooks.batch_average_hook import BatchAverageHook
from sn_openmmlab.hooks.batch_norm_weights_hook import BatchNormWeightsHook
from sn_openmmlab.hooks.checkpoint_paths_hook import CheckpointPathsHook
from sn_openmmlab.hooks.exact_resume_hook import ExactResumeHook
from sn_openmmlab.hooks.importance_ratios_hook import ImportanceRatiosHook
from sn_openmmlab.hooks.non_finite_guard_hook import NonFiniteGuardHook
from sn_openmmlab.hooks.norm_check_hook import NormCheckHook
from sn_openmmlab.hooks.preemption_hook import PreemptionHook
from sn_openmmlab.hooks.sparsify_hook import SparsifyHook
from sn_openmmlab.layers.names import LAYERS, RENORM_LAYERS
from sn_openmmlab.runs.data.checked_loading import CheckedLoading
from sn_openmmlab.with_norm import build_with_norm

_REGISTERED = {
    MODELS: {**LAYERS, **RENORM_LAYERS, 'WithNorm': build_with_norm},
    WEIGHT_INITIALIZERS: {'SNPretrained': SNPretrained},
    TRANSFORMS: {'CheckedLoading': CheckedLoading},
    HOOKS: {
        hook.__name__: hook
        for hook in (
            NormCheckHook,
            CheckpointPathsHook,
            BatchNormWeightsHook,
            BatchAverageHook,
            SparsifyHook,
            ImportanceRatiosHook,
            NonFiniteGuardHook,
            ExactResumeHook,
            AtomicCheckpointHook,
            PreemptionHook,
        )
    },
}

for _registry, _items in _REGISTERED.items():
    for _name, _item in _items.items():
        # Reloading this module registers its items anew, but never replaces another project's.
        _present = _registry.module_dict.get(_name)
        _ours = getattr(_present, '__module__', None) == _item.__module__
        _registry.register_module(name=_name, force=_ours, module=_item)
allow_mmengine_checkpoints()
register_flop_counts()
