"""The hook that converts the BatchNorm weights in ``load_from``."""

from collections.abc import Mapping
from typing import Any

from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import nn

from sn_openmmlab.checkpoints.pretrained_weights import weights_for
from sn_openmmlab.checkpoints.trial_loading import unwrapped
from sn_openmmlab.layers.convert.from_batch_norm import BATCH_RATIO
from sn_openmmlab.layers.switch_norm import SwitchNorm


class BatchNormWeightsHook(Hook):
    """Convert BatchNorm weights that a run loads into a model with SN.

    It does for ``load_from`` what `SNPretrained` does for an ``init_cfg``. A checkpoint of a model
    with SN is loaded as it is, so it does not matter for ``resume``. ``--norm`` adds it to a
    config; by hand:

        custom_hooks = [dict(type='BatchNormWeightsHook')]
        load_from = 'faster_rcnn_r50_fpn_1x_coco.pth'

    Raises:
        UsageError: in a run, if the SN of the checkpoint was trained with other scopes, or an SN
            layer without `'bn'` would get a BatchNorm.
    """

    # Before EMAHook, which copies the weights.
    priority = 'VERY_HIGH'

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Convert the weights in the checkpoint."""
        model = unwrapped(runner.model)
        if not _has_all(model, checkpoint.get('state_dict', checkpoint)):
            checkpoint['state_dict'] = weights_for(model, checkpoint, '', BATCH_RATIO, strict=False)


def is_weights_hook(hook: Any) -> bool:
    """Return whether an entry of ``custom_hooks`` is this hook."""
    kind = hook.get('type') if isinstance(hook, Mapping) else type(hook)
    return kind in (BatchNormWeightsHook, BatchNormWeightsHook.__name__)


def _has_all(model: nn.Module, weights: Mapping[str, Any]) -> bool:
    """Return whether the weights have λ for each SN layer of a model."""
    layers = (name for name, x in model.named_modules() if isinstance(x, SwitchNorm))
    names = {name.removeprefix('module.') for name in weights}
    return all(f'{name}.mean_weight' in names for name in layers)
