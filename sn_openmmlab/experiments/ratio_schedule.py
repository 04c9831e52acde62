"""A schedule of the importance ratio of ``'bn'``, which an experiment tries."""

from collections.abc import Sequence

import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from torch import Tensor

from sn_openmmlab.layers.from_batch_norm import start_controls
from sn_openmmlab.layers.switch_norm import SwitchNorm


@HOOKS.register_module()
class RatioSchedule(Hook):
    """Move the ratio of ``'bn'`` of the backbone's SN layers while the training begins.

    From step to step it goes in a line; the others keep the differences that they learn. After the
    given share of the training λ and λ′ learn freely.

    Args:
        start: the ratio before the first step, in (0, 1).
        end: the ratio after the last one of the schedule, likewise.
        share: of the training's steps that it takes, in (0, 1].
    """

    def __init__(self, start: float, end: float, share: float) -> None:
        self.start, self.end, self.share = start, end, share

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Sequence | None = None
    ) -> None:
        done = runner.iter / (self.share * runner.max_iters)
        if done >= 1:
            return
        ratio = self.start + (self.end - self.start) * done
        for layer in runner.model.backbone.modules():
            if isinstance(layer, SwitchNorm):
                for control in (layer.mean_weight, layer.var_weight):
                    set_batch_ratio(control, layer.scopes, ratio)


@torch.no_grad()
def set_batch_ratio(control: Tensor, scopes: tuple[str, ...], ratio: float) -> None:
    """Give ``'bn'`` a ratio by its control parameter alone, (number of scopes,), in place."""
    place = scopes.index('bn')
    others = [i for i in range(len(scopes)) if i != place]
    gap = start_controls(scopes, ratio)[place] - 1
    # Even where the others differ, they have to share the rest.
    level = torch.logsumexp(control[others], 0) - torch.tensor(len(others)).log()
    control[place] = level + gap
