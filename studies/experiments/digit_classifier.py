"""A classifier of digits with BatchNorm, the checkpoint that fine-tunings start from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.model import initialize
from mmengine.registry import MODELS, init_default_scope
from torch import Tensor, nn

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.files.writing import write_checkpoint
from sn_openmmlab.errors import UsageError
from studies.demo.crops import digit_crops

_VAL_SCENES = 200


@dataclass(frozen=True)
class Training:
    """The settings of a classifier's training.

    Attributes:
        scenes: the number of scenes, with about five crops each.
        side: of a crop in pixels.
        epochs: over the crops.
        batch: images per step.
        learning_rate: its largest value.
        seed: of the crops, the weights and the order.
    """

    scenes: int = 1200
    side: int = 64
    epochs: int = 6
    batch: int = 64
    learning_rate: float = 0.1
    seed: int = 0


def ensure_classifier(
    model: Mapping[str, Any], file: Path, training: Training = Training()
) -> float:
    """Train a classifier and write its backbone, unless the file exists.

    Args:
        model: `model` of a detector's config. The classifier uses its backbone, with BatchNorm, and
            its normalization of images.
        file: for the weights of the backbone.
        training: the settings.

    Returns:
        The accuracy on digits of other writers.

    Raises:
        UsageError: the file holds something else, or cannot be written.
    """
    if file.exists():
        return _trained_accuracy(file, training)
    torch.manual_seed(training.seed)
    backbone = _build_backbone(model)
    network = nn.Sequential(backbone, _Pool(), nn.LazyLinear(10))
    pixels = model['data_preprocessor']
    moments = [torch.tensor(pixels[key]).view(3, 1, 1) for key in ('mean', 'std')]
    train = _crops('train', training.scenes, training, moments)
    val = _crops('val', _VAL_SCENES, training, moments)
    _fit(network, *train, training)
    accuracy = _accuracy(network, *val)
    meta = {'training': asdict(training), 'accuracy': accuracy}
    write_checkpoint({'state_dict': backbone.state_dict(), 'meta': meta}, file)
    return accuracy


class _Pool(nn.Module):
    """Average the last stage over its positions."""

    def forward(self, stages: tuple[Tensor, ...]) -> Tensor:
        return stages[-1].mean((2, 3))


def _build_backbone(model: Mapping[str, Any]) -> nn.Module:
    init_default_scope('mmdet')
    backbone = {**model['backbone'], 'norm_cfg': dict(type='BN'), 'norm_eval': False}
    backbone = MODELS.build({**backbone, 'init_cfg': None})
    # Not init_weights(), which would print the origin of each parameter.
    initialize(backbone, backbone.init_cfg)
    return backbone


def _trained_accuracy(file: Path, training: Training) -> float:
    meta = read_checkpoint(file).get('meta', {})
    if meta.get('training') != asdict(training):
        raise UsageError(
            f'{file} is not the classifier of the experiment: remove it, or name another '
            '--work-dir.'
        )
    return meta['accuracy']


def _crops(
    split: str, scenes: int, training: Training, moments: list[Tensor]
) -> tuple[Tensor, Tensor]:
    images, labels = digit_crops(split, scenes, training.side, training.seed)
    images = torch.from_numpy(images).permute(0, 3, 1, 2).float()
    return (images - moments[0]) / moments[1], torch.from_numpy(labels.astype(np.int64))


def _fit(network: nn.Module, images: Tensor, labels: Tensor, training: Training) -> None:
    # Makes the last layer, which takes its width from its input.
    network(images[:2])
    steps = training.epochs * (len(images) // training.batch)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=training.learning_rate, momentum=0.9, weight_decay=1e-4
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, training.learning_rate, steps)
    network.train()
    for _ in range(training.epochs):
        order = torch.randperm(len(images))
        for chosen in order.split(training.batch)[: len(images) // training.batch]:
            loss = nn.functional.cross_entropy(network(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


@torch.no_grad()
def _accuracy(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    network.eval()
    hits = [
        (network(part).argmax(1) == label).sum().item()
        for part, label in zip(images.split(100), labels.split(100), strict=True)
    ]
    return sum(hits) / len(images)
