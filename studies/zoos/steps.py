"""One training step of a model: is it finite, and does it reach every norm layer?"""

import random
from typing import Any, NamedTuple

import numpy as np
import torch
from mmengine.config import Config
from mmengine.logging import MessageHub
from mmengine.model import revert_sync_batchnorm
from torch import nn

from sn_openmmlab.config_tree import walk
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.runs.norm_swap import replace_norms
from studies.zoos.batches import make_batch
from studies.zoos.building import build, fill, replaceable, switchable
from studies.zoos.configs import read_zoo_config


class Step(NamedTuple):
    """What a training step gave.

    Attributes:
        loss: before the step.
        finite: whether the loss, every gradient and, after the step, every weight is finite.
        norms: how many norm layers the model has.
        unreached: the names of those whose γ has no gradient other than zero.
        fixed: the names of the SN layers that the step reaches, but not their λ or λ′.
    """

    loss: float
    finite: bool
    norms: int
    unreached: list[str]
    fixed: list[str]


def train_step(toolbox: str, path: str, norm: str | None, images: int, size: int) -> Step:
    """Train a model of a zoo for a step, from random weights.

    Nothing is frozen, and no norm starts at γ = 0, which would keep the gradient from those before.

    Args:
        toolbox: `mmdet`, `mmseg` or `mmpretrain`.
        path: of the config in the zoo.
        norm: the norm that replaces those of the model; None to train it as it is.
        images: how many images the batch has.
        size: their height and width in pixels.
    """
    config = read_zoo_config(toolbox, path)
    _make_small(config, size)
    if norm:
        replace_norms(config, norm)
    _seed()
    model = build(config)
    if norm is None:
        # SyncBN needs a GPU.
        model = revert_sync_batchnorm(model)
    norms = switchable(model) if norm else replaceable(model)
    _start(model, norms)
    batch = make_batch(toolbox, config, images, size)
    _seed()
    return _step(model, norms, batch)


def _make_small(config: Config, size: int) -> None:
    """Let the model take small images, and train all of its stages."""
    for _, part in walk(config.model):
        part.pop('frozen_stages', None)
    preprocessor = config.model.get('data_preprocessor') or {}
    if preprocessor.get('batch_augments'):
        # They pad to the size of COCO's images.
        preprocessor.batch_augments = None
    if preprocessor.get('size'):
        preprocessor.size = (size, size)


def _seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def _start(model: nn.Module, norms: dict[str, nn.Module]) -> None:
    fill(model)
    model.train()
    for layer in norms.values():
        if layer.weight is None:
            continue
        if not layer.weight.any():
            nn.init.ones_(layer.weight)
        if not isinstance(layer, SwitchNorm):
            # Configs that fine-tune freeze BN's γ; SN has to be trained there.
            layer.requires_grad_(True)


def _step(model: nn.Module, norms: dict[str, nn.Module], batch: Any) -> Step:
    # Heads that warm up ask for what the runner tells.
    MessageHub.get_current_instance().update_info_dict(dict(epoch=0, iter=0))
    losses = model._run_forward(model.data_preprocessor(batch, training=True), mode='loss')
    loss, _ = model.parse_losses(losses)
    loss.backward()
    weights = [weight for weight in model.parameters() if weight.grad is not None]
    finite = loss.isfinite() and all(weight.grad.isfinite().all() for weight in weights)
    unreached = [name for name, layer in norms.items() if not _learns(layer, 'weight')]
    fixed = [
        name
        for name, layer in norms.items()
        if isinstance(layer, SwitchNorm) and name not in unreached
        if not (_learns(layer, 'mean_weight') and _learns(layer, 'var_weight'))
    ]
    torch.optim.SGD(weights, lr=1e-3).step()
    finite = finite and all(weight.isfinite().all() for weight in weights)
    return Step(loss.item(), bool(finite), len(norms), unreached, fixed)


def _learns(layer: nn.Module, name: str) -> bool:
    weight = getattr(layer, name)
    if weight is None:
        return True
    return weight.grad is not None and bool(weight.grad.any())
