"""The hook that fits the weights in ``load_from`` to a model with SN."""

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
    with SN is loaded as it is, or with its importance ratios repeated where the model has more
    groups of ratios. ``resume`` changes nothing. ``--norm`` adds it to a config; by hand:

        custom_hooks = [dict(type='BatchNormWeightsHook')]
        load_from = 'faster_rcnn_r50_fpn_1x_coco.pth'

    Raises:
        UsageError: in a run, if the SN of the checkpoint was trained with other scopes, or with
            groups of ratios that cannot be divided into those of the model, or if an SN layer
            without `'bn'` would get a BatchNorm.
    """

    # Before EMAHook, which copies the weights.
    priority = 'VERY_HIGH'

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Convert the weights in the checkpoint."""
        model = unwrapped(runner.model)
        if not runner._resume and not _fit_all(model, checkpoint.get('state_dict', checkpoint)):
            checkpoint['state_dict'] = weights_for(model, checkpoint, '', BATCH_RATIO, strict=False)


def is_weights_hook(hook: Any) -> bool:
    """Return whether an entry of ``custom_hooks`` is this hook."""
    kind = hook.get('type') if isinstance(hook, Mapping) else type(hook)
    return kind in (BatchNormWeightsHook, BatchNormWeightsHook.__name__)


def _fit_all(model: nn.Module, weights: Mapping[str, Any]) -> bool:
    """Return whether the weights have λ for each SN layer of a model, in its shape."""
    found = {name.removeprefix('module.'): weight for name, weight in weights.items()}
    return all(
        getattr(found.get(f'{name}.mean_weight'), 'shape', None) == layer.mean_weight.shape
        for name, layer in model.named_modules()
        if isinstance(layer, SwitchNorm)
    )
