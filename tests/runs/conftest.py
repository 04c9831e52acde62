"""A detector as small as one can be, with any norm."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.model import BaseModule
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm

ABBR = {SwitchNorm: 'sn', nn.BatchNorm2d: 'bn', nn.GroupNorm: 'gn', nn.Identity: 'no'}


def _norm(kind: type[nn.Module], channels: int, settings: dict) -> nn.Module:
    return kind(2, channels) if kind is nn.GroupNorm else kind(channels, **settings)


class Backbone(BaseModule):
    """Two norms, of which one is named after its type."""

    def __init__(self, norm: type[nn.Module], settings: dict) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 1, bias=False)
        self.add_module(f'{ABBR[norm]}1', _norm(norm, 4, settings))
        shortcut = (nn.Conv2d(4, 4, 1, bias=False), _norm(norm, 4, settings))
        self.downsample = nn.Sequential(*shortcut)


class Head(BaseModule):
    """A convolution with its norm, and the classifier."""

    def __init__(self, norm: type[nn.Module], settings: dict, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1, bias=False)
        self.add_module(ABBR[norm], _norm(norm, 4, settings))
        self.fc_cls = nn.Linear(4, classes)


class Detector(BaseModule):
    """A backbone and a head."""

    def __init__(
        self,
        norm: type[nn.Module] = SwitchNorm,
        classes: int = 2,
        init_cfg: object = None,
        head_norm: type[nn.Module] | None = None,
        **settings: object,
    ) -> None:
        super().__init__(init_cfg)
        self.backbone = Backbone(norm, settings)
        self.head = Head(head_norm or norm, settings, classes)


@pytest.fixture
def detector() -> type[Detector]:
    """Return the class of the detector."""
    return Detector


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., str]:
    """Return a function (module, **others) that gives each weight a value and saves all to a file.

    The file is like mmengine's, with ``others`` as further entries.
    """

    def write(module: nn.Module, name: str = 'weights.pth', **others: object) -> str:
        for i, value in enumerate(module.state_dict().values()):
            value.fill_(i + 1)
        torch.save({'state_dict': module.state_dict(), **others}, tmp_path / name)
        return str(tmp_path / name)

    return write
