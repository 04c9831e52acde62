"""A run of mmengine with a model and data that draw random numbers, which takes a second."""

import itertools
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, METRICS, MODELS
from torch import nn
from torch.utils.data import Dataset

from sn_openmmlab import SwitchNorm

IMAGES = 4
_numbers = itertools.count()


class SmallModel(BaseModel):
    """A model with SN, BatchNorm and dropout, with state in Python that each training step adds to.

    It evaluates to the sum of its weights and the running statistics of its SN.
    """

    def __init__(self, drops: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 1)
        self.sn = SwitchNorm(4, scopes=('in', 'bn'))
        self.bn = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5 * drops)
        self.head = nn.Conv2d(4, 1, 1)
        self.steps: list[int] = []

    def forward(self, inputs: torch.Tensor, mode: str) -> Any:
        if mode == 'predict':
            tensors = self.conv.weight, self.sn.running_mean, self.sn.running_var
            return [torch.cat([tensor.flatten() for tensor in tensors]).clone()]
        self.steps.append(len(inputs))
        y = self.head(self.drop(self.bn(self.sn(self.conv(inputs)))))
        return dict(loss=y.square().mean())


def image(index: int) -> torch.Tensor:
    """Return an image of the training data, (2, 3, 2), as it is without augmentation."""
    generator = torch.Generator().manual_seed(index)
    return (1 + index) * torch.randn(2, 3, 2, generator=generator)


class SmallData(Dataset):
    """The images, multiplied by what three random generators draw."""

    def __init__(self, augments: bool = True) -> None:
        self.augments = augments
        self.taken = 0

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        self.taken += 1
        drawn = random.random() + np.random.rand() + torch.rand(()).item() if self.augments else 1
        return dict(inputs=drawn * image(index))


class Evaluated(BaseMetric):
    """Report as the metric the sum of what the model evaluates to, and keep the whole of it."""

    kept: list[torch.Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.kept = []

    def process(self, data_batch: Any, data_samples: list[torch.Tensor]) -> None:
        self.results.extend(data_samples)

    def compute_metrics(self, results: list[torch.Tensor]) -> dict[str, float]:
        self.kept.append(results[0])
        return dict(score=float(results[0].sum()))


def register(patch: pytest.MonkeyPatch) -> None:
    """Register the parts, and let mmengine not describe the machine anew in each run."""
    for registry, part in ((MODELS, SmallModel), (DATASETS, SmallData), (METRICS, Evaluated)):
        patch.setitem(registry.module_dict, part.__name__, part)
    patch.setattr('mmengine.runner.runner.collect_env', dict)


def small_config(work_dir: Path, **changes: Any) -> Config:
    """Return a config of two epochs, each of two steps, with a validation after each.

    Changes have dotted keys, or replace a whole entry of the config.
    """
    loader = dict(
        dataset=dict(type='SmallData'),
        batch_size=2,
        collate_fn=dict(type='default_collate'),
        sampler=dict(type='DefaultSampler', shuffle=True),
    )
    evaluation = dict(dataset=dict(type='SmallData'), sampler=dict(type='DefaultSampler'))
    config = Config(
        dict(
            default_scope='mmengine',
            model=dict(type='SmallModel'),
            work_dir=str(work_dir),
            # mmengine's logger, message hub and visualizer are found by it.
            experiment_name=f'small{next(_numbers)}',
            randomness=dict(seed=1),
            train_dataloader=loader,
            train_cfg=dict(by_epoch=True, max_epochs=2),
            optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1)),
            val_dataloader=evaluation,
            val_cfg=dict(),
            val_evaluator=dict(type='Evaluated'),
            test_dataloader=evaluation,
            test_cfg=dict(),
            test_evaluator=dict(type='Evaluated'),
        )
    )
    for key, value in changes.items():
        if '.' in key:
            config.merge_from_dict({key: value})
        else:
            config[key] = value
    return config


def expected_statistics(state: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the batch average of the SN over the images without augmentation, one per batch."""
    images = torch.stack([image(index) for index in range(IMAGES)])
    y = nn.functional.conv2d(images, state['conv.weight'], state['conv.bias'])
    var, mean = torch.var_mean(y, (2, 3), correction=0)
    return mean.mean(0), var.mean(0)
