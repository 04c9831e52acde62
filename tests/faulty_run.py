"""A run of mmengine in which chosen images make chosen parts of a model infinite or NaN."""

import itertools
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, MODELS
from mmengine.structures import BaseDataElement
from torch import Tensor, nn
from torch.utils.data import Dataset

from sn_openmmlab import SwitchNorm

IMAGES = 8
# An image with such a number is one of the chosen.
MARK = 1000.0
_numbers = itertools.count()


class Power(nn.Module):
    """exp(x) - 1 of small inputs, infinite for those of a marked image."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.expm1(x)


class FaultyModel(BaseModel):
    """A model with a norm whose part ``fault`` is not finite for marked images.

    Args:
        fault: `'layer'`, `'loss'`, `'statistic'` or `'gradient'`.
    """

    def __init__(self, fault: str = 'layer', frozen: bool = False) -> None:
        super().__init__()
        self.fault = fault
        self.power = Power()
        self.conv = nn.Conv2d(2, 4, 1).requires_grad_(not frozen)
        self.sn = SwitchNorm(4, scopes=('in', 'bn'))
        self.drop = nn.Dropout(0.5)
        self.head = nn.Conv2d(4, 1, 1)

    def forward(self, inputs: list[Tensor], data_samples: list, mode: str) -> dict[str, Tensor]:
        x = torch.stack(inputs)
        marked = bool((x == MARK).any())
        x = self.power(x) if self.fault == 'layer' else x
        y = self.head(self.drop(self.sn(self.conv(x))))
        losses = dict(loss_mean=y.square().mean())
        if marked and self.fault == 'loss':
            losses['loss_log'] = -(0 * y.detach()).mean().log()
        if marked and self.fault == 'statistic':
            self.sn.running_var[1] = math.inf
        if marked and self.fault == 'gradient':
            # The slope of the root is infinite at 0.
            losses['loss_root'] = (0 * y).abs().sqrt().mean()
        return losses


class FaultyData(Dataset):
    """Images of (2, 3, 2) with paths.

    Args:
        chosen: the numbers of the images, those that are marked or NaN.
        kind: what is put into these images.
        left_out: the numbers of images that the data lack.
    """

    def __init__(
        self,
        chosen: Collection[int] = (),
        kind: float = MARK,
        left_out: Collection[int] = (),
    ) -> None:
        self.chosen, self.kind = chosen, kind
        self.numbers = [number for number in range(IMAGES) if number not in left_out]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> dict[str, Any]:
        number = self.numbers[index]
        generator = torch.Generator().manual_seed(number)
        image = torch.randn(2, 3, 2, generator=generator)
        if number in self.chosen:
            image[0, 1, 1] = self.kind
        path = f'images/{number}.jpg'
        return dict(inputs=image, data_samples=BaseDataElement(metainfo=dict(img_path=path)))


def register(patch: pytest.MonkeyPatch) -> None:
    """Register the parts, and let mmengine not describe the machine anew in each run."""
    patch.setitem(MODELS.module_dict, 'FaultyModel', FaultyModel)
    patch.setitem(DATASETS.module_dict, 'FaultyData', FaultyData)
    patch.setattr('mmengine.runner.runner.collect_env', dict)


def faulty_config(work_dir: Path, **changes: Any) -> Config:
    """Return a config of one epoch of two images a step, in order, with a checkpoint after each.

    Changes have dotted keys, or replace a whole entry of the config.
    """
    sgd = dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=0.01)
    config = Config(
        dict(
            default_scope='mmengine',
            model=dict(type='FaultyModel'),
            work_dir=str(work_dir),
            # mmengine's logger, message hub and visualizer are found by it.
            experiment_name=f'faulty{next(_numbers)}',
            randomness=dict(seed=1),
            train_dataloader=dict(
                dataset=dict(type='FaultyData'),
                batch_size=2,
                sampler=dict(type='DefaultSampler', shuffle=False),
            ),
            train_cfg=dict(by_epoch=True, max_epochs=1),
            optim_wrapper=dict(type='OptimWrapper', optimizer=sgd),
            default_hooks=dict(
                checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=1),
                logger=dict(type='LoggerHook', interval=1),
            ),
            custom_hooks=[dict(type='NonFiniteGuardHook')],
        )
    )
    for key, value in changes.items():
        if '.' in key:
            config.merge_from_dict({key: value})
        else:
            config[key] = value
    return config
