"""A training step of one model with and without NonFiniteGuardHook."""

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from mmengine.config import Config, ConfigDict
from mmengine.logging import MessageHub
from mmengine.optim import OptimWrapper
from mmengine.registry import MODELS, init_default_scope
from torch import nn

from sn_openmmlab.hooks.non_finite_guard_hook import NonFiniteGuardHook
from sn_openmmlab.inference.trained_model import model_config

BASELINE = 'without'


def guarded_steps(config: Config, side: int) -> dict[str, Callable[[], None]]:
    """Return a function without and one with the hook that train the same model by a step.

    Both get the same two random images.

    Args:
        config: of MMDetection or MMPretrain.
        side: height and width of the images, in pixels.
    """
    init_default_scope(config.default_scope)
    torch.manual_seed(0)
    model = MODELS.build(ConfigDict(model_config(config))).train()
    data = (_boxes if config.default_scope == 'mmdet' else _labels)(side)
    return {
        BASELINE: _step(copy.deepcopy(model), data, None),
        'with': _step(copy.deepcopy(model), data, NonFiniteGuardHook()),
    }


def _step(
    model: nn.Module, data: dict[str, Any], hook: NonFiniteGuardHook | None
) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
    runner = SimpleNamespace(
        model=model,
        optim_wrapper=OptimWrapper(optimizer),
        message_hub=MessageHub.get_current_instance(),
        iter=0,
    )
    if hook is not None:
        hook.before_train(runner)
        hook.before_train_epoch(runner)

    def run() -> None:
        # The sampling of proposals takes random numbers: the same for both.
        torch.manual_seed(0)
        if hook is not None:
            hook.before_train_iter(runner, 0, data)
        model.train_step(data, runner.optim_wrapper)
        if hook is not None:
            hook.after_train_iter(runner, 0)

    return run


def _boxes(side: int) -> dict[str, Any]:
    from mmdet.testing import demo_mm_inputs

    return demo_mm_inputs(2, image_shapes=[(3, side, side)] * 2, num_classes=10, num_items=[8, 8])


def _labels(side: int) -> dict[str, Any]:
    from mmpretrain.structures import DataSample

    images = torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8)
    samples = [DataSample().set_gt_label(label) for label in (0, 1)]
    return dict(inputs=list(images), data_samples=samples)
