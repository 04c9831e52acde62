"""EfficientNet-Lite0 with its ImageNet weights, as a backbone of MMDetection."""

from pathlib import Path
from typing import Any

import mmcv
import numpy as np
import torch
from mmengine.model import BaseModule
from mmengine.registry import MODELS
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from sn_openmmlab.layers.arguments import check_choice
from sn_openmmlab.layers.convert.calibration import calibrate_switch_norm
from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from studies.experiments.imagenet_network import pretrained_network

# The mean and the standard deviation that normalize each colour of the images.
MEAN, STD = 127.0, 128.0
# The last block of each stride from 4 to 32, and the channels of each.
STAGES = {2: 24, 4: 40, 10: 112, 15: 320}
_GROUPS = 8
_SIDE = 224
_FITTED_TO = 48


@MODELS.register_module()
class EfficientNetLite(BaseModule):
    """The network without its classifier, with its ImageNet weights.

    Args:
        norm: `'BN'`, which is trained, `'frozen-BN'`, `'GN'` with new parameters, or `'SN'`, which
            starts from the BatchNorm.
        start: arguments of `convert_batch_norm` for `'SN'`.
        fit_to: a folder. `calibrate_switch_norm` fits the converted layers to its first images, in
            the order of their names.

    Raises:
        ValueError: `norm` is none of these.
    """

    def __init__(
        self, norm: str, start: dict[str, Any] | None = None, fit_to: str | None = None
    ) -> None:
        super().__init__()
        check_choice('norm', norm, ('BN', 'frozen-BN', 'GN', 'SN'))
        network = pretrained_network()
        self.stem = nn.Sequential(network._conv_stem, network._bn0, nn.ReLU6())
        self.blocks = network._blocks
        self.frozen = norm == 'frozen-BN'
        if self.frozen:
            for layer in self._batch_norms():
                layer.requires_grad_(False)
        elif norm == 'GN':
            _replace_by_group_norm(self)
        elif norm == 'SN':
            convert_batch_norm(self, **(start or {}))
        if fit_to is not None:
            calibrate_switch_norm(self, read_images(Path(fit_to))[:_FITTED_TO])

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the maps of strides 4, 8, 16 and 32 of images (N, 3, H, W)."""
        x, maps = self.stem(x), []
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in STAGES:
                maps.append(x)
        return tuple(maps)

    def train(self, mode: bool = True) -> 'EfficientNetLite':
        super().train(mode)
        if self.frozen:
            for layer in self._batch_norms():
                layer.eval()
        return self

    def _batch_norms(self) -> list[nn.Module]:
        return [layer for layer in self.modules() if isinstance(layer, _BatchNorm)]


def read_images(folder: Path) -> Tensor:
    """Return the images of a folder as the network's input (N, 3, 224, 224), in order of name."""
    images = []
    for file in sorted(folder.iterdir()):
        image = mmcv.imresize(mmcv.imread(file, channel_order='rgb'), (_SIDE, _SIDE))
        images.append(torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1))
    return (torch.stack(images).float() - MEAN) / STD


def _replace_by_group_norm(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, _BatchNorm):
            setattr(module, name, nn.GroupNorm(_GROUPS, child.num_features, child.eps))
        else:
            _replace_by_group_norm(child)
